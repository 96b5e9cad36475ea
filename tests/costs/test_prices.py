"""Price versions and which prices are refused."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from gateway.costs.prices import TokenPrice, content_hash, new_price, problem_with


def test_the_id_is_of_the_content_and_not_of_the_time() -> None:
    def make(amount: str, effective_from: str = "2026-12-01") -> TokenPrice:
        return new_price("a", "m", effective_from, input=Decimal(amount), output=Decimal(1))

    assert make("0.40").price_id == make("0.4", "2026-12-02").price_id
    assert make("0.40").price_id != make("0.41").price_id


def test_neighbouring_parts_do_not_run_together_in_the_hash() -> None:
    assert content_hash("a", "bc") != content_hash("ab", "c")
    assert content_hash("1", None) != content_hash(None, "1")


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("input", "-0.1", "negative"),
        ("cached_input", "-1", "negative"),
        ("output", "10000.01", "above 10000"),
        ("output", "15000", "above 10000"),
        ("per_request", "-1", "negative"),
        ("input", "NaN", "plain number"),
        ("output", "Infinity", "plain number"),
    ],
)
def test_a_price_out_of_the_sane_band_is_refused_by_its_field(field: str, value: str, word: str) -> None:
    sane = new_price("a", "m", "2026-12-01", input=Decimal("0.4"), output=Decimal("0.7"))
    changed: dict[str, Any] = {field: Decimal(value)}
    problem = problem_with(replace(sane, **changed))
    assert problem is not None
    assert problem.startswith(field)
    assert word in problem


@pytest.mark.parametrize(("input", "output"), [(None, None), ("0", "0"), ("0", None)])
def test_a_missing_or_zero_price_is_refused(input: str | None, output: str | None) -> None:
    price = new_price(
        "a",
        "m",
        "2026-12-01",
        input=None if input is None else Decimal(input),
        output=None if output is None else Decimal(output),
    )
    assert problem_with(price) is not None


@pytest.mark.parametrize(
    ("input", "cached", "output"),
    [("0.4", None, "0.7"), ("10000", "0", "10000"), ("0.02", None, "0"), ("0.02", None, None)],
)
def test_a_sane_price_is_taken(input: str, cached: str | None, output: str | None) -> None:
    price = new_price(
        "a",
        "m",
        "2026-12-01",
        input=Decimal(input),
        cached_input=None if cached is None else Decimal(cached),
        output=None if output is None else Decimal(output),
    )
    assert problem_with(price) is None
