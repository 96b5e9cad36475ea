"""What a user may write for a point in time: how long ago, or an ISO time. Knows no clock."""

import re
from datetime import UTC, datetime, timedelta

_AGO = re.compile(r"(\d{1,9}) ?(s|m|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_time(text: str, now: datetime) -> datetime:
    """`24h`, `90m`, `7d` are that long before `now`; `2026-12-01`, `2026-12-01T08:00Z` are themselves, in
    UTC.

    A time without an offset is UTC. Raises ValueError with a sentence.
    """
    ago = _AGO.fullmatch(text.strip())
    try:
        if ago:
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        when = datetime.fromisoformat(text.strip())
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{text!r} is neither how long ago (like 24h, 90m or 7d) nor a UTC time (like 2026-12-01T08:00)"
        ) from error
