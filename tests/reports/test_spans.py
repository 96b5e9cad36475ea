"""Cutting engine time: nothing is lost at an edge, whatever the clocks did."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.reports.spans import hourly_parts

DAY = datetime(2026, 12, 1, tzinfo=UTC)
moments = st.integers(0, 86_400 * 10**6).map(lambda us: DAY + timedelta(microseconds=us))


@given(st.tuples(moments, moments).map(sorted), st.integers(0, 10**15), st.lists(moments, max_size=4))
def test_the_parts_of_a_stretch_add_up_to_its_bill_however_it_is_cut(
    ends: list[datetime], bill: int, cuts: list[datetime]
) -> None:
    start, end = ends
    edges = [DAY, *sorted(cuts), DAY + timedelta(days=2)]
    parts = [
        part
        for since, until in pairwise(edges)
        for part in hourly_parts(start, end, 60.0, bill, since, until)
    ]
    assert sum(part.bill for part in parts) == bill
    assert abs(sum(part.seconds for part in parts) - 60.0) < 1e-6
    assert all(part.bill >= 0 for part in parts)


def test_each_part_is_within_one_hour() -> None:
    start, end = DAY + timedelta(minutes=50), DAY + timedelta(hours=2, minutes=5)
    parts = list(hourly_parts(start, end, 4500.0, 4500, DAY, DAY + timedelta(days=1)))
    assert [(part.hour.hour, part.bill) for part in parts] == [(0, 600), (1, 3600), (2, 300)]


def test_a_stretch_outside_the_period_has_no_part_in_it() -> None:
    later = DAY + timedelta(hours=5)
    assert (
        list(hourly_parts(DAY, DAY + timedelta(hours=1), 3600.0, 9, later, later + timedelta(hours=1))) == []
    )


def test_a_clock_that_was_set_back_loses_no_time() -> None:
    start, end = DAY + timedelta(hours=3), DAY + timedelta(hours=2)
    (part,) = hourly_parts(start, end, 10.0, 77, DAY, DAY + timedelta(days=1))
    assert (part.hour.hour, part.seconds, part.bill) == (3, 10.0, 77)
    assert list(hourly_parts(start, end, 10.0, 77, DAY, start)) == []
