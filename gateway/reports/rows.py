"""What a report is made of: the ledger's rows of a period, added up as far as a report can still tell them
apart. Knows no database and draws no conclusion.

A group of one request is as good as a group of a million: whoever has plain rows makes groups of one.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

# What requests can be grouped by, and what each means: the words of `--by`, the page and the rows' keys.
GROUPINGS: dict[str, str] = {
    "model": "the model that the client asked for, under its own name",
    "route": "`local`, `overflow` or `shed`; none where it was refused before routing or cut off by a crash",
    "reason": "why it took that route",
    "key": "name of the client key",
    "engine": "the engine that had it last; none for requests that an endpoint had",
    "endpoint": "the endpoint that had it last; none for requests that an engine had",
    "target": "the engine or endpoint that had it last",
    "policy": "the policy that it was decided by",
    "outcome": "how it ended, in the ledger's word",
    "hour": "UTC hour in which it arrived",
    "day": "UTC day on which it arrived",
    "tag": "its `x-spillgate-tags`, the whole text as one value: a request is never in two groups",
}
DEFAULT_BY = ("model", "route", "reason")

Key = tuple[str | None, ...]


class Sum(NamedTuple):
    """The sum of what is known, and of how many rows it is known."""

    amount: int = 0
    known: int = 0

    def plus(self, other: "Sum") -> "Sum":
        """Both together."""
        return Sum(self.amount + other.amount, self.known + other.known)


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """Requests alike in key and facts. `is_priced`: their cash_marginal is known. Money in pico-USD."""

    key: Key
    route: str | None
    outcome: str
    usage_source: str
    is_priced: bool
    equivalent: bool | None
    alternative_route: str | None
    alternative_kind: str | None
    alternative_target: str | None
    requests: int
    prompt: Sum
    cached: Sum
    completion: Sum
    cash_marginal: Sum
    standard: Sum
    alternative_cash: Sum


@dataclass(frozen=True, slots=True)
class AttemptGroup:
    """Attempts alike; `key` is their request's, and so is `request_route`. `answered`: a status came back."""

    key: Key
    request_route: str | None
    route: str
    target: str
    answered: bool
    price_id: str | None
    attempts: int
    cash_marginal: Sum


@dataclass(frozen=True, slots=True)
class SpanGroup:
    """One engine's time in one state within one UTC hour, and what that time cost in pico-USD."""

    engine: str
    partition: str
    rate_id: str
    hour: str
    seconds: float
    bill: int


@dataclass(frozen=True, slots=True)
class PriceUse:
    """A price version that the period's attempts were rated with; decimal texts in USD per million tokens."""

    price_id: str
    target: str | None
    remote_model: str | None
    effective_from: str | None
    source: str | None
    input: str | None
    cached_input: str | None
    output: str | None
    per_request: str | None


@dataclass(frozen=True, slots=True)
class RateUse:
    """An engine rate that the period's bill rests on; decimal texts in USD per hour."""

    rate_id: str
    engine: str
    effective_from: str
    usd_per_hour: str
    overhead_usd_per_hour: str
    billing: str
    capacity: str | None


@dataclass(frozen=True, slots=True)
class LedgerRows:
    """One period of the ledger. The keys of requests and attempts are in the order of `by`."""

    by: tuple[str, ...]
    requests: tuple[RequestGroup, ...] = ()
    attempts: tuple[AttemptGroup, ...] = ()
    spans: tuple[SpanGroup, ...] = ()
    prices: tuple[PriceUse, ...] = ()
    rates: tuple[RateUse, ...] = ()


def hour_text(utc: datetime) -> str:
    """The UTC hour of a time, as keys write it: `2026-12-01T08:00Z`."""
    return f"{utc:%Y-%m-%dT%H}:00Z"
