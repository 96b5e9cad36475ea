"""The route not taken, priced on the same tokens (cost-model §5). Knows no decision, only its reason's code.

Two honest limits. The output is assumed to be as long elsewhere (same weights, same sampling). And a
per-token target's prefix cache cannot be known for a request that it never saw, so a local request's
alternative is a band: `high` has no cached token, `low` as many as our own engine found cached for this very
request (that a whole prompt is cached is never assumed: where the engine does not report the count, `low` is
no lower than `expected`), `expected` the share that was measured on requests which did go to that target, or
`high` while there are none.
"""

from dataclasses import dataclass, replace
from typing import Literal

from gateway.costs.money import PicoUSD, Rated
from gateway.costs.prices import TokenPrice
from gateway.costs.rate import NO_PRICE, rate
from gateway.costs.work import DEFAULT_WEIGHTS, EngineRate, WorkWeights, standard, work_units
from gateway.wire.usage import Usage

Kind = Literal["serverless", "free_capacity", "queue", "preempt", "infeasible", "unknown"]

# What the engine would have had to do with the request, by the reason for which it left. Codes of
# interface.md §4.
LOCAL_KINDS: dict[str, Kind] = {
    "kv_full": "preempt",
    "preempting": "preempt",
    "queue_long": "queue",
    "ttft_slo": "queue",
    "engine_refused": "queue",
    "pinned": "free_capacity",
    "low_value": "free_capacity",
    "context_too_long": "infeasible",
    "engine_unbootable": "infeasible",
    "engine_booting": "infeasible",
    "engine_unreachable": "infeasible",
    "attempt_failed": "infeasible",
    "draining": "infeasible",
    "only_choice": "infeasible",
    "no_target": "infeasible",
}


@dataclass(frozen=True, slots=True)
class Alternative:
    """`low <= expected <= high` are `cash_marginal` in pico-USD, `standard` is that basis; None is unknown,
    see `why`.

    `equivalent` False (another quantisation or context limit) keeps the row out of any sum of avoided cost.
    """

    route: Literal["local", "overflow"]
    target: str | None
    kind: Kind
    low: PicoUSD | None
    expected: PicoUSD | None
    high: PicoUSD | None
    standard: PicoUSD | None = None
    equivalent: bool | None = None
    why: str | None = None
    flags: tuple[str, ...] = ()


def alternative_of_local(
    usage: Usage | None,
    price: TokenPrice | None,
    *,
    equivalent: bool | None = None,
    measured_share: float | None = None,
    generates: bool = True,
) -> Alternative:
    """What a request that an engine served would have cost at the target of `price`.

    `measured_share` (0..1) is the cached part of the prompt tokens of requests that did go there.
    """
    if usage is None or price is None:
        why = rate(usage, price).why
        return _unpriced(price.target if price else None, equivalent, why or NO_PRICE)
    uncached = rate(replace(usage, cached=0), price, generates=generates)
    own_share = rate(usage, price, generates=generates)
    measured = uncached
    if measured_share is not None and usage.prompt is not None:
        measured = rate(replace(usage, cached=int(usage.prompt * measured_share)), price, generates=generates)
    return _band(price.target, equivalent, own_share, measured, uncached)


def _band(target: str, equivalent: bool | None, own: Rated, measured: Rated, uncached: Rated) -> Alternative:
    if own.amount is None or measured.amount is None or uncached.amount is None:
        return _unpriced(target, equivalent, own.why or measured.why or uncached.why or NO_PRICE)
    # A measured share above our own, or a cached price above the input price, turns the order round.
    amounts = (own.amount, measured.amount, uncached.amount)
    return Alternative(
        "overflow",
        target,
        "serverless",
        min(amounts),
        measured.amount,
        max(amounts),
        equivalent=equivalent,
        flags=own.flags,
    )


def _unpriced(target: str | None, equivalent: bool | None, why: str) -> Alternative:
    return Alternative("overflow", target, "serverless", None, None, None, equivalent=equivalent, why=why)


def alternative_of_overflow(
    reason: str,
    usage: Usage | None,
    engine_rate: EngineRate | None,
    *,
    weights: WorkWeights = DEFAULT_WEIGHTS,
    generates: bool = True,
) -> Alternative:
    """What a request that went to a per-token target would have been on our engine: cash 0 while the engine
    is paid for.

    Infeasible (the engine cannot boot, or not take the request) has no local price at all, and a reason that
    says nothing about the engine (its signals were stale) has no known one. Waiting and recomputed work are
    not cash.
    """
    kind = LOCAL_KINDS.get(reason, "unknown")
    engine = engine_rate.engine if engine_rate else None
    if kind in ("infeasible", "unknown"):
        why = "no engine could serve it" if kind == "infeasible" else "the engine's state was not known"
        return Alternative("local", engine, kind, None, None, None, why=why)
    used = standard(work_units(usage, weights, generates=generates), engine_rate)
    return Alternative("local", engine, kind, 0, 0, 0, standard=used.amount, why=used.why, flags=used.flags)
