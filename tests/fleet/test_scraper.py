"""Reading pages: bounded, and every failure told."""

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from gateway.fleet.registry import Registry
from gateway.fleet.scraper import Scraper
from gateway.routing.view import EngineState
from gateway.vllm.metrics import EngineMetrics, expose

pytestmark = pytest.mark.anyio
Page = Callable[..., EngineMetrics]
MODELS = b'{"data": [{"id": "tiny", "max_model_len": 1024}, {"id": "lora", "max_model_len": 1024}]}'


def answering(page: bytes, **others: tuple[int, bytes]) -> Any:
    answers = {
        "/metrics": (200, page),
        "/v1/models": (200, MODELS),
        "/version": (200, b'{"version": "0.32.0"}'),
        "/health": (200, b""),
    }
    answers |= {f"/{path.replace('_', '/')}": answer for path, answer in others.items()}

    async def fetch(_: str, path: str, __: float, ___: int) -> tuple[int, bytes]:
        return answers[path]

    return fetch


async def test_first_contact_asks_for_models_window_and_version(registry: Registry, page: Page) -> None:
    fetch = answering(expose(page(running=2).ranks, "tiny").encode())
    await Scraper(registry, fetch).scrape("a")
    seen = registry.snapshots()["a"]
    assert (seen.state, seen.running, seen.max_model_len, seen.vllm_version) == (
        EngineState.READY,
        2,
        1024,
        "0.32.0",
    )
    assert seen.served_models == ("tiny", "lora")


@pytest.mark.parametrize("status", [404, 500, 503])
async def test_a_page_that_is_no_answer_is_a_failure(registry: Registry, status: int) -> None:
    async def fetch(*_: Any) -> tuple[int, bytes]:
        return status, b""

    for _ in range(2):
        await Scraper(registry, fetch).scrape("a")
    assert registry.snapshots()["a"].state is EngineState.UNREACHABLE
    assert str(status) in (registry.snapshots()["a"].cause or "")


async def test_html_is_no_page_and_lets_the_old_figures_age(registry: Registry, page: Page) -> None:
    await Scraper(registry, answering(expose(page(kv_usage=0.5).ranks, "tiny").encode())).scrape("a")
    await Scraper(registry, answering(b"<html>busy</html>")).scrape("a")
    assert registry.snapshots()["a"].used_blocks == 32
    await Scraper(registry, answering(b"<html>busy</html>")).scrape("a")
    assert registry.snapshots()["a"].state is EngineState.UNREACHABLE


async def test_a_page_without_vllm_series_is_unknown_and_never_free(registry: Registry) -> None:
    await Scraper(registry, answering(b"# TYPE python_info gauge\npython_info 1\n")).scrape("a")
    assert registry.snapshots()["a"].state is EngineState.UNKNOWN
    assert registry.snapshots()["a"].usable_blocks is None


async def test_a_core_that_died_is_seen_through_its_last_figures(registry: Registry, page: Page) -> None:
    """0.32.0: after SIGKILL of the core /metrics stays 200 while /health is 503."""
    fetch = answering(expose(page().ranks, "tiny").encode(), health=(503, b""))
    scraper = Scraper(registry, fetch)
    await scraper.scrape("a")
    assert registry.snapshots()["a"].state is EngineState.READY
    await scraper.scrape("a")
    assert registry.snapshots()["a"].state is EngineState.UNREACHABLE


async def test_a_slow_page_of_a_healthy_engine_only_ages(registry: Registry, page: Page) -> None:
    good = answering(expose(page().ranks, "tiny").encode())
    await Scraper(registry, good).scrape("a")

    async def slow(name: str, path: str, timeout: float, most: int) -> tuple[int, bytes]:
        if path == "/metrics":
            raise TimeoutError
        return await good(name, path, timeout, most)

    for _ in range(5):
        await Scraper(registry, slow).scrape("a")
    assert registry.snapshots()["a"].state is EngineState.READY


async def test_an_engine_that_hides_its_version_is_served_all_the_same(
    registry: Registry, page: Page
) -> None:
    fetch = answering(expose(page().ranks, "tiny").encode(), version=(404, b""))
    await Scraper(registry, fetch).scrape("a")
    assert registry.snapshots()["a"].vllm_version is None
    assert registry.snapshots()["a"].state is EngineState.READY


async def test_broken_models_are_asked_for_again(registry: Registry, page: Page) -> None:
    fetch = answering(expose(page().ranks, "tiny").encode(), v1_models=(200, b"[]"))
    await Scraper(registry, fetch).scrape("a")
    assert registry.needs_facts("a")


async def test_a_page_that_never_comes_is_a_failure_and_delays_nobody_else(
    registry: Registry, page: Page
) -> None:
    good = answering(expose(page().ranks, "tiny").encode())

    async def fetch(name: str, path: str, timeout: float, most: int) -> tuple[int, bytes]:
        if name == "a":
            await asyncio.Event().wait()
        return await good(name, path, timeout, most)

    with anyio.move_on_after(0.6):
        await Scraper(registry, fetch, interval=0.05, timeout=0.1, uniform=lambda: 0.5).run()
    assert registry.snapshots()["a"].state is EngineState.UNREACHABLE
    assert registry.snapshots()["b"].state is EngineState.READY


async def test_reads_are_spread_by_jitter(registry: Registry, page: Page) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) > 4:
            await asyncio.Event().wait()
        await asyncio.sleep(0)

    draws = iter([0.0, 1.0, 0.5, 0.25, 0.75, 0.1])
    fetch = answering(expose(page().ranks, "tiny").encode())
    with anyio.move_on_after(0.2):
        await Scraper(registry, fetch, 1.0, sleep=sleep, uniform=lambda: next(draws)).run()
    assert waits[:3] == pytest.approx([0.9, 1.1, 1.0])
