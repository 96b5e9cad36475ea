"""Fakes on loopback, and a client for them."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from gateway.simulator.engine import StepTime
from gateway.simulator.fake_endpoint import FakeEndpoint
from gateway.simulator.fake_vllm import FakeVLLM


@pytest.fixture
async def engine() -> AsyncIterator[FakeVLLM]:
    async with FakeVLLM(step=StepTime(0.001, 0.0)) as fake:
        yield fake


@pytest.fixture
async def endpoint() -> AsyncIterator[FakeEndpoint]:
    async with FakeEndpoint(latency=0.0, token_seconds=0.0) as fake:
        yield fake


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=15) as client:
        yield client


@pytest.fixture
def chat() -> Callable[..., dict[str, Any]]:
    """A chat body for the fake vLLM; keywords are added to it."""

    def body(text: str = "hello world", **fields: Any) -> dict[str, Any]:
        base = {
            "model": "tiny",
            "messages": [{"role": "user", "content": text}],
            "max_tokens": 5,
            "ignore_eos": True,
        }
        return base | fields

    return body
