"""Pages with good defaults, and a registry with a clock that tests move."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway.fleet.registry import Registry
from gateway.vllm.metrics import CacheFacts, EngineMetrics, RankMetrics


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def own() -> dict[str, tuple[int, int, int]]:
    """Blocks, sent, finished of the gateway's own traffic; tests set `own["a"]`."""
    return {}


@pytest.fixture
def registry(clock: Clock, own: dict[str, tuple[int, int, int]]) -> Registry:
    def blocks(name: str) -> int:
        return own.get(name, (0, 0, 0))[0]

    def counts(name: str) -> tuple[int, int]:
        return own.get(name, (0, 0, 0))[1:]

    return Registry(["a", "b"], clock, blocks, counts)


@pytest.fixture
def page() -> Callable[..., EngineMetrics]:
    def make(**changes: Any) -> EngineMetrics:
        rank = RankMetrics(
            rank="0", kv_usage=0.0, running=0, waiting=0, preemptions=0, prompt_tokens=0, generation_tokens=0,
            success=0, awake=True, cache=CacheFacts(num_gpu_blocks=64, block_size=32),
        )  # fmt: skip
        return EngineMetrics((replace(rank, **changes),), "tiny", None, "v1")

    return make
