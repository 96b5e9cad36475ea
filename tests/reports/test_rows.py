"""The words and sums that a report is made of."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from gateway.reports.rows import DEFAULT_BY, GROUPINGS, Sum, hour_text

sums = st.builds(Sum, st.integers(0, 2**70), st.integers(0, 1000))


@given(sums, sums, sums)
def test_sums_may_be_added_in_any_order(a: Sum, b: Sum, c: Sum) -> None:
    assert a.plus(b).plus(c) == c.plus(b.plus(a))
    assert a.plus(Sum()) == a


def test_the_default_groups_are_among_the_names() -> None:
    assert set(DEFAULT_BY) <= set(GROUPINGS)


def test_an_hour_is_written_as_utc() -> None:
    assert hour_text(datetime(2026, 12, 1, 8, 59, tzinfo=UTC)) == "2026-12-01T08:00Z"
