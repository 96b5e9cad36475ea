"""Which table and which values each record becomes. Knows no connection."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from sqlalchemy import Table

from gateway.ledger.records import AttemptRecord, EngineSpan, PriceRow, RateRow, Record, RequestRecord
from gateway.ledger.schema import attempts, engine_rates, engine_seconds, prices, requests

Row = dict[str, Any]
OUT_OF_RANGE = "out_of_range"

_LARGEST = 2**63 - 1
_TABLES: dict[type[Any], Table] = {
    RequestRecord: requests,
    EngineSpan: engine_seconds,
    PriceRow: prices,
    RateRow: engine_rates,
}
_NAMES = {cls: tuple(f.name for f in fields(cls)) for cls in (*_TABLES, AttemptRecord)}


def rows_of(records: Iterable[Record]) -> dict[Table, list[Row]]:
    """The rows of these records by table. An OpenRecord has none: its request is not over."""
    rows: dict[Table, list[Row]] = defaultdict(list)
    for record in records:
        if isinstance(record, RequestRecord):
            rows[requests].append(_request_row(record))
            for attempt in record.attempts:
                rows[attempts].append(_attempt_row(record.request_id, attempt))
        elif type(record) in _TABLES:
            rows[_TABLES[type(record)]].append(_row(record))
    return rows


def _request_row(record: RequestRecord) -> Row:
    row = _row(record)
    del row["attempts"]
    flags = record.flags
    if any(_is_too_large(getattr(record, name)) for name in _NAMES[RequestRecord]):
        flags = (*flags, OUT_OF_RANGE)
    row["flags"] = ",".join(flags)
    return row


def _attempt_row(request_id: str, attempt: AttemptRecord) -> Row:
    return {"request_id": _storable(request_id), **_row(attempt)}


def _row(record: Any) -> Row:
    return {name: _storable(getattr(record, name)) for name in _NAMES[type(record)]}


def _storable(value: Any) -> Any:
    """What a database takes of a value that came from outside, so that one odd request cannot hold up all
    others.

    A count or amount past 64 bits, infinity and NaN become unknown; NUL and lone surrogates in texts, which
    PostgreSQL and UTF-8 cannot hold, become replacement characters.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return None if _is_too_large(value) else value


def _is_too_large(value: object) -> bool:
    return isinstance(value, int) and abs(value) > _LARGEST
