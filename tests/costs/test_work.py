"""Work units and their price at practical capacity."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.costs.work import (
    NO_CAPACITY,
    NO_RATE,
    NO_WORK,
    EngineRate,
    WorkWeights,
    bill_of,
    new_engine_rate,
    standard,
    work_units,
)
from gateway.wire.usage import Usage

RateMaker = Callable[..., EngineRate]
COUNTS = st.integers(0, 10**6)

# u, c, o, W, standard in USD as printed by the cost model (§9), six decimals.
EXAMPLE = [
    (2000, 0, 400, 3600, "0.000350"),
    (500, 1500, 600, 3050, "0.000297"),
    (8000, 0, 200, 8800, "0.000856"),
    (300, 0, 1200, 5100, "0.000496"),
]


def usage_of(uncached: int, cached: int, output: int) -> Usage:
    return Usage(uncached + cached, cached, output, 0, "reported")


def standard_of(work_milli: int, rate: EngineRate) -> int:
    amount = standard(work_milli, rate).amount
    assert amount is not None
    return amount


@pytest.mark.parametrize(("uncached", "cached", "output", "work", "usd"), EXAMPLE, ids=["A", "B", "C", "D"])
def test_the_worked_example_of_the_cost_model(
    engine_rate: RateMaker, uncached: int, cached: int, output: int, work: int, usd: str
) -> None:
    milli = work_units(usage_of(uncached, cached, output))
    assert milli == work * 1000
    amount = Decimal(standard_of(milli, engine_rate())).scaleb(-12)
    assert amount.quantize(Decimal("0.000001")) == Decimal(usd)


def test_the_worked_example_adds_up(engine_rate: RateMaker) -> None:
    total = sum(standard_of(1000 * work, engine_rate()) for *_, work, _ in EXAMPLE)
    assert Decimal(total).scaleb(-12).quantize(Decimal("0.000001")) == Decimal("0.001998")
    unused = bill_of(3600.0, engine_rate()) - total
    assert Decimal(unused).scaleb(-12).quantize(Decimal("0.000001")) == Decimal("2.798002")


def test_preemptions_of_the_worked_example(engine_rate: RateMaker) -> None:
    recomputed = standard_of(37 * 3200 * 1000, engine_rate())
    assert Decimal(recomputed).scaleb(-12).quantize(Decimal("0.0001")) == Decimal("0.0115")


def test_an_unknown_capacity_gives_no_standard_and_says_so(engine_rate: RateMaker) -> None:
    for capacity in (None, "0"):
        unknown = standard(1000, engine_rate(capacity=capacity))
        assert (unknown.amount, unknown.why) == (None, NO_CAPACITY)
    assert NO_CAPACITY == "capacity unknown"


def test_other_unknowns_are_named(engine_rate: RateMaker) -> None:
    assert standard(1000, None).why == NO_RATE
    assert standard(None, engine_rate()).why == NO_WORK


@pytest.mark.parametrize("usage", [None, Usage(completion=3), Usage(prompt=3, source="reported")])
def test_work_of_unknown_tokens_is_unknown(usage: Usage | None) -> None:
    assert work_units(usage) is None


def test_an_embedding_is_work_of_its_prompt_alone() -> None:
    assert work_units(Usage(prompt=7, source="reported"), generates=False) == 7000


def test_other_weights_are_used_as_given() -> None:
    assert work_units(usage_of(10, 10, 10), WorkWeights("fit", 1000, 50, 2500)) == 35500


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_more_tokens_are_never_less_work_and_cached_ones_never_more(
    u: int, c: int, o: int, more: int
) -> None:
    work = work_units(usage_of(u, c, o))
    assert work is not None
    for heavier in (usage_of(u + more, c, o), usage_of(u, c + more, o), usage_of(u, c, o + more)):
        assert (work_units(heavier) or 0) >= work
    moved = min(u, more)
    assert (work_units(usage_of(u - moved, c + moved, o)) or 0) <= work


@given(COUNTS, COUNTS, COUNTS, st.decimals("0.01", 100, places=4), st.decimals(1, 10**6, places=2))
def test_doubling_the_rate_doubles_standard(u: int, c: int, o: int, usd: Decimal, capacity: Decimal) -> None:
    rate = new_engine_rate("e", "t", usd_per_hour=usd, overhead_usd_per_hour=usd / 2, capacity=capacity)
    twice = replace(rate, usd_per_hour=2 * usd, overhead_usd_per_hour=usd)
    work = work_units(usage_of(u, c, o))
    assert work is not None
    assert abs(standard_of(work, twice) - 2 * standard_of(work, rate)) <= 1


def test_doubling_the_rate_doubles_the_bill(engine_rate: RateMaker) -> None:
    assert bill_of(3600.0, engine_rate()) == 2_800_000_000_000
    assert bill_of(1800.0, engine_rate("5.00", "0.60")) == 2_800_000_000_000


def test_the_id_of_a_rate_is_of_its_content(engine_rate: RateMaker) -> None:
    assert engine_rate("2.50").rate_id == engine_rate("2.5").rate_id
    assert engine_rate("2.50").rate_id != engine_rate(capacity="9000").rate_id
