"""Amounts are exact, whole pico-USD."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.costs.money import add_up, decimal_text, pico, round_half_even, times, usd_text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0"),
        (1, "0.000000000001"),
        (590_000_000, "0.00059"),
        (2_800_000_000_000, "2.8"),
        (10 * 10**12, "10"),
        (-1_500_000_000_000, "-1.5"),
        (None, None),
    ],
)
def test_an_amount_is_written_exactly(amount: int | None, text: str | None) -> None:
    assert usd_text(amount) == text


@given(st.integers(-(10**30), 10**30))
def test_an_amount_survives_its_text(amount: int) -> None:
    with localcontext() as context:
        context.prec = 60
        assert pico(Decimal(usd_text(amount) or "")) == amount


@pytest.mark.parametrize(
    ("numerator", "denominator", "rounded"),
    [(1, 2, 0), (3, 2, 2), (5, 2, 2), (-1, 2, 0), (-3, 2, -2), (7, 3, 2), (8, 3, 3), (6, 3, 2)],
)
def test_a_tie_goes_to_the_even_number(numerator: int, denominator: int, rounded: int) -> None:
    assert round_half_even(numerator, denominator) == rounded


@given(st.integers(-(10**24), 10**24), st.integers(1, 10**18))
def test_rounding_agrees_with_exact_fractions(numerator: int, denominator: int) -> None:
    assert round_half_even(numerator, denominator) == round(Fraction(numerator, denominator))


def test_rounding_does_not_depend_on_the_decimal_context() -> None:
    price = Decimal("0.1234567890123456789012345678901234567")
    with localcontext() as context:
        context.prec = 3
        assert times(price, 10**20) == 12345678901234567890


@pytest.mark.parametrize("value", ["NaN", "Infinity"])
def test_a_price_that_is_no_number_is_no_amount(value: str) -> None:
    with pytest.raises((ValueError, OverflowError)):
        pico(Decimal(value))


@pytest.mark.parametrize("text", ["0.40", "0.4", "4E-1", "0.4000"])
def test_equal_decimals_have_one_text(text: str) -> None:
    assert decimal_text(Decimal(text)) == "0.4"


@pytest.mark.parametrize(("text", "written"), [("1E+3", "1000"), ("-0.0", "0"), ("100", "100"), ("0", "0")])
def test_whole_decimals_keep_their_zeros(text: str, written: str) -> None:
    assert decimal_text(Decimal(text)) == written


def test_a_sum_with_an_unknown_amount_is_marked_partial() -> None:
    total = add_up([5, None, 7])
    assert (total.amount, total.unknown, total.exact) == (12, 1, None)


def test_a_sum_of_nothing_is_an_exact_zero() -> None:
    assert add_up([]).exact == 0


@given(st.lists(st.integers(0, 10**15)))
def test_the_cost_of_a_request_is_the_sum_of_its_attempts(attempts: list[int]) -> None:
    assert add_up(attempts).exact == sum(attempts)
    assert add_up(reversed(attempts)) == add_up(attempts)
