"""Records as rows that any database takes."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from gateway.ledger.records import AttemptRecord, EngineSpan, OpenRecord, PriceRow, RateRow, RequestRecord
from gateway.ledger.rows import rows_of
from gateway.ledger.schema import attempts, engine_rates, engine_seconds, prices, requests

Requests = Callable[..., RequestRecord]
Attempts = Callable[..., AttemptRecord]


def test_a_request_is_a_row_and_each_attempt_another(
    request_record: Requests, attempt_record: Attempts
) -> None:
    record = request_record("a", attempts=(attempt_record(n=1), attempt_record(n=2)), flags=("x", "y"))
    rows = rows_of([record])
    assert [(row["request_id"], row["flags"]) for row in rows[requests]] == [("a", "x,y")]
    assert [(row["request_id"], row["n"]) for row in rows[attempts]] == [("a", 1), ("a", 2)]


def test_a_request_without_attempts_asks_nothing_of_their_table(request_record: Requests) -> None:
    assert set(rows_of([request_record(attempts=())])) == {requests}


def test_an_opening_is_no_row(open_record: Callable[..., OpenRecord]) -> None:
    assert rows_of([open_record()]) == {}


def test_other_records_go_to_their_tables(
    span: EngineSpan, price_version: PriceRow, rate_version: RateRow
) -> None:
    rows = rows_of([span, price_version, rate_version])
    assert {table.name: len(values) for table, values in rows.items()} == {
        engine_seconds.name: 1,
        prices.name: 1,
        engine_rates.name: 1,
    }


@pytest.mark.parametrize("count", [2**63, -(2**63) - 1, 10**30])
def test_a_count_past_64_bits_is_unknown_and_said(request_record: Requests, count: int) -> None:
    row = rows_of([request_record(prompt_tokens=count, flags=("x",))])[requests][0]
    assert (row["prompt_tokens"], row["flags"]) == (None, "x,out_of_range")


@pytest.mark.parametrize(
    ("field", "value", "stored"),
    [
        ("prompt_tokens", 2**63 - 1, 2**63 - 1),
        ("duration_ms", math.nan, None),
        ("duration_ms", math.inf, None),
        ("requested_model", "a\0b", "a\ufffdb"),
        ("requested_model", "\ud800", "?"),
        ("stream", True, True),
        ("status", None, None),
    ],
)
def test_odd_values_are_made_storable(request_record: Requests, field: str, value: Any, stored: Any) -> None:
    row = rows_of([request_record(**{field: value})])[requests][0]
    assert row[field] == stored
    assert "out_of_range" not in row["flags"]
