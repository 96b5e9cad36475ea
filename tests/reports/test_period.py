"""Points in time as users write them."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway.reports.period import parse_time

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("24h", NOW - timedelta(hours=24)),
        ("7d", NOW - timedelta(days=7)),
        ("90m", NOW - timedelta(minutes=90)),
        (" 30s ", NOW - timedelta(seconds=30)),
        ("2026-11-30", datetime(2026, 11, 30, tzinfo=UTC)),
        ("2026-11-30T08:15", datetime(2026, 11, 30, 8, 15, tzinfo=UTC)),
        ("2026-11-30T08:15:30.5Z", datetime(2026, 11, 30, 8, 15, 30, 500_000, tzinfo=UTC)),
        ("2026-11-30T08:15+02:00", datetime(2026, 11, 30, 6, 15, tzinfo=UTC)),
    ],
)
def test_durations_are_before_now_and_times_are_utc(text: str, meant: datetime) -> None:
    assert parse_time(text, NOW) == meant
    assert parse_time(text, NOW).utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "text", ["", "h", "-1h", "1.5h", "yesterday", "24 parsecs", "999999999w", "2026-13-01"]
)
def test_anything_else_is_refused_with_what_it_takes(text: str) -> None:
    with pytest.raises(ValueError, match=r"neither how long ago .* nor a UTC time"):
        parse_time(text, NOW)
