"""What a set of requests and a stretch of engine time come to. Pure; knows no grouping and no format.

The rules of a figure (cost-model §0, §5, §8): unknown is None and never 0; a sum with parts missing is the
sum of what is known and is marked by their count, and is None where what is known is nothing; bases are never
added up.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Literal, NamedTuple

from gateway.costs.money import PicoUSD
from gateway.reports.rows import AttemptGroup, RequestGroup, SpanGroup, Sum

OutcomeClass = Literal["ok", "failed", "shed", "rejected", "client_left"]

# Everything else failed, also a word that a newer gateway wrote.
_CLASSES: Mapping[str, OutcomeClass] = {
    "ok": "ok",
    "shed": "shed",
    "rejected": "rejected",
    "client_gone": "client_left",
    "client_slow": "client_left",
}
_NEVER_SENT: frozenset[OutcomeClass] = frozenset(("shed", "rejected"))
BUSY = "serving_busy"
_OTHER_ROUTE = {"local": "overflow", "overflow": "local"}


class Outcomes(NamedTuple):
    """Requests by how they ended; their sum is all requests. `rejected`: the client's fault, never sent."""

    ok: int = 0
    failed: int = 0
    shed: int = 0
    rejected: int = 0
    client_left: int = 0


class Tokens(NamedTuple):
    """Tokens of the attempts that answered. `prompt` includes `cached`. None: none is known."""

    prompt: int | None
    cached: int | None
    completion: int | None


class Unpriced(NamedTuple):
    """Requests whose cash_marginal is unknown, and those of their tokens that are known."""

    requests: int
    tokens: int


class Missing(NamedTuple):
    """How many requests a sum lacks because their part is unknown."""

    prompt: int
    cached: int
    completion: int
    standard: int
    alternative: int
    all_overflow: int


class LeftOut(NamedTuple):
    """Requests that no sum of alternatives has, for a reason: nothing is unknown about them.

    `not_equivalent`: the endpoint would serve something else (other quantisation or context). `no_usage`: an
    engine had it, but nothing was counted: it failed, or its path has no tokens. `infeasible`: no engine
    could have served it.
    """

    not_equivalent: int
    no_usage: int
    infeasible: int


class Bill(NamedTuple):
    """Engine time in pico-USD; None where not known. `without`: engines that answered and have no time on
    record.
    """

    amount: PicoUSD | None
    idle: PicoUSD | None
    without: tuple[str, ...] = ()


NO_BILL = Bill(None, None)
NOTHING_TO_BILL = Bill(0, 0)


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything a report says of one set of requests. Amounts in pico-USD; see columns.py for each one's
    meaning.
    """

    requests: int
    outcomes: Outcomes
    tokens: Tokens
    engine_bill: PicoUSD | None
    idle: PicoUSD | None
    overflow: PicoUSD | None
    cash_marginal: PicoUSD | None
    standard: PicoUSD | None
    attributed: PicoUSD | None
    loaded: PicoUSD | None
    alternative: PicoUSD | None
    all_overflow: PicoUSD | None
    net_position: PicoUSD | None
    net_position_of_known: PicoUSD | None
    unpriced: Unpriced
    missing: Missing
    left_out: LeftOut
    coverage: float | None


def bill_of(spans: Iterable[SpanGroup], answering: Iterable[str]) -> Bill:
    """The bill of these stretches, where every engine that answered in the meantime has at least one."""
    stretches = tuple(spans)
    without = tuple(sorted(set(answering) - {span.engine for span in stretches}))
    if without or not stretches:
        return Bill(None, None, without)
    idle = sum(span.bill for span in stretches if span.partition != BUSY)
    return Bill(sum(span.bill for span in stretches), idle)


def answering_engines(attempts: Iterable[AttemptGroup]) -> set[str]:
    """Engines that answered at least one attempt, whatever they said."""
    return {a.target for a in attempts if a.route == "local" and a.answered}


def figures_of(
    requests: Iterable[RequestGroup], attempts: Iterable[AttemptGroup], bill: Bill, *, net: bool = True
) -> Figures:
    """Add up. `net` False: the bill is not that of these requests, so there is no net position."""
    groups, tries = tuple(requests), tuple(attempts)
    outcomes = _outcomes(groups)
    total = sum(group.requests for group in groups)
    cash, standard = _total(g.cash_marginal for g in groups), _total(g.standard for g in groups)
    unpriced = total - cash.known
    spent = _endpoint_cash(tries)
    other = _alternatives(groups)
    everything = _all_overflow(groups, tries, other)
    # Where every request is left out there is nothing to compare with: unknown, not free.
    uncompared = other.left_out.not_equivalent + other.left_out.no_usage
    elsewhere = _figure(everything.amount, everything.unknown + uncompared)
    net_of_known = _net(everything.amount, bill.amount, spent.amount) if net else None
    tokens, lacking = _tokens(groups)
    return Figures(
        requests=total,
        outcomes=outcomes,
        tokens=tokens,
        engine_bill=bill.amount,
        idle=bill.idle,
        overflow=_figure(spent.amount, unpriced),
        cash_marginal=_figure(cash.amount, unpriced),
        standard=_figure(standard.amount, total - standard.known),
        # Shares of the bill, which only a settlement gives.
        attributed=None,
        loaded=None,
        alternative=None if other.is_unknown else other.amount,
        all_overflow=elsewhere,
        net_position=None if unpriced or everything.unknown or elsewhere is None else net_of_known,
        net_position_of_known=net_of_known,
        unpriced=Unpriced(unpriced, sum(_known_tokens(g) for g in groups if not g.is_priced)),
        missing=Missing(*lacking, total - standard.known, other.unknown, everything.unknown),
        left_out=other.left_out,
        coverage=_coverage(groups, total - outcomes.shed - outcomes.rejected),
    )


def outcome_class(outcome: str) -> OutcomeClass:
    """Which of the five classes an outcome of the ledger is in."""
    return _CLASSES.get(outcome, "failed")


class _Alternatives(NamedTuple):
    """Sums of the routes not taken: all of them, and those of requests that engines had."""

    amount: int
    priced: int
    unknown: int
    of_local: int
    of_local_unknown: int
    left_out: LeftOut

    @property
    def is_unknown(self) -> bool:
        """Is there a request that should have one, and none that has?"""
        return not self.priced and self.unknown + sum(self.left_out) > 0


class _Partial(NamedTuple):
    amount: int
    unknown: int


def _figure(amount: int, unknown: int) -> int | None:
    """A sum of what is known; where that is nothing and something is unknown, it is unknown."""
    return None if unknown and not amount else amount


def _total(sums: Iterable[Sum]) -> Sum:
    return reduce(Sum.plus, sums, Sum())


def _outcomes(groups: Iterable[RequestGroup]) -> Outcomes:
    counts = dict.fromkeys(Outcomes._fields, 0)
    for group in groups:
        counts[outcome_class(group.outcome)] += group.requests
    return Outcomes(**counts)


def _tokens(groups: Iterable[RequestGroup]) -> tuple[Tokens, tuple[int, int, int]]:
    """Sums, and how many of the requests with any count lack each: what used nothing lacks nothing."""
    groups = tuple(groups)
    counted = sum(g.requests for g in groups if g.usage_source != "none")
    sums = [_total(getattr(g, field) for g in groups) for field in Tokens._fields]
    prompt, cached, completion = (max(0, counted - s.known) for s in sums)
    figures = (_figure(s.amount, n) for s, n in zip(sums, (prompt, cached, completion), strict=True))
    return Tokens(*figures), (prompt, cached, completion)


def _known_tokens(group: RequestGroup) -> int:
    return group.prompt.amount + group.completion.amount


def _endpoint_cash(attempts: Iterable[AttemptGroup]) -> Sum:
    return _total(a.cash_marginal for a in attempts if a.route == "overflow")


def _alternatives(groups: Iterable[RequestGroup]) -> _Alternatives:
    amount = priced = unknown = of_local = of_local_unknown = 0
    left_out = dict.fromkeys(LeftOut._fields, 0)
    for group in groups:
        if group.route not in _OTHER_ROUTE:
            continue
        why = _why_left_out(group)
        if why is not None:
            left_out[why] += group.requests
            continue
        known = group.alternative_cash if group.alternative_route == _OTHER_ROUTE[group.route] else Sum()
        lacking = group.requests - known.known
        amount, priced, unknown = amount + known.amount, priced + known.known, unknown + lacking
        if group.route == "local":
            of_local, of_local_unknown = of_local + known.amount, of_local_unknown + lacking
    return _Alternatives(amount, priced, unknown, of_local, of_local_unknown, LeftOut(**left_out))


def _why_left_out(group: RequestGroup) -> str | None:
    if group.route == "overflow":
        return "infeasible" if group.alternative_kind == "infeasible" else None
    if group.usage_source == "none":
        return "no_usage"
    return "not_equivalent" if group.equivalent is False else None


def _all_overflow(
    groups: Iterable[RequestGroup], attempts: Iterable[AttemptGroup], other: _Alternatives
) -> _Partial:
    """Every request at the endpoints: those that went there at their own price, the others at their
    alternative.
    """
    own = _endpoint_cash(a for a in attempts if a.request_route != "local")
    own_unknown = sum(g.requests for g in groups if g.route != "local" and not g.is_priced)
    return _Partial(own.amount + other.of_local, own_unknown + other.of_local_unknown)


def _net(all_overflow: int, bill: int | None, spent: int) -> int | None:
    return None if bill is None else all_overflow - (bill + spent)


def _coverage(groups: Iterable[RequestGroup], sent: int) -> float | None:
    """The share of requests that were sent anywhere whose tokens were reported, not estimated and not
    missing.
    """
    reported = sum(
        g.requests
        for g in groups
        if g.usage_source == "reported" and outcome_class(g.outcome) not in _NEVER_SENT
    )
    return reported / sent if sent else None
