"""Who may be tried after a failed attempt: the table of moments against kinds of target (fault-matrix §2).

Pure, and the only place that knows it: relay asks after every failure and does what is said.
"""

from enum import IntEnum

from gateway.routing.decision import Local, Overflow, Route
from gateway.routing.policy import OverflowWhen, Policy, Retry
from gateway.routing.reasons import Reason


class Moment(IntEnum):
    """How far an attempt came."""

    ADMISSION = 0
    CONNECTING = 1
    SENT = 2
    HEADERS = 3
    MIDSTREAM = 4
    TAIL = 5
    END = 6


# Statuses by which a priced target proves that it generated nothing; 5xx and silence prove nothing.
_PROOF_OF_NOTHING = frozenset({400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 503})
# Answers that another target would give as well: returned once, unchanged.
_DETERMINISTIC = frozenset({400, 405, 409, 413, 415, 422, 501})


def may_try_next(moment: Moment, *, priced: bool, status: int | None, sent: bool = True) -> bool:
    """May any other target be tried? `status`: the answer's own, or None where none came; `sent`: any byte
    left us."""
    if moment >= Moment.MIDSTREAM:
        return False
    if moment <= Moment.CONNECTING or not sent:
        return True
    if status is not None and status in _DETERMINISTIC:
        return False
    return not priced or status in _PROOF_OF_NOTHING


def counts_as_failure(moment: Moment, *, status: int | None) -> bool:
    """Does the breaker count it? Connects, resets, timeouts and 5xx do; saturation (429, 503) and the
    client's own 4xx do not."""
    if status is None:
        return True
    return status >= 500 and status != 503 and moment <= Moment.HEADERS


class RetryBudget:
    """Second attempts in flight, as a share of requests in flight: at least 3, so that a quiet gateway may
    retry too."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.retrying = 0

    def allows(self, policy: Retry) -> bool:
        """May one more request start a second attempt?"""
        return self.retrying < max(3, int(self.in_flight * policy.share))


# What a failure after dispatch is called under `overflow.when`.
_CAUSES: dict[Reason, OverflowWhen] = {
    Reason.ATTEMPT_FAILED: "unreachable",
    Reason.ENGINE_REFUSED: "queue",
    Reason.CONTEXT_TOO_LONG: "context",
}


def may_leave_for(reason: Reason, policy: Policy) -> bool:
    """Is this failure a cause for which the policy lets a request go on to an endpoint?"""
    return policy.pin == "overflow" or _CAUSES.get(reason) in policy.overflow.when


def next_route(fallbacks: tuple[Route, ...], tried: set[str], *, may_overflow: bool) -> Route | None:
    """The first fallback not tried yet; a request that may not leave never meets an endpoint."""
    for route in fallbacks:
        match route:
            case Local(engine=name):
                if name not in tried:
                    return route
            case Overflow(endpoint=name):
                if name not in tried and may_overflow:
                    return route
    return None
