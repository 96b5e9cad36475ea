"""Cuts a stretch of engine time at the edges of a period and of UTC hours. Knows no database.

What a part costs is the difference of two rounded running totals, so the parts of a stretch always add up to
its bill exactly, however it is cut, and two adjacent periods share out what lies across their border.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from gateway.costs.money import PicoUSD, round_half_even

_HOUR = timedelta(hours=1)
_MICROSECOND = timedelta(microseconds=1)


class Part(NamedTuple):
    """A piece within one UTC hour, which `hour` begins."""

    hour: datetime
    seconds: float
    bill: PicoUSD


def hourly_parts(
    start: datetime, end: datetime, seconds: float, bill: PicoUSD, since: datetime, until: datetime
) -> Iterator[Part]:
    """The parts of a stretch that lie in [since, until), hour by hour. All times are UTC.

    `seconds` is the stretch's true length, of a monotonic clock. Where the wall clock was set back meanwhile,
    so that `end` is not after `start`, all of it belongs to its start.
    """
    length = (end - start) // _MICROSECOND
    if length <= 0:
        if since <= start < until:
            yield Part(_hour_of(start), seconds, bill)
        return
    for a, b in pairwise(_edges(max(start, since), min(end, until))):
        before, after = (a - start) // _MICROSECOND, (b - start) // _MICROSECOND
        cost = round_half_even(bill * after, length) - round_half_even(bill * before, length)
        yield Part(_hour_of(a), seconds * ((after - before) / length), cost)


def _edges(first: datetime, last: datetime) -> Iterator[datetime]:
    if first >= last:
        return
    yield first
    edge = _hour_of(first) + _HOUR
    while edge < last:
        yield edge
        edge += _HOUR
    yield last


def _hour_of(utc: datetime) -> datetime:
    return utc.replace(minute=0, second=0, microsecond=0)
