"""What happened in one attempt and in one request, filled while it happens. Knows no sockets and no
prices."""

from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.costs.alternative import Alternative
from gateway.costs.money import Rated
from gateway.costs.prices import TokenPrice
from gateway.ledger.records import Billable, Outcome
from gateway.relay.failure import Failure
from gateway.routing.decision import Decision, Overflow, Route, route_name, target_name
from gateway.routing.reasons import Reason
from gateway.routing.retry import Moment
from gateway.upstreams.base import Exchange
from gateway.wire.usage import Usage

# Statuses by which a per-token endpoint says that it billed nothing.
_NOT_BILLED = range(400, 500)


@dataclass(slots=True)
class AttemptLog:
    """One try at one target. Times are monotonic seconds."""

    n: int
    route: Route
    reason: Reason
    exchange: Exchange
    dialed_utc: str
    started_at: float
    moment: Moment = Moment.CONNECTING
    outcome: Outcome = "internal"
    status: int | None = None
    usage: Usage | None = None
    usage_is_estimated: bool = False
    content_events: int = 0
    finish_seen: bool = False
    first_event_at: float | None = None
    ended_at: float | None = None
    bad_events: int = 0
    failure: Failure | None = None
    sent: bool = False

    @property
    def priced(self) -> bool:
        """Does this target bill per token?"""
        return isinstance(self.route, Overflow)

    @property
    def target(self) -> str:
        """The target's name."""
        return target_name(self.route) or ""

    @property
    def route_name(self) -> str:
        """local or overflow."""
        return route_name(self.route)

    def billable(self) -> Billable:
        """yes: content or usage was seen; no: never sent, refused, or an engine of ours; unknown: sent, no
        evidence."""
        if not self.priced or not self.sent:
            return "no"
        if self.outcome == "ok" or self.content_events or (self.usage and self.usage.completion):
            return "yes"
        # An error inside a 200 has its own status, which counts (fault-matrix U26).
        inside = self.failure.status if self.failure else None
        status = inside or self.status
        return "no" if status in _NOT_BILLED or status == 503 else "unknown"


class RatedAttempt(NamedTuple):
    """One attempt in money. `work` is in milli work units; the usage may be an estimate and says so."""

    usage: Usage | None
    price: TokenPrice | None
    work: int | None
    cash: Rated
    standard: Rated


@dataclass(frozen=True, slots=True)
class Rating:
    """A whole request in money (pico-USD, None where unknown): what it cost, and the route not taken."""

    cash_marginal: int | None
    standard: int | None
    alternative: Alternative
    attempts: tuple[RatedAttempt, ...]


@dataclass(slots=True)
class RequestLog:
    """Everything about one admitted request that its record is made of."""

    decision: Decision | None = None
    attempts: list[AttemptLog] = field(default_factory=list)
    outcome: Outcome = "internal"
    status: int | None = None
    failure: Failure | None = None
    dispatched_at: float | None = None
    rating: Rating | None = None
    closed: bool = False

    @property
    def last(self) -> AttemptLog | None:
        """The attempt that answered, or the last that failed."""
        return self.attempts[-1] if self.attempts else None
