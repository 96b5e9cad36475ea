"""States and figures, from pages alone."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from gateway.fleet.health import (
    FAILURES_UNTIL_AWAY,
    BootSign,
    Observation,
    OwnTraffic,
    capacity_of,
    is_restart,
    made_progress,
    next_state,
    preempted_since,
    with_page,
    with_state,
)
from gateway.routing.view import EngineSnapshot, EngineState
from gateway.vllm.metrics import CacheFacts, EngineMetrics, RankMetrics

Page = Callable[..., EngineMetrics]
NONE = OwnTraffic(0, 0, 0)
LOOKS = [
    Observation(answered, series, asleep, stuck, preempting, failures, boot, draining)
    for answered, series, asleep, stuck, preempting, failures, boot, draining in product(
        (None, True, False),
        (True, False),
        (True, False),
        (True, False),
        (True, False),
        (0, 1, 2, 9),
        BootSign,
        (True, False),
    )
]


@pytest.mark.parametrize("current", list(EngineState))
def test_every_state_meets_every_observation(current: EngineState) -> None:
    for seen in LOOKS:
        state = next_state(current, seen)
        if seen.draining and seen.failures < FAILURES_UNTIL_AWAY:
            assert state is EngineState.DRAINING
        elif seen.answered:
            assert state in (
                EngineState.UNKNOWN,
                EngineState.ASLEEP,
                EngineState.HUNG,
                EngineState.PREEMPTING,
                EngineState.READY,
            )
            assert (state is EngineState.UNKNOWN) == (not seen.has_series), "no series is never read as idle"
        elif seen.answered is False and seen.failures >= FAILURES_UNTIL_AWAY:
            assert state in (EngineState.UNREACHABLE, EngineState.BOOTING, EngineState.UNBOOTABLE)
            assert (state is EngineState.UNBOOTABLE) == (seen.boot is BootSign.FAILED)
        if state is EngineState.UNBOOTABLE and current is not state:
            assert seen.boot is BootSign.FAILED


def test_one_failed_scrape_changes_nothing_and_two_do() -> None:
    for failures, state in ((1, EngineState.READY), (2, EngineState.UNREACHABLE)):
        assert next_state(EngineState.READY, Observation(False, failures=failures)) is state


def test_the_null_block_is_never_counted_and_usage_is_rounded_up(page: Page) -> None:
    assert capacity_of(page(kv_usage=0.5).ranks) == (63, 32, 32)
    assert capacity_of(page(kv_usage=1 / 63).ranks).used == 1
    assert capacity_of(page(kv_usage=None).ranks).usable is None, "a pool nobody knows must not look empty"


def test_the_fullest_rank_decides_for_all() -> None:
    cache = CacheFacts(num_gpu_blocks=11, block_size=16)
    ranks = tuple(RankMetrics(rank=str(i), kv_usage=usage, cache=cache) for i, usage in enumerate((0.1, 0.9)))
    assert capacity_of(ranks) == (20, 18, 16)


def test_hybrid_models_count_tokens_not_blocks() -> None:
    cache = CacheFacts(num_gpu_blocks=1000, block_size=16, kv_cache_size_tokens=8000)
    assert capacity_of((RankMetrics(kv_usage=0.0, cache=cache),)).usable == 499


def test_an_unknown_pool_is_unknown(page: Page) -> None:
    assert capacity_of(page(cache=CacheFacts()).ranks).usable is None
    assert capacity_of(()).usable is None


@pytest.mark.parametrize("field", ["preemptions", "prompt_tokens", "generation_tokens", "success"])
def test_a_counter_that_falls_is_a_restart(page: Page, field: str) -> None:
    assert is_restart(page(**{field: 5}), page(**{field: 4}))
    assert not is_restart(page(**{field: 5}), page(**{field: 6}))
    assert is_restart(page(), page(cache=CacheFacts(num_gpu_blocks=65, block_size=32)))


def test_the_counter_convicts_by_itself(page: Page) -> None:
    assert preempted_since(page(preemptions=2), page(preemptions=5), NONE, NONE) == (3, 0)


def test_gauges_show_a_preemption_before_the_counter_does(page: Page) -> None:
    """Seen with 0.32.0: running 12 -> 7 and waiting 0 -> 5 with the counter still at 0."""
    ours = OwnTraffic(0, 12, 0)
    assert preempted_since(page(running=12), page(running=7, waiting=5), ours, ours) == (0, 5)


def test_gauges_do_not_convict_what_finished_was_sent_or_is_foreign(page: Page) -> None:
    before, after = page(running=12), page(running=7, waiting=5)
    assert preempted_since(before, after, OwnTraffic(0, 12, 0), OwnTraffic(0, 17, 5)) == (0, 0)
    assert preempted_since(before, after, NONE, NONE) == (0, 0)
    ours = OwnTraffic(0, 12, 0)
    assert preempted_since(before, page(running=7, waiting=5, success=5), ours, ours) == (0, 0)


def test_a_frozen_engine_makes_no_progress_and_an_idle_one_needs_none(page: Page) -> None:
    assert not made_progress(page(running=1), page(running=1))
    assert not made_progress(page(waiting=3), page(waiting=3))
    assert made_progress(page(), page())
    assert made_progress(page(running=1), page(running=1, generation_tokens=1))
    assert made_progress(page(running=1), page(running=1, generation_tokens=None))
    assert made_progress(page(running=1), page(running=1, kv_usage=0.1)), (
        "a long prefill moves the pool first"
    )


def test_one_hung_rank_is_a_hang(page: Page) -> None:
    still = RankMetrics(rank="1", running=1, kv_usage=0.5, prompt_tokens=9, generation_tokens=9)
    before = EngineMetrics((*page(running=1).ranks, still), None, None, "v1")
    after = EngineMetrics((*page(running=1, generation_tokens=5).ranks, still), None, None, "v1")
    assert not made_progress(before, after)


def test_a_page_without_series_does_not_make_old_figures_young() -> None:
    old = EngineSnapshot("a", scraped_at=5.0, used_blocks=10)
    assert with_page(old, EngineMetrics((), None, None, "v1"), NONE, 0, 100.0).scraped_at == 5.0


def test_old_preemptions_are_forgotten(page: Page) -> None:
    old = EngineSnapshot("a", preemptions=((1.0, 2), (99.0, 1)))
    assert with_page(old, page(), NONE, 4, 200.0).preemptions == ((99.0, 1), (200.0, 4))


def test_coming_back_is_a_return_and_the_first_time_is_not() -> None:
    down: Any = replace(EngineSnapshot("a"), state=EngineState.UNREACHABLE)
    first = with_state(down, EngineState.READY, None, 7.0, had_been_up=False)
    again = with_state(down, EngineState.READY, None, 7.0, had_been_up=True)
    assert (first.ready_since, first.returned, again.returned) == (7.0, False, True)
    still = with_state(again, EngineState.PREEMPTING, None, 9.0, had_been_up=True)
    assert still.ready_since == 7.0
