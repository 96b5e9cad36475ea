"""What a request used of an engine: work units, and their price at the engine's practical capacity
(`standard`).

Knows no bill and no window: sharing a bill out is settlement. Work is counted in whole milli work units, so
that the default weights 1 / 0.1 / 4 (cost-model §2.3) and their sums are exact.
"""

from dataclasses import dataclass
from decimal import Decimal

from gateway.costs.money import PICO_PER_USD, PicoUSD, Rated, round_half_even
from gateway.costs.prices import content_hash
from gateway.costs.tokens import billed_tokens
from gateway.wire.usage import Usage

NO_CAPACITY = "capacity unknown"
NO_RATE = "engine rate unknown"
NO_WORK = "tokens unknown"

_SECONDS_PER_HOUR = 3600
_MILLI = 1000


@dataclass(frozen=True, slots=True)
class WorkWeights:
    """Milli work units per uncached prompt token (1000 by definition), cached prompt token and output
    token.
    """

    weight_set: str
    uncached: int
    cached: int
    output: int


DEFAULT_WEIGHTS = WorkWeights("1/0.1/4", uncached=1000, cached=100, output=4000)


@dataclass(frozen=True, slots=True)
class EngineRate:
    """One immutable version of what an engine costs per hour (all its GPUs), and its practical capacity.

    `capacity` is work units per second that it sustains within its objectives and without preemption; None is
    unknown.
    """

    rate_id: str
    engine: str
    effective_from: str
    usd_per_hour: Decimal
    overhead_usd_per_hour: Decimal
    billing: str
    capacity: Decimal | None = None


def new_engine_rate(
    engine: str,
    effective_from: str,
    *,
    usd_per_hour: Decimal,
    overhead_usd_per_hour: Decimal = Decimal(0),
    billing: str = "on_demand",
    capacity: Decimal | None = None,
) -> EngineRate:
    """A rate under the id of its content, which does not cover `effective_from` (as with prices)."""
    rate_id = content_hash(engine, usd_per_hour, overhead_usd_per_hour, billing, capacity)[:16]
    return EngineRate(rate_id, engine, effective_from, usd_per_hour, overhead_usd_per_hour, billing, capacity)


def work_units(
    usage: Usage | None, weights: WorkWeights = DEFAULT_WEIGHTS, *, generates: bool = True
) -> int | None:
    """W of cost-model §2 in milli work units; None where a count is unknown. `generates`: see
    `billed_tokens`.
    """
    tokens = billed_tokens(usage, generates=generates)
    if tokens is None or tokens.output is None:
        return None
    return (
        weights.uncached * tokens.uncached + weights.cached * tokens.cached + weights.output * tokens.output
    )


def standard(work_milli: int | None, rate: EngineRate | None) -> Rated:
    """W * L / (3600 * K) in pico-USD (cost-model §3.1), rounded half-even once; None with why where unknown.

    L is the engine's rate with its overhead in USD per hour, K its capacity in work units per second.
    """
    if rate is None:
        return Rated(None, NO_RATE)
    if rate.capacity is None or rate.capacity <= 0:
        return Rated(None, NO_CAPACITY)
    if work_milli is None:
        return Rated(None, NO_WORK)
    loaded, loaded_unit = _loaded_ratio(rate)
    capacity, capacity_unit = rate.capacity.as_integer_ratio()
    amount = round_half_even(
        work_milli * loaded * capacity_unit * PICO_PER_USD,
        _MILLI * loaded_unit * _SECONDS_PER_HOUR * capacity,
    )
    return Rated(amount, source="engine_rate")


def bill_of(seconds: float, rate: EngineRate) -> PicoUSD:
    """What this many provisioned seconds of the engine cost: seconds * L / 3600, rounded half-even once."""
    time, time_unit = seconds.as_integer_ratio()
    loaded, loaded_unit = _loaded_ratio(rate)
    return round_half_even(time * loaded * PICO_PER_USD, time_unit * loaded_unit * _SECONDS_PER_HOUR)


def _loaded_ratio(rate: EngineRate) -> tuple[int, int]:
    """L as an exact fraction: a decimal sum would be rounded to the context's precision."""
    cost, cost_unit = rate.usd_per_hour.as_integer_ratio()
    overhead, overhead_unit = rate.overhead_usd_per_hour.as_integer_ratio()
    return cost * overhead_unit + overhead * cost_unit, cost_unit * overhead_unit
