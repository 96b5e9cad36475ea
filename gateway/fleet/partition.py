"""Cuts an engine's provisioned time into stretches of one kind (cost-model §2.2): exclusive, exhaustive.
Knows no money.

Seconds come from the monotonic clock, so a wall clock that is set back or forth neither makes nor loses any.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gateway.routing.view import EngineState

Partition = Literal["serving_busy", "serving_idle", "booting", "boot_failed", "draining", "unreachable"]

# A stretch is written at least this often, so that a report during it is not far behind.
_LONGEST = 10.0

_AWAY: dict[EngineState, Partition] = {
    EngineState.BOOTING: "booting",
    EngineState.UNBOOTABLE: "boot_failed",
    EngineState.DRAINING: "draining",
    EngineState.UNREACHABLE: "unreachable",
    EngineState.HUNG: "unreachable",
}


@dataclass(frozen=True, slots=True)
class StateSpan:
    """One stretch. `seconds` is exact; start and end are the wall clock's."""

    engine: str
    partition: Partition
    start_utc: datetime
    end_utc: datetime
    seconds: float


@dataclass(slots=True)
class _Open:
    partition: Partition
    since: float
    since_utc: datetime


def partition_of(state: EngineState, busy: bool) -> Partition:
    """Which kind of time this is."""
    return _AWAY.get(state) or ("serving_busy" if busy else "serving_idle")


class PartitionClock:
    """The open stretch of every engine."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}

    def observe(
        self, engine: str, state: EngineState, busy: bool, now: float, now_utc: datetime
    ) -> list[StateSpan]:
        """Look at an engine; returns the stretch that this ends, if it does."""
        partition = partition_of(state, busy)
        current = self._open.get(engine)
        if current is not None and current.partition == partition and now - current.since < _LONGEST:
            return []
        ended = self._end(engine, now, now_utc)
        self._open[engine] = _Open(partition, now, now_utc)
        return ended

    def flush(self, now: float, now_utc: datetime) -> list[StateSpan]:
        """End every stretch: the gateway stops."""
        return [span for engine in tuple(self._open) for span in self._end(engine, now, now_utc)]

    def _end(self, engine: str, now: float, now_utc: datetime) -> list[StateSpan]:
        current = self._open.pop(engine, None)
        if current is None or now <= current.since:
            return []
        return [StateSpan(engine, current.partition, current.since_utc, now_utc, now - current.since)]
