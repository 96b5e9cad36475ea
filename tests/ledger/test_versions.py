"""Prices and rates as versions: what the configuration says of money, as rows."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from gateway.config.schema import (
    Config,
    EndpointConfig,
    EngineConfig,
    EngineCost,
    ModelConfig,
    OverflowTarget,
    Price,
)
from gateway.ledger.versions import engine_rates, price_book, span_record

AT = "2026-12-01T00:00:00.000000+00:00"


def config(price: Price | None = None, cost: EngineCost | None = None) -> Config:
    return Config(
        engines=(
            EngineConfig(name="a", url="http://127.0.0.1:1", cost=cost),
            EngineConfig(name="b", url="http://b"),
        ),
        endpoints=(EndpointConfig(name="e", base_url="http://127.0.0.1:2/v1"),),
        models=(
            ModelConfig(
                name="m",
                engines=("a",),
                overflow=(OverflowTarget(endpoint="e", model="no-such-model", price=price),),
            ),
        ),
    )


def test_a_contract_price_is_the_targets_price() -> None:
    book = price_book(config(Price(input=Decimal("0.2"), output=Decimal("0.6"))), AT)
    price = book.prices["e", "no-such-model"]
    assert (price.input, price.output, price.cached_input) == (Decimal("0.2"), Decimal("0.6"), None)
    assert book.unpriced == []


def test_the_same_price_is_the_same_version_and_another_is_not() -> None:
    ids = [
        price_book(config(Price(input=Decimal(text), output=Decimal("0.6"))), AT)
        .prices["e", "no-such-model"]
        .price_id
        for text in ("0.2", "0.20", "0.3")
    ]
    assert ids[0] == ids[1] != ids[2]


def test_a_target_without_any_price_is_unpriced_and_not_free() -> None:
    book = price_book(config(), AT)
    assert book.unpriced == [("e", "no-such-model")]
    assert ("e", "no-such-model") not in book.prices


def test_only_engines_with_a_rate_have_one() -> None:
    rates = engine_rates(config(cost=EngineCost(usd_per_hour=Decimal("3.6"))), AT)
    assert list(rates) == ["a"]
    assert rates["a"].effective_from == AT


def test_a_stretch_of_time_has_its_part_of_the_bill() -> None:
    rates = engine_rates(config(cost=EngineCost(usd_per_hour=Decimal("3.6"))), AT)
    start = datetime(2026, 12, 1, tzinfo=UTC)
    record = span_record("a", "serving_idle", start, start + timedelta(seconds=10), 10.0, rates)
    assert record is not None
    assert record.bill == 10 * 10**9
    assert (record.start, record.rate_id) == (AT, rates["a"].rate_id)
    assert span_record("b", "serving_idle", start, start, 0.0, rates) is None
