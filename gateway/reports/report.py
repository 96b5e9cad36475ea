"""Builds the cost report of a period from the ledger's rows. Pure; knows neither the database nor any
format.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from gateway.costs.money import PicoUSD
from gateway.reports.figures import (
    BUSY,
    NO_BILL,
    NOTHING_TO_BILL,
    Bill,
    Figures,
    answering_engines,
    bill_of,
    figures_of,
)
from gateway.reports.notes import notes_on
from gateway.reports.rows import (
    DEFAULT_BY,
    AttemptGroup,
    Key,
    LedgerRows,
    PriceUse,
    RateUse,
    RequestGroup,
    SpanGroup,
)

Basis = Literal["cash_marginal", "standard", "attributed", "loaded"]
BASES: tuple[Basis, ...] = get_args(Basis)

# What a stretch of engine time says of itself. Grouped by anything else, the bill has no group to be in: only
# a settlement shares it out to requests.
_SPAN_KEYS: Mapping[str, Callable[[SpanGroup], str]] = {
    "engine": lambda span: span.engine,
    "target": lambda span: span.engine,
    "hour": lambda span: span.hour,
    "day": lambda span: span.hour[: len("2026-12-01")],
}
_TIMES = frozenset(("hour", "day"))


@dataclass(frozen=True, slots=True)
class Row:
    """One group; `key` in the order of the report's `by`, None where a request has no such thing."""

    key: Key
    figures: Figures


@dataclass(frozen=True, slots=True)
class EngineTime:
    """One engine's provisioned time in the period and its bill in pico-USD. `seconds` by state of the
    partition.
    """

    engine: str
    bill: PicoUSD
    idle: PicoUSD
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Report:
    """What a period cost. Every format shows these values and works out none.

    `compared_with`: the endpoints at whose prices local requests were compared. `since` is in the period,
    `until` is not; both are UTC.
    """

    since: datetime
    until: datetime
    by: tuple[str, ...]
    basis: Basis
    generated_at: datetime
    rows: tuple[Row, ...]
    totals: Figures
    engines: tuple[EngineTime, ...]
    prices: tuple[PriceUse, ...]
    rates: tuple[RateUse, ...]
    compared_with: tuple[str, ...]
    notes: tuple[str, ...]


def build(
    rows: LedgerRows,
    *,
    since: datetime,
    until: datetime,
    by: Sequence[str] = DEFAULT_BY,
    basis: Basis = "cash_marginal",
    generated_at: datetime | None = None,
) -> Report:
    """The report of [since, until), grouped by `by`, which must be among what `rows` is grouped by.

    `basis` orders the groups. `generated_at` None: at the end of the period.
    """
    wanted = tuple(dict.fromkeys(by))
    totals = figures_of(rows.requests, rows.attempts, bill_of(rows.spans, answering_engines(rows.attempts)))
    groups = [Row(key, _figures(wanted, key, *parts)) for key, parts in _grouped(rows, wanted).items()]
    engines = _engines(rows.spans)
    return Report(
        since=since,
        until=until,
        by=wanted,
        basis=basis,
        generated_at=generated_at or until,
        rows=tuple(sorted(groups, key=lambda row: _order(wanted, row, basis))),
        totals=totals,
        engines=engines,
        prices=rows.prices,
        rates=rows.rates,
        compared_with=_compared_with(rows.requests),
        notes=tuple(
            notes_on(
                totals,
                bill_is_split=_splits_bill(wanted),
                without=bill_of(rows.spans, answering_engines(rows.attempts)).without,
                recorded={e.engine: sum(e.seconds.values()) for e in engines},
                rates=rows.rates,
                period_seconds=(until - since).total_seconds(),
            )
        ),
    )


_Parts = tuple[list[RequestGroup], list[AttemptGroup], list[SpanGroup]]


def _grouped(rows: LedgerRows, by: tuple[str, ...]) -> Mapping[Key, _Parts]:
    """Each group's parts. Engine time makes groups of its own: an engine that nobody used has a bill too."""
    places = [rows.by.index(name) for name in by]
    groups: defaultdict[Key, _Parts] = defaultdict(lambda: ([], [], []))
    for request in rows.requests:
        groups[tuple(request.key[place] for place in places)][0].append(request)
    for attempt in rows.attempts:
        groups[tuple(attempt.key[place] for place in places)][1].append(attempt)
    if _splits_bill(by):
        for span in rows.spans:
            groups[tuple(_SPAN_KEYS[name](span) for name in by)][2].append(span)
    return groups


def _splits_bill(by: tuple[str, ...]) -> bool:
    return all(name in _SPAN_KEYS for name in by)


def _figures(
    by: tuple[str, ...],
    key: Key,
    requests: list[RequestGroup],
    attempts: list[AttemptGroup],
    spans: list[SpanGroup],
) -> Figures:
    bill = _group_bill(by, key, attempts, spans) if _splits_bill(by) else NO_BILL
    return figures_of(requests, attempts, bill, net=_TIMES.issuperset(by))


def _group_bill(by: tuple[str, ...], key: Key, attempts: list[AttemptGroup], spans: list[SpanGroup]) -> Bill:
    answering = answering_engines(attempts)
    names = {value for name, value in zip(by, key, strict=True) if name not in _TIMES}
    if not names:
        return bill_of(spans, answering)
    # A group of one engine has that engine's bill, whoever else was tried for its requests; an endpoint's has
    # none.
    answering &= names
    return bill_of(spans, answering) if spans or answering else NOTHING_TO_BILL


def _order(by: tuple[str, ...], row: Row, basis: Basis) -> tuple[object, ...]:
    """In order of time; within it what costs most first, then what is most."""
    times = tuple(value or "" for name, value in zip(by, row.key, strict=True) if name in _TIMES)
    cost = getattr(row.figures, basis)
    names = tuple(value or "" for value in row.key)
    return times, -(cost or 0), -row.figures.requests, names


def _engines(spans: Iterable[SpanGroup]) -> tuple[EngineTime, ...]:
    by_engine: defaultdict[str, list[SpanGroup]] = defaultdict(list)
    for span in spans:
        by_engine[span.engine].append(span)
    return tuple(_engine_time(name, by_engine[name]) for name in sorted(by_engine))


def _engine_time(name: str, spans: list[SpanGroup]) -> EngineTime:
    seconds: defaultdict[str, float] = defaultdict(float)
    for span in spans:
        seconds[span.partition] += span.seconds
    idle = sum(span.bill for span in spans if span.partition != BUSY)
    return EngineTime(name, sum(span.bill for span in spans), idle, dict(sorted(seconds.items())))


def _compared_with(requests: Iterable[RequestGroup]) -> tuple[str, ...]:
    return tuple(
        sorted(
            {
                r.alternative_target
                for r in requests
                if r.route == "local" and r.alternative_target is not None and r.alternative_cash.known
            }
        )
    )
