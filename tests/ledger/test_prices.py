"""Where prices come from."""

import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest

from gateway.costs.prices import TokenPrice
from gateway.costs.work import new_engine_rate
from gateway.ledger.prices import (
    ContractPrice,
    PriceBook,
    PricedTarget,
    bundled_map,
    price_row,
    rate_row,
    read_map,
)

NOW = "2026-12-01T00:00:00.000000Z"
MapMaker = Callable[[dict[str, Any]], Path]


@pytest.fixture
def price_map(tmp_path: Path) -> MapMaker:
    """A map file; numbers are written as they are given."""

    def make(entries: dict[str, Any]) -> Path:
        path = tmp_path / "map.json"
        path.write_text(json.dumps(entries))
        return path

    return make


def priced(
    path: Path | None, remote_model: str, kind: Literal["openai", "litellm"] = "litellm"
) -> TokenPrice | None:
    book = PriceBook([PricedTarget("serverless", kind, remote_model)], NOW, path)
    assert (("serverless", remote_model) in book.unpriced) == (
        book.price_for("serverless", remote_model) is None
    )
    return book.price_for("serverless", remote_model)


def test_a_contract_price_is_taken_as_it_is_and_the_map_left_alone(tmp_path: Path) -> None:
    contract = ContractPrice(Decimal("0.40"), Decimal("0.70"), cached_input=Decimal("0.10"))
    target = PricedTarget("serverless", "litellm", "gpt-4o", contract)
    book = PriceBook([target], NOW, tmp_path)
    price = book.price_for("serverless", "gpt-4o")
    assert price is not None
    assert (price.input, price.cached_input, price.output) == (
        Decimal("0.40"),
        Decimal("0.10"),
        Decimal("0.70"),
    )
    assert (price.source, price.effective_from, book.unpriced) == ("contract", NOW, [])


def test_floats_of_the_map_are_taken_to_the_digit(price_map: MapMaker) -> None:
    path = price_map({})
    path.write_text(
        '{"p/m": {"input_cost_per_token": 1.0000000000000001e-07, "output_cost_per_token": 3e-07}}'
    )
    price = priced(path, "p/m")
    assert price is not None
    assert price.input == Decimal("0.10000000000000001")
    assert price.output == Decimal("0.3")
    assert (price.cached_input, price.source) == (None, "map")


def test_the_installed_map_is_found_and_read_without_importing_litellm() -> None:
    code = (
        "import sys\n"
        "from gateway.ledger.prices import PriceBook, PricedTarget\n"
        "book = PriceBook([PricedTarget('s', 'litellm', 'groq/openai/gpt-oss-120b')], 't')\n"
        "price = book.price_for('s', 'groq/openai/gpt-oss-120b')\n"
        "print(price.input.normalize(), price.output.normalize(), 'litellm' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=20
    )
    entry = read_map(bundled_map())["groq/openai/gpt-oss-120b"]
    million = Decimal(1_000_000)
    expected = [
        (entry[name] * million).normalize() for name in ("input_cost_per_token", "output_cost_per_token")
    ]
    assert done.stdout.split() == [str(expected[0]), str(expected[1]), "False"]


def test_every_token_price_of_the_installed_map_is_exact() -> None:
    entries = read_map(bundled_map())
    assert len(entries) > 1000
    names = [name for name in entries if name != "sample_spec"]
    book = PriceBook([PricedTarget("s", "litellm", name) for name in names], NOW)
    assert len(book.prices) > 1000
    for (_, name), price in book.prices.items():
        per_token = entries[name].get("input_cost_per_token")
        assert price.input is None if per_token is None else price.input == per_token * 1_000_000
        assert price.input is None or price.input >= 0


@pytest.mark.parametrize("name", ["groq/openai/gpt-oss", "openai/gpt-oss-120b-x", "GPT-4o", ""])
def test_a_similar_name_is_another_model(name: str) -> None:
    assert priced(None, name) is None


@pytest.mark.parametrize(
    ("kind", "found"), [("openai", True), ("litellm", False)], ids=["openai kind", "litellm kind"]
)
def test_an_openai_endpoint_also_tries_the_name_without_its_provider(
    price_map: MapMaker, kind: Literal["openai", "litellm"], found: bool
) -> None:
    path = price_map({"gpt-4o": {"input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05}})
    assert (priced(path, "openai/gpt-4o", kind) is not None) == found


def test_the_whole_name_comes_before_the_one_without_provider(price_map: MapMaker) -> None:
    path = price_map(
        {
            "m": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06},
            "org/m": {"input_cost_per_token": 2e-06, "output_cost_per_token": 2e-06},
        }
    )
    price = priced(path, "org/m", "openai")
    assert price is not None
    assert price.input == Decimal(2)


@pytest.mark.parametrize(
    "entry",
    [
        {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
        {"input_cost_per_token": 0.0, "input_cost_per_query": 0.002, "mode": "rerank"},
        {"input_cost_per_second": 0.0001},
        {"input_cost_per_token": "1e-6", "output_cost_per_token": "1e-6"},
        {"input_cost_per_token": -1e-06, "output_cost_per_token": 1e-06},
        {"input_cost_per_token": 0.15, "output_cost_per_token": 0.6},
        {
            "tiered_pricing": [{"range": [0, 32000]}],
            "input_cost_per_token": 1e-06,
            "output_cost_per_token": 1e-06,
        },
        {},
        [],
    ],
    ids=[
        "zero",
        "per query",
        "per second",
        "text",
        "negative",
        "per million",
        "tiered",
        "empty",
        "no object",
    ],
)
def test_an_entry_that_does_not_say_a_token_price_is_unknown(price_map: MapMaker, entry: Any) -> None:
    assert priced(price_map({"p/m": entry}), "p/m") is None


def test_an_embedding_bills_nothing_for_output(price_map: MapMaker) -> None:
    price = priced(price_map({"e": {"input_cost_per_token": 2e-08, "output_cost_per_token": 0.0}}), "e")
    assert price is not None
    assert (price.input, price.output) == (Decimal("0.02"), Decimal(0))


def test_a_long_context_step_limits_what_the_price_holds_for(price_map: MapMaker) -> None:
    entry = {
        "input_cost_per_token": 1e-06,
        "output_cost_per_token": 1e-06,
        "input_cost_per_token_above_272k_tokens": 2e-06,
        "output_cost_per_token_above_200k_tokens": 2e-06,
        "input_cost_per_token_above_128k_tokens": None,
        "input_cost_per_token_above_32k_tokens_priority": 3e-06,
    }
    price = priced(price_map({"p/m": entry}), "p/m")
    assert price is not None
    assert price.longest_prompt == 200_000


@pytest.mark.parametrize("content", ["", "[]", "{", "null"])
def test_an_unreadable_map_leaves_prices_unknown(tmp_path: Path, content: str) -> None:
    path = tmp_path / "map.json"
    path.write_text(content)
    assert priced(path, "gpt-4o") is None
    assert priced(tmp_path / "none.json", "gpt-4o") is None


def test_the_name_that_comes_back_from_a_target_has_no_price(price_map: MapMaker) -> None:
    path = price_map({"provider/m": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06}})
    book = PriceBook([PricedTarget("serverless", "litellm", "provider/m")], NOW, path)
    assert book.price_for("serverless", "provider/m") is not None
    assert book.price_for("serverless", "m") is None
    assert book.price_for("other", "provider/m") is None


def test_the_same_model_at_two_endpoints_is_two_prices() -> None:
    def contract(amount: str) -> ContractPrice:
        return ContractPrice(Decimal(amount), Decimal(amount))

    targets = [
        PricedTarget("a", "openai", "m", contract("1")),
        PricedTarget("b", "openai", "m", contract("1")),
    ]
    book = PriceBook(targets, NOW)
    first, second = book.price_for("a", "m"), book.price_for("b", "m")
    assert first is not None
    assert second is not None
    assert first.price_id != second.price_id


def test_a_price_is_kept_as_exact_texts() -> None:
    contract = ContractPrice(Decimal("0.40"), Decimal("1E+1"), per_request=Decimal("0.0050"))
    price = PriceBook([PricedTarget("a", "openai", "m", contract)], NOW).price_for("a", "m")
    assert price is not None
    row = price_row(price)
    assert (row.input, row.cached_input, row.output, row.per_request) == ("0.4", None, "10", "0.005")
    assert (row.price_id, row.target, row.remote_model, row.source) == (price.price_id, "a", "m", "contract")
    assert len(row.hash) == 64


def test_a_rate_is_kept_as_exact_texts() -> None:
    rate = new_engine_rate("h100-a", NOW, usd_per_hour=Decimal("5.80"), capacity=Decimal("8000"))
    row = rate_row(rate)
    assert (row.usd_per_hour, row.overhead_usd_per_hour, row.capacity, row.billing) == (
        "5.8",
        "0",
        "8000",
        "on_demand",
    )
    assert (row.rate_id, row.engine, row.effective_from) == (rate.rate_id, "h100-a", NOW)
