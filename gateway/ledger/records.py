"""Rows of the ledger as write-once values. Knows no file and no database.

Money is integer pico-USD; unknown is None, never 0. Times are UTC ISO-8601 texts with microseconds; durations
are milliseconds from the monotonic clock.
"""

from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal[
    "ok", "rejected", "shed", "client_gone", "client_slow", "upstream_refused", "upstream_timeout",
    "upstream_stall", "upstream_cut", "upstream_truncated", "upstream_status", "upstream_error_event",
    "upstream_protocol", "upstream_too_large", "shutdown", "interrupted", "internal",
]  # fmt: skip
Billable = Literal["yes", "no", "unknown"]
Partition = Literal["serving_busy", "serving_idle", "booting", "boot_failed", "draining", "unreachable"]


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One try at one target."""

    n: int
    target: str
    route: str
    remote_model: str | None
    reason: str
    moment: str
    outcome: Outcome
    status: int | None
    billable: Billable
    t_dial: str | None
    ms_to_sent: float | None
    ms_to_headers: float | None
    ms_to_first_event: float | None
    ms_total: float | None
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    usage_source: str
    cash_marginal: int | None
    standard: int | None
    price_id: str | None
    price_source: str | None
    rate_id: str | None
    dropped_fields: str | None = None


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One admitted request, whatever became of it. `alternative_*` is the route not taken, priced on the same
    tokens.
    """

    request_id: str
    t_in: str
    key: str | None
    tags: str | None
    path: str
    requested_model: str | None
    model: str | None
    policy: str | None
    stream: bool
    route: str | None
    target: str | None
    reason: str | None
    outcome: Outcome
    status: int | None
    attempts: tuple[AttemptRecord, ...]
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    usage_source: str
    cash_marginal: int | None
    standard: int | None
    work_units_milli: int | None
    weight_set: str | None
    price_id: str | None
    price_source: str | None
    alternative_route: str | None
    alternative_target: str | None
    alternative_kind: str | None
    alternative_cash: int | None
    alternative_standard: int | None
    alternative_low: int | None
    equivalent: bool | None
    ttft_ms: float | None
    duration_ms: float | None
    overhead_ms: float | None
    flags: tuple[str, ...] = ()
    currency: str = "USD"


@dataclass(frozen=True, slots=True)
class OpenRecord:
    """Durable before anything is dialled: what is known of a request when it is admitted."""

    request_id: str
    t_in: str
    key: str | None
    path: str
    requested_model: str | None
    model: str | None
    stream: bool
    tags: str | None = None
    policy: str | None = None


@dataclass(frozen=True, slots=True)
class EngineSpan:
    """A stretch of an engine's provisioned time in one state of the partition (cost-model §2.2)."""

    engine: str
    partition: Partition
    start: str
    end: str
    seconds: float
    rate_id: str
    bill: int


@dataclass(frozen=True, slots=True)
class PriceRow:
    """One immutable price version; prices are decimal texts in USD per million tokens."""

    price_id: str
    target: str
    remote_model: str
    effective_from: str
    source: str
    input: str | None
    cached_input: str | None
    output: str | None
    per_request: str | None
    hash: str


@dataclass(frozen=True, slots=True)
class RateRow:
    """One immutable hourly rate of an engine, in decimal USD texts, and its practical capacity (work units
    per second).
    """

    rate_id: str
    engine: str
    effective_from: str
    usd_per_hour: str
    overhead_usd_per_hour: str
    billing: str
    capacity: str | None
    hash: str


Record = RequestRecord | OpenRecord | EngineSpan | PriceRow | RateRow


@dataclass(slots=True)
class Recovered:
    """What a journal held when it was read back: rows to store, and how many lines could not be read."""

    records: list[Record] = field(default_factory=list)
    unreadable: int = 0
