"""What a usage costs: exact by example, monotone and linear by property, and equal to an outside oracle."""

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.costs.money import usd_text
from gateway.costs.prices import TokenPrice, new_price
from gateway.costs.rate import CACHE_PRICE_MISSING, USAGE_ESTIMATED, rate
from gateway.costs.tokens import INCONSISTENT
from gateway.ledger.prices import PriceBook, PricedTarget
from gateway.wire.usage import Usage

PriceMaker = Callable[..., TokenPrice]
COUNTS = st.integers(0, 10**6)


def prices_of(digits: int) -> st.SearchStrategy[TokenPrice]:
    """Prices of up to `digits` decimals, with cached at most input."""

    def build(input: Decimal, share: Decimal, output: Decimal, per_request: Decimal | None) -> TokenPrice:
        cached = (input * share).quantize(Decimal(1).scaleb(-digits))
        return new_price(
            "a",
            "m",
            "t",
            input=input,
            cached_input=min(cached, input),
            output=output,
            per_request=per_request,
        )

    amounts = st.decimals(0, 1000, places=digits, allow_nan=False)
    return st.builds(build, amounts, st.decimals(0, 1, places=2), amounts, st.none() | amounts)


def usages() -> st.SearchStrategy[Usage]:
    def build(uncached: int, cached: int, completion: int) -> Usage:
        return Usage(uncached + cached, cached, completion, 0, "reported")

    return st.builds(build, COUNTS, COUNTS, COUNTS)


def cost(usage: Usage, price: TokenPrice) -> int:
    amount = rate(usage, price).amount
    assert amount is not None
    return amount


def test_cached_tokens_cost_the_cached_price_once(price: PriceMaker) -> None:
    usage = Usage(prompt=1000, cached=900, completion=100, source="reported")
    rated = rate(usage, price("1.00", "0.10", "4.00"))
    assert usd_text(rated.amount) == "0.00059"
    assert (rated.flags, rated.why, rated.source) == ((), None, "contract")


def test_without_a_cached_price_cached_tokens_cost_full_price_and_it_is_said(price: PriceMaker) -> None:
    usage = Usage(prompt=1000, cached=900, completion=100, source="reported")
    rated = rate(usage, price("1.00", None, "4.00"))
    assert usd_text(rated.amount) == "0.0014"
    assert rated.flags == (CACHE_PRICE_MISSING,)


def test_a_cached_price_of_zero_is_a_price(price: PriceMaker) -> None:
    usage = Usage(prompt=1000, cached=900, completion=100, source="reported")
    rated = rate(usage, price("1.00", "0", "4.00"))
    assert (usd_text(rated.amount), rated.flags) == ("0.0005", ())


def test_more_cached_than_prompt_is_billed_as_all_cached_and_flagged(price: PriceMaker) -> None:
    usage = Usage(prompt=1000, cached=1200, completion=0, source="reported")
    rated = rate(usage, price("1.00", "0.10", "4.00"))
    assert (usd_text(rated.amount), rated.flags) == ("0.0001", (INCONSISTENT,))


def test_reasoning_is_not_charged_twice(price: PriceMaker) -> None:
    usage = Usage(prompt=51, cached=0, completion=136, reasoning=31, source="reported")
    assert usd_text(rate(usage, price("0", None, "10.00")).amount) == "0.00136"


def test_the_price_per_request_is_added_once(price: PriceMaker) -> None:
    usage = Usage(prompt=0, cached=0, completion=0, source="reported")
    assert usd_text(rate(usage, price(per_request="0.005")).amount) == "0.005"


@pytest.mark.parametrize(
    ("uncached", "cached", "output", "usd"),
    [
        (2000, 0, 400, "0.00064"),
        (500, 1500, 600, "0.00061"),
        (8000, 0, 200, "0.00172"),
        (300, 0, 1200, "0.00078"),
        (900, 600, 400, "0.00048"),
    ],
    ids=["A", "B", "C", "D", "mean"],
)
def test_the_worked_example_of_the_cost_model(
    price: PriceMaker, uncached: int, cached: int, output: int, usd: str
) -> None:
    usage = Usage(uncached + cached, cached, output, source="reported")
    assert usd_text(rate(usage, price()).amount) == usd


@pytest.mark.parametrize(
    ("usage", "prices", "why"),
    [
        (Usage(10, 0, 10, 0, "reported"), {"input": None}, "input price unknown"),
        (Usage(10, 0, 10, 0, "reported"), {"output": None}, "output price unknown"),
        (
            Usage(10, 10, 0, 0, "reported"),
            {"input": None, "cached_input": None},
            "cached input price unknown",
        ),
        (Usage(completion=10, source="reported"), {}, "prompt tokens unknown"),
        (Usage(10, 0, None, 0, "reported"), {}, "completion tokens unknown"),
        (None, {}, "prompt tokens unknown"),
        (
            Usage(101, 0, 1, 0, "reported"),
            {"longest_prompt": 100},
            "no price known for prompts above 100 tokens",
        ),
    ],
)
def test_what_is_unknown_is_null_with_a_why(
    price: PriceMaker, usage: Usage | None, prices: dict[str, Any], why: str
) -> None:
    rated = rate(usage, price(**prices))
    assert (rated.amount, rated.why, rated.source) == (None, why, "unknown")


def test_no_price_is_null_and_never_zero() -> None:
    rated = rate(Usage(10, 0, 10, 0, "reported"), None)
    assert (rated.amount, rated.why) == (None, "price unknown")


def test_a_term_without_tokens_needs_no_price(price: PriceMaker) -> None:
    rated = rate(Usage(10, 0, 0, 0, "reported"), price(output=None))
    assert usd_text(rated.amount) == "0.000002"


@pytest.mark.parametrize(("output", "generates"), [("0", True), (None, True), ("0.60", False)])
def test_an_embedding_without_a_completion_count_is_priced(
    price: PriceMaker, output: str | None, generates: bool
) -> None:
    rated = rate(Usage(prompt=1000, source="reported"), price("0.02", None, output), generates=generates)
    assert usd_text(rated.amount) == "0.00002"


@pytest.mark.parametrize("source", ["estimated", "engine_tokenizer"])
def test_counts_of_our_own_are_marked_as_such(price: PriceMaker, source: Any) -> None:
    rated = rate(Usage(10, 0, 10, 0, source), price())
    assert (rated.source, rated.flags) == ("estimated_usage", (USAGE_ESTIMATED,))


@given(usages(), prices_of(4), st.integers(0, 10**5), st.integers(0, 10**5), st.integers(0, 10**5))
def test_more_of_any_token_never_costs_less(
    usage: Usage, price: TokenPrice, uncached: int, cached: int, output: int
) -> None:
    prompt, hit, completion = usage.prompt or 0, usage.cached or 0, usage.completion or 0
    more = replace(
        usage, prompt=prompt + uncached + cached, cached=hit + cached, completion=completion + output
    )
    assert cost(more, price) >= cost(usage, price)


@given(usages(), prices_of(4), st.integers(0, 10**6))
def test_a_token_found_cached_never_costs_more(usage: Usage, price: TokenPrice, moved: int) -> None:
    prompt, hit = usage.prompt or 0, usage.cached or 0
    warmer = replace(usage, cached=min(prompt, hit + moved))
    assert cost(warmer, price) <= cost(usage, price)


def doubled(price: TokenPrice) -> TokenPrice:
    return replace(
        price,
        input=None if price.input is None else 2 * price.input,
        cached_input=None if price.cached_input is None else 2 * price.cached_input,
        output=None if price.output is None else 2 * price.output,
        per_request=None if price.per_request is None else 2 * price.per_request,
    )


@given(usages(), prices_of(6))
def test_doubling_every_price_doubles_the_cost_exactly(usage: Usage, price: TokenPrice) -> None:
    assert cost(usage, doubled(price)) == 2 * cost(usage, price)


@given(usages(), prices_of(14))
def test_finer_prices_double_to_within_one_rounding_of_each_term(usage: Usage, price: TokenPrice) -> None:
    assert abs(cost(usage, doubled(price)) - 2 * cost(usage, price)) <= 4


@given(usages(), prices_of(14))
def test_rounding_happens_once_per_term(usage: Usage, price: TokenPrice) -> None:
    uncached = (usage.prompt or 0) - (usage.cached or 0)
    terms = [
        (uncached, price.input),
        (usage.cached or 0, price.cached_input),
        (usage.completion or 0, price.output),
        (1, price.per_request and price.per_request * 10**6),
    ]
    expected = 0
    for count, per_mtok in terms:
        expected += int((count * (per_mtok or 0) * Decimal(10**6)).to_integral_value("ROUND_HALF_EVEN"))
    assert cost(usage, price) == expected


@pytest.fixture(scope="module")
def litellm() -> Any:
    """The oracle, with its bundled map and nothing downloaded."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        warnings.simplefilter("ignore")
        import litellm
    return litellm


def oracle(litellm: Any, usage: Usage, price: TokenPrice) -> float:
    """USD by litellm.cost_per_token at custom prices."""
    per_token = {
        "input_cost_per_token": float(price.input or 0) / 1e6,
        "cache_read_input_token_cost": float(price.cached_input or 0) / 1e6,
        "output_cost_per_token": float(price.output or 0) / 1e6,
    }
    cached = usage.cached or 0
    parts = litellm.cost_per_token(
        model="org/model",
        # Anthropic's shape: the prompt without what was cached.
        prompt_tokens=(usage.prompt or 0) - cached,
        cache_read_input_tokens=cached,
        completion_tokens=usage.completion,
        custom_cost_per_token=per_token,
    )
    return float(sum(parts))


def test_the_oracle_agrees_on_a_generated_grid(litellm: Any, price: PriceMaker) -> None:
    @settings(max_examples=150, deadline=None)
    @given(usages(), prices_of(6))
    def agree(usage: Usage, generated: TokenPrice) -> None:
        ours = cost(usage, replace(generated, per_request=None)) / 1e12
        assert math.isclose(ours, oracle(litellm, usage, generated), rel_tol=1e-9, abs_tol=1e-15)

    agree()


def test_the_oracle_agrees_on_the_worked_example(litellm: Any, price: PriceMaker) -> None:
    usage = Usage(1500, 600, 400, source="reported")
    assert math.isclose(oracle(litellm, usage, price()), 0.00048, rel_tol=1e-9)


@pytest.mark.parametrize("model", ["groq/openai/gpt-oss-120b", "gpt-4o", "deepinfra/openai/gpt-oss-120b"])
def test_the_oracle_agrees_on_prices_of_its_own_map(litellm: Any, model: str) -> None:
    book = PriceBook([PricedTarget("serverless", "litellm", model)], "2026-12-01T00:00:00.000000Z")
    ours = rate(Usage(12345, 0, 678, 0, "reported"), book.price_for("serverless", model)).amount
    theirs = sum(litellm.cost_per_token(model=model, prompt_tokens=12345, completion_tokens=678))
    assert ours is not None
    assert math.isclose(ours / 1e12, theirs, rel_tol=1e-9)
