"""Arrivals: repeatable, in order, at the rate asked for, and true to the trace they are read from."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.workload.arrivals import (
    Arrival,
    Mix,
    Uniform,
    constant,
    from_azure_csv,
    merge,
    ramp,
    shaped,
    shifted,
)

EXCERPT = Path(__file__).parent.parent / "captures" / "azure_2023_conv_excerpt.csv"
HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def test_the_numbers_are_those_of_splitmix64() -> None:
    # First outputs of the reference implementation for seed 1234567.
    reference = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    draw = Uniform(1234567)
    assert [draw() for _ in reference] == [(value >> 11) / 2**53 for value in reference]


@given(st.integers(-(2**70), 2**70))
def test_numbers_stay_in_range_for_any_seed(seed: int) -> None:
    draw = Uniform(seed)
    assert all(0.0 <= draw() < 1.0 for _ in range(20))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.1, 20), st.floats(0.1, 20))
def test_arrivals_are_repeatable_and_in_order(seed: int, start: float, peak: float) -> None:
    arrivals = ramp(start, peak, 10, Uniform(seed))
    assert arrivals == ramp(start, peak, 10, Uniform(seed))
    assert all(before.at < after.at for before, after in pairwise(arrivals))
    assert all(0 < arrival.at < 10 for arrival in arrivals)
    assert all(1 <= arrival.output_tokens <= arrival.max_tokens for arrival in arrivals)


def test_a_constant_rate_is_kept_and_evenly_spread() -> None:
    arrivals = constant(50, 100, Uniform(1))
    halves = [sum(arrival.at < 50 for arrival in arrivals), sum(arrival.at >= 50 for arrival in arrivals)]
    assert [half == pytest.approx(2500, rel=0.06) for half in halves] == [True, True]


@pytest.mark.parametrize(("start", "peak"), [(0, 40), (40, 0)], ids=["up", "down"])
def test_a_ramp_has_its_weight_at_its_peak(start: float, peak: float) -> None:
    arrivals = ramp(start, peak, 100, Uniform(2))
    late = sum(arrival.at >= 50 for arrival in arrivals) / len(arrivals)
    assert len(arrivals) == pytest.approx(2000, rel=0.08)
    assert late == pytest.approx(0.75 if peak > start else 0.25, abs=0.04)


def test_any_shape_of_rate_can_be_had() -> None:
    arrivals = shaped(lambda at: 30.0 if 4 <= at < 6 else 0.0, 30.0, 10, Uniform(3))
    assert arrivals
    assert all(4 <= arrival.at < 6 for arrival in arrivals)


@pytest.mark.parametrize("make", [lambda: constant(0, 10, Uniform(1)), lambda: ramp(5, 5, 0, Uniform(1))])
def test_no_rate_or_no_time_is_no_arrivals(make: Callable[[], list[Arrival]]) -> None:
    assert make() == []


def test_lengths_have_the_median_and_the_limits_asked_for() -> None:
    mix = Mix(prompt_median=400, output_median=100, max_prompt=900, max_tokens=300)
    arrivals = constant(100, 40, Uniform(4), mix)
    prompts = sorted(arrival.prompt_tokens for arrival in arrivals)
    outputs = sorted(arrival.output_tokens for arrival in arrivals)
    assert prompts[len(prompts) // 2] == pytest.approx(400, rel=0.06)
    assert outputs[len(outputs) // 2] == pytest.approx(100, rel=0.06)
    assert (prompts[-1], outputs[-1]) == (900, 300)


def test_without_spread_every_request_is_alike() -> None:
    mix = Mix(
        prompt_median=40, prompt_spread=0, output_median=7, output_spread=0, model="m", key="k", tag="t"
    )
    arrivals = constant(5, 10, Uniform(5), mix)
    assert {arrival[1:] for arrival in arrivals} == {(40, 512, 7, "m", True, "k", "t")}


def test_merged_streams_are_in_order_and_lose_nothing() -> None:
    first, second = constant(5, 10, Uniform(6)), shifted(constant(5, 10, Uniform(7)), 3.0)
    merged = merge(first, second)
    assert sorted(merged) == sorted([*first, *second])
    assert all(before.at <= after.at for before, after in pairwise(merged))
    assert second[0].at > 3.0


def test_the_azure_trace_is_read_row_by_row() -> None:
    with EXCERPT.open(encoding="utf-8") as lines:
        arrivals = list(from_azure_csv(lines, model="m"))
    assert len(arrivals) == 300
    assert arrivals[0] == Arrival(0.0, 374, 44, 44, "m")
    assert arrivals[1].at == pytest.approx(4.314579)
    assert all(before.at <= after.at for before, after in pairwise(arrivals))


def test_speed_divides_time_and_a_limit_covers_every_answer() -> None:
    rows = [HEADER, "2023-11-16 23:59:59.5000000,10,44\n", "2023-11-17 00:00:01.5,20,4000\n"]
    arrivals = list(from_azure_csv(rows, speed=4, max_tokens=2048))
    assert [(arrival.at, arrival.max_tokens) for arrival in arrivals] == [(0.0, 2048), (0.5, 4000)]


@pytest.mark.parametrize("row", ["yesterday,1,2", "2023-11-16 18:15:46,1", "2023-11-16 18:15:46,a,2"])
def test_a_bad_row_is_named_by_its_line(row: str) -> None:
    with pytest.raises(ValueError, match="line 2: not a row"):
        list(from_azure_csv([HEADER, row]))
