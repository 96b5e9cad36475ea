"""Reads a period of the ledger as sums: the only I/O of reports. Draws no conclusion from them.

The database adds up (grouped by what the report will group by, and by what decides how a row counts), so a
report over millions of requests moves a few thousand rows. Sums are taken in two halves: an SQLite SUM of
BIGINT fails above 2**63 - 1, which in pico-USD is 9.2 million USD.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Row,
    Select,
    Subquery,
    and_,
    case,
    func,
    inspect,
    literal_column,
    not_,
    or_,
    select,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from gateway.ledger.database import open_database
from gateway.ledger.errors import StoreMisconfigured, StoreUnavailable
from gateway.ledger.schema import attempts, engine_rates, engine_seconds, prices, requests
from gateway.ledger.store import Store
from gateway.reports.rows import (
    DEFAULT_BY,
    AttemptGroup,
    Key,
    LedgerRows,
    PriceUse,
    RateUse,
    RequestGroup,
    SpanGroup,
    Sum,
    hour_text,
)
from gateway.reports.spans import hourly_parts

_HALF = 10**6
_HOUR_LENGTH = len("2026-12-01T00")
_DAY_LENGTH = len("2026-12-01")
_SPANS_AT_ONCE = 2000
_MEASURES = (
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "cash_marginal",
    "standard",
    "alternative_cash",
)
_FACTS = (
    "route", "outcome", "usage_source", "is_priced", "equivalent",
    "alternative_route", "alternative_kind", "alternative_target",
)  # fmt: skip


def open_ledger(url: str) -> Engine:
    """A ledger to read. An SQLite file is opened read-only, and never made.

    Raises StoreMisconfigured for a URL that is none, or a file that is not there.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        # Says what is wrong with it, without repeating it: it may hold a password.
        return open_database(url)
    file = parsed.database
    if parsed.get_backend_name() != "sqlite" or (file or "").startswith("file:"):
        return open_database(url)
    if not file or file == ":memory:":
        raise StoreMisconfigured("a ledger in memory ends with its gateway: there is nothing to read")
    if not Path(file).is_file():
        raise StoreMisconfigured(f"there is no ledger at {file}")
    read_only = parsed.set(database=f"file:{quote(file)}", query={"mode": "ro", "uri": "true"})
    return open_database(read_only.render_as_string(hide_password=False))


def fetch(
    source: Store | Engine, since: datetime, until: datetime, by: Sequence[str] = DEFAULT_BY
) -> LedgerRows:
    """What arrived in [since, until), and the engine time in it, grouped by names of GROUPINGS. Blocking.

    All of it is one snapshot. Raises StoreUnavailable, and StoreMisconfigured where the database holds no
    ledger.
    """
    engine = source.engine if isinstance(source, Store) else source
    options = {"isolation_level": "REPEATABLE READ"} if engine.dialect.name == "postgresql" else {}
    try:
        with engine.connect().execution_options(**options) as connection:
            if not inspect(connection).has_table(requests.name):
                raise StoreMisconfigured(
                    "the database holds no ledger: a gateway makes its tables when it starts"
                )
            return _read(connection, since.astimezone(UTC), until.astimezone(UTC), tuple(by))
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        raise StoreUnavailable(f"the ledger cannot be read: {' '.join(str(cause).split())}") from error


def _read(connection: Connection, since: datetime, until: datetime, by: tuple[str, ...]) -> LedgerRows:
    keys = [_KEYS[name].label(f"key_{n}") for n, name in enumerate(by)]
    arrived = and_(requests.c.t_in >= _bound(since), requests.c.t_in < _bound(until))
    found = tuple(_request_groups(connection, keys, arrived, by))
    tried = tuple(_attempt_groups(connection, keys, arrived, by))
    spans = tuple(_span_groups(connection, since, until))
    return LedgerRows(
        by=by,
        requests=found,
        attempts=tried,
        spans=spans,
        prices=tuple(_prices(connection, {a.price_id for a in tried if a.price_id is not None})),
        rates=tuple(_rates(connection, {span.rate_id for span in spans})),
    )


def _bound(utc: datetime) -> str:
    """A time as the ledger's texts compare with it: they go on with a fraction or an offset, so they sort
    after it.
    """
    return utc.replace(tzinfo=None).isoformat()


def _head(column: Column[str], length: int) -> ColumnElement[str]:
    # Written out: PostgreSQL takes the same expression with two bound parameters for two expressions.
    return func.substr(column, literal_column("1"), literal_column(str(length)))


_KEYS: Mapping[str, ColumnElement[Any]] = {
    "model": requests.c.model,
    "route": requests.c.route,
    "reason": requests.c.reason,
    "key": requests.c.key,
    "engine": case((requests.c.route == "local", requests.c.target)),
    "endpoint": case((requests.c.route == "overflow", requests.c.target)),
    "target": requests.c.target,
    "policy": requests.c.policy,
    "outcome": requests.c.outcome,
    "hour": _head(requests.c.t_in, _HOUR_LENGTH),
    "day": _head(requests.c.t_in, _DAY_LENGTH),
    "tag": requests.c.tags,
}


def _request_groups(
    connection: Connection,
    keys: Sequence[ColumnElement[Any]],
    arrived: ColumnElement[bool],
    by: tuple[str, ...],
) -> Iterator[RequestGroup]:
    is_priced = requests.c.cash_marginal.is_not(None).label("is_priced")
    facts = [is_priced if name == "is_priced" else requests.c[name] for name in _FACTS]
    rows = select(*keys, *facts, *(requests.c[name] for name in _MEASURES)).where(arrived).subquery()
    for row in connection.execute(_summed(rows, len(keys) + len(facts), _MEASURES)):
        fact = row._mapping
        yield RequestGroup(
            key=_key(row, by),
            route=fact["route"],
            outcome=fact["outcome"],
            usage_source=fact["usage_source"],
            is_priced=fact["is_priced"],
            equivalent=fact["equivalent"],
            alternative_route=fact["alternative_route"],
            alternative_kind=fact["alternative_kind"],
            alternative_target=fact["alternative_target"],
            requests=fact["rows_in_it"],
            prompt=_sum(fact, "prompt_tokens"),
            cached=_sum(fact, "cached_tokens"),
            completion=_sum(fact, "completion_tokens"),
            cash_marginal=_sum(fact, "cash_marginal"),
            standard=_sum(fact, "standard"),
            alternative_cash=_sum(fact, "alternative_cash"),
        )


def _attempt_groups(
    connection: Connection,
    keys: Sequence[ColumnElement[Any]],
    arrived: ColumnElement[bool],
    by: tuple[str, ...],
) -> Iterator[AttemptGroup]:
    a = attempts.c
    facts = (
        requests.c.route.label("request_route"), a.route, a.target,
        a.status.is_not(None).label("answered"), a.price_id,
    )  # fmt: skip
    both = requests.join(attempts, a.request_id == requests.c.request_id)
    rows = select(*keys, *facts, a.cash_marginal).select_from(both).where(arrived).subquery()
    for row in connection.execute(_summed(rows, len(keys) + len(facts), ("cash_marginal",))):
        fact = row._mapping
        yield AttemptGroup(
            key=_key(row, by),
            request_route=fact["request_route"],
            route=fact["route"],
            target=fact["target"],
            answered=fact["answered"],
            price_id=fact["price_id"],
            attempts=fact["rows_in_it"],
            cash_marginal=_sum(fact, "cash_marginal"),
        )


def _summed(rows: Subquery, alike: int, measures: Sequence[str]) -> Select[Any]:
    """Rows grouped by their first columns, with each measure's two half sums and how many rows have it."""
    groups = list(rows.c)[:alike]
    sums: list[ColumnElement[Any]] = [func.count().label("rows_in_it")]
    for name in measures:
        column = rows.c[name]
        sums += [
            func.sum(column // _HALF).label(f"{name}_high"),
            func.sum(column % _HALF).label(f"{name}_low"),
            func.count(column).label(f"{name}_known"),
        ]
    return select(*groups, *sums).group_by(*groups)


def _sum(row: Mapping[Any, Any], name: str) -> Sum:
    # PostgreSQL gives sums as Decimal; where no row is known they are NULL.
    high, low = row[f"{name}_high"] or 0, row[f"{name}_low"] or 0
    return Sum(int(high) * _HALF + int(low), row[f"{name}_known"])


def _key(row: Row[Any], by: tuple[str, ...]) -> Key:
    return tuple(f"{value}:00Z" if name == "hour" else value for name, value in zip(by, row, strict=False))


def _span_groups(connection: Connection, since: datetime, until: datetime) -> Iterator[SpanGroup]:
    """Stretches inside one hour of the period are added up there; those across an edge are cut here.

    One scan: a stretch across an edge keeps its start and end, and so stays a group of its own.
    """
    s, first, last = engine_seconds.c, _bound(since), _bound(until)
    hour = _head(s.start, _HOUR_LENGTH)
    inside = and_(s.start >= first, s.end < last, hour == _head(s.end, _HOUR_LENGTH))
    # A wall clock that was set back can put an end before its start.
    overlaps = and_(s.start < last, or_(s.end > first, s.start >= first))
    own_start, own_end = (case((not_(inside), c)).label(f"own_{c.name}") for c in (s.start, s.end))
    alike = (s.engine, s.partition, s.rate_id, hour.label("hour"), own_start, own_end)
    rows = select(*alike, s.seconds, s.bill).where(overlaps).subquery()
    summed = _summed(rows, len(alike), ("bill",)).add_columns(func.sum(rows.c.seconds).label("seconds"))
    for row in connection.execute(summed, execution_options={"yield_per": _SPANS_AT_ONCE}):
        fact = row._mapping
        alike_text = fact["engine"], fact["partition"], fact["rate_id"]
        bill, seconds = _sum(fact, "bill").amount, fact["seconds"]
        if fact["own_start"] is None:
            yield SpanGroup(*alike_text, f"{fact['hour']}:00Z", seconds, bill)
            continue
        times = datetime.fromisoformat(fact["own_start"]), datetime.fromisoformat(fact["own_end"])
        for part in hourly_parts(*times, seconds, bill, since, until):
            yield SpanGroup(*alike_text, hour_text(part.hour), part.seconds, part.bill)


def _prices(connection: Connection, ids: set[str]) -> Iterator[PriceUse]:
    names = tuple(PriceUse.__dataclass_fields__)
    query = select(*(prices.c[name] for name in names)).where(prices.c.price_id.in_(sorted(ids)))
    known = {row.price_id: PriceUse(*row) for row in connection.execute(query)}
    for price_id in sorted(ids):
        yield known.get(price_id) or PriceUse(price_id, *(None for _ in names[1:]))


def _rates(connection: Connection, ids: set[str]) -> Iterator[RateUse]:
    names = tuple(RateUse.__dataclass_fields__)
    query = select(*(engine_rates.c[name] for name in names)).where(engine_rates.c.rate_id.in_(sorted(ids)))
    for row in connection.execute(query.order_by(engine_rates.c.engine, engine_rates.c.effective_from)):
        yield RateUse(*row)
