"""What the registry is told, and what snapshots then say."""

from collections.abc import Callable
from typing import Any

from gateway.fleet.health import HUNG_AFTER, BootSign
from gateway.fleet.registry import Registry
from gateway.routing.view import EngineState
from gateway.vllm.metrics import EngineMetrics

Page = Callable[..., EngineMetrics]


def test_a_page_becomes_the_snapshot_that_decisions_see(registry: Registry, page: Page, own: Any) -> None:
    live = registry.snapshots()
    own["a"] = (7, 1, 0)
    registry.on_page("a", page(kv_usage=0.5, running=1, waiting=2))
    seen = live["a"]
    assert (seen.state, seen.usable_blocks, seen.used_blocks, seen.own_blocks) == (
        EngineState.READY,
        63,
        32,
        7,
    )
    assert (seen.running, seen.waiting, seen.scraped_at) == (1, 2, 100.0)


def test_a_failed_scrape_keeps_the_figures_and_lets_them_age(
    registry: Registry, page: Page, clock: Any
) -> None:
    registry.on_page("a", page(kv_usage=0.5))
    clock.now += 5
    registry.on_failure("a", "timed out")
    assert registry.snapshots()["a"].state is EngineState.READY
    assert (registry.snapshots()["a"].scraped_at, registry.snapshots()["a"].used_blocks) == (100.0, 32)
    registry.on_failure("a", "timed out")
    assert registry.snapshots()["a"].state is EngineState.UNREACHABLE
    assert registry.snapshots()["a"].cause == "timed out"


def test_no_token_for_long_while_requests_run_is_a_hang(registry: Registry, page: Page, clock: Any) -> None:
    registry.on_page("a", page(running=1, generation_tokens=5))
    for _ in range(12):
        clock.now += 1
        registry.on_page("a", page(running=1, generation_tokens=5))
    assert registry.snapshots()["a"].state is EngineState.HUNG
    assert f"{HUNG_AFTER:g}" in (registry.snapshots()["a"].cause or "")
    registry.on_page("a", page(running=1, generation_tokens=6))
    assert registry.snapshots()["a"].state is EngineState.READY


def test_an_idle_engine_may_repeat_itself_for_ever(registry: Registry, page: Page, clock: Any) -> None:
    for _ in range(40):
        clock.now += 1
        registry.on_page("a", page(generation_tokens=5))
    assert registry.snapshots()["a"].state is EngineState.READY


def test_a_restart_clears_preemptions_asks_for_facts_again_and_counts_anew(
    registry: Registry, page: Page
) -> None:
    registry.on_page("a", page(preemptions=0))
    registry.on_page("a", page(preemptions=4, generation_tokens=9))
    assert registry.snapshots()["a"].preemptions == ((100.0, 4),)
    assert registry.snapshots()["a"].state is EngineState.PREEMPTING
    registry.on_facts("a", ("tiny",), 1024, "0.32.0")
    assert not registry.needs_facts("a")
    registry.on_page("a", page(preemptions=1))
    assert registry.snapshots()["a"].preemptions == ()
    assert registry.snapshots()["a"].preemptions_total == 5
    assert registry.needs_facts("a")


def test_preemptions_before_the_gateway_started_are_not_ours_to_count(registry: Registry, page: Page) -> None:
    registry.on_page("a", page(preemptions=95))
    assert registry.snapshots()["a"].preemptions_total == 0


def test_a_sleeping_engine_is_asleep_and_one_without_series_unknown(registry: Registry, page: Page) -> None:
    registry.on_page("a", page(awake=False))
    assert registry.snapshots()["a"].state is EngineState.ASLEEP
    registry.on_page("b", EngineMetrics((), None, None, "v1"))
    assert registry.snapshots()["b"].state is EngineState.UNKNOWN
    assert "disable-log-stats" in (registry.snapshots()["b"].cause or "")


def test_a_boot_log_explains_an_engine_that_does_not_answer(registry: Registry, page: Page) -> None:
    registry.on_failure("b", "refused")
    registry.on_boot_sign("b", BootSign.STARTING)
    assert registry.snapshots()["b"].state is EngineState.BOOTING
    registry.on_boot_sign("b", BootSign.FAILED, "no KV memory left")
    seen = registry.snapshots()["b"]
    assert seen.state is EngineState.UNBOOTABLE
    assert seen.cause == "no KV memory left"
    registry.on_failure("b", "refused")
    assert registry.snapshots()["b"].state is EngineState.UNBOOTABLE
    registry.on_page("b", page())
    assert (registry.snapshots()["b"].state, registry.snapshots()["b"].cause) == (EngineState.READY, None)


def test_an_old_log_says_nothing_about_an_engine_that_served_since(registry: Registry, page: Page) -> None:
    registry.on_boot_sign("b", BootSign.SERVING)
    registry.on_page("b", page())
    registry.on_failure("b", "refused")
    registry.on_failure("b", "refused")
    assert registry.snapshots()["b"].state is EngineState.UNREACHABLE


def test_a_drained_engine_takes_nothing_until_it_is_put_back(registry: Registry, page: Page) -> None:
    registry.on_page("a", page())
    registry.set_draining("a", True)
    registry.on_page("a", page())
    assert registry.snapshots()["a"].state is EngineState.DRAINING
    registry.set_draining("a", False)
    assert registry.snapshots()["a"].state is EngineState.READY


def test_what_the_gauges_showed_the_counter_does_not_count_again(
    registry: Registry, page: Page, own: Any
) -> None:
    own["a"] = (0, 12, 0)
    registry.on_page("a", page(running=12))
    registry.on_page("a", page(running=7, waiting=5))
    registry.on_page("a", page(running=7, waiting=5, preemptions=5))
    registry.on_page("a", page(running=7, waiting=5, preemptions=8))
    assert [count for _, count in registry.snapshots()["a"].preemptions] == [5, 3]
    assert registry.snapshots()["a"].preemptions_total == 8


def test_an_engine_that_says_it_is_dead_is_away_at_once(registry: Registry, page: Page) -> None:
    registry.on_page("a", page())
    registry.on_failure("a", "dead", is_sure=True)
    assert registry.snapshots()["a"].state is EngineState.UNREACHABLE


def test_a_drained_engine_that_goes_down_is_down(registry: Registry, page: Page) -> None:
    registry.on_page("a", page())
    registry.set_draining("a", True)
    for _ in range(2):
        registry.on_failure("a", "refused")
    assert registry.snapshots()["a"].state is EngineState.UNREACHABLE
