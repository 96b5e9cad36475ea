"""Tables and record types say the same."""

from dataclasses import fields
from typing import Any

import pytest
from sqlalchemy import BigInteger, Table, Text

from gateway.ledger.records import AttemptRecord, EngineSpan, PriceRow, RateRow, RequestRecord
from gateway.ledger.schema import (
    METADATA,
    attempts,
    engine_rates,
    engine_seconds,
    prices,
    requests,
    settlements,
)


@pytest.mark.parametrize(
    ("table", "record", "apart"),
    [
        (requests, RequestRecord, {"attempts"}),
        (attempts, AttemptRecord, {"request_id"}),
        (engine_seconds, EngineSpan, set()),
        (prices, PriceRow, set()),
        (engine_rates, RateRow, set()),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_column_for_every_field_and_none_besides(table: Table, record: type[Any], apart: set[str]) -> None:
    assert {column.name for column in table.columns} ^ {field.name for field in fields(record)} == apart


def test_the_tables_that_users_rely_on() -> None:
    assert set(METADATA.tables) == {
        "requests", "attempts", "prices", "engine_rates", "engine_seconds", "settlements",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "key"),
    [
        (requests, ["request_id"]),
        (attempts, ["request_id", "n"]),
        (engine_seconds, ["engine", "start"]),
        (prices, ["price_id"]),
        (engine_rates, ["rate_id"]),
        (settlements, ["window_start", "request_id", "n"]),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_key_is_what_makes_a_row_unique(table: Table, key: list[str]) -> None:
    assert [column.name for column in table.primary_key] == key


def test_amounts_are_64_bit_whole_numbers_and_may_be_unknown() -> None:
    names = ("cash_marginal", "standard", "alternative_cash", "alternative_standard", "alternative_low")
    for name in names:
        assert isinstance(requests.c[name].type, BigInteger)
        assert requests.c[name].nullable


def test_prices_are_exact_texts() -> None:
    assert all(
        isinstance(prices.c[name].type, Text) for name in ("input", "cached_input", "output", "per_request")
    )
