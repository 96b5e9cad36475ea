"""What carrying a request out needs, built once by app."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from gateway.costs.work import EngineRate
from gateway.ledger.records import Record
from gateway.routing.decision import Decision
from gateway.routing.fleet_view import FleetView
from gateway.routing.retry import RetryBudget
from gateway.telemetry.counters import Counters
from gateway.upstreams.base import Target

_DECISIONS_KEPT = 256


class RecordSink(Protocol):
    """Where records become durable: returns when the record would survive the death of this process."""

    def append(self, record: Record) -> None:
        """Write one record."""
        ...


class Decided(NamedTuple):
    """One entry of the decision log."""

    request_id: str
    at_utc: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class RelayParts:
    """`clock` is monotonic seconds, `wall` UTC epoch seconds."""

    view: FleetView
    targets: Mapping[str, Target]
    journal: RecordSink
    counters: Counters
    engine_rates: Mapping[str, EngineRate]
    clock: Callable[[], float]
    wall: Callable[[], float]
    retry_budget: RetryBudget = field(default_factory=RetryBudget)
    decisions: deque[Decided] = field(default_factory=lambda: deque(maxlen=_DECISIONS_KEPT))
