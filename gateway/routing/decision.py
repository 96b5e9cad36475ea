"""What was decided and everything that led to it. The Decision is the log: nothing is logged inside
deciding."""

from dataclasses import dataclass
from typing import NamedTuple

from gateway.routing.need import Need
from gateway.routing.reasons import Reason


@dataclass(frozen=True, slots=True)
class Local:
    """Serve it on this engine; `need` is what to reserve there."""

    engine: str
    need: Need


@dataclass(frozen=True, slots=True)
class Overflow:
    """Serve it at this endpoint under the endpoint's own model name. `promise` is the expected cost in
    pico-USD."""

    endpoint: str
    remote_model: str
    equivalent: bool
    promise: int | None


@dataclass(frozen=True, slots=True)
class Shed:
    """Refuse it with this status; `retry_after` in seconds."""

    status: int
    retry_after: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Keep it in the gateway and decide again when something is released; refuse it as `otherwise` at the
    deadline."""

    otherwise: Shed


Route = Local | Overflow
Numbers = tuple[tuple[str, float | None], ...]


class Candidate(NamedTuple):
    """One target that was looked at: admitted (verdict None) or why not, and the figures behind it."""

    target: str
    verdict: Reason | None
    numbers: Numbers


@dataclass(frozen=True, slots=True)
class Decision:
    """The choice, its reason, who comes next if it fails, and every candidate's verdict.

    `expected_overflow` is what the request would cost at the preferred endpoint (pico-USD, None where
    unpriced or there is none); a local request's own expected cash is 0 while the engine is paid for.
    `shadowed` is what would have been done under a shadow policy.
    """

    model: str
    policy: str
    route: Local | Overflow | Shed | Hold
    reason: Reason
    fallbacks: tuple[Route, ...]
    candidates: tuple[Candidate, ...]
    expected_overflow: int | None
    decided_at: float
    may_overflow: bool
    shadowed: Reason | None = None


def route_name(route: Local | Overflow | Shed | Hold) -> str:
    """The word that headers, metrics and ledger use for a route."""
    match route:
        case Local():
            return "local"
        case Overflow():
            return "overflow"
        case Shed() | Hold():
            return "shed"


def target_name(route: Local | Overflow | Shed | Hold) -> str | None:
    """The target's name; None where nothing is sent."""
    match route:
        case Local(engine=name) | Overflow(endpoint=name):
            return name
        case Shed() | Hold():
            return None
