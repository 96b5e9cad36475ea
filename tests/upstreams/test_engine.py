"""An engine as a target."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gateway.upstreams.base import Exchange
from gateway.upstreams.engine import EngineTarget
from tests.scripted import ScriptedUpstream, chunk, ok, replies, replies_then_hangs, stream_head

pytestmark = pytest.mark.anyio


@pytest.fixture
async def make_engine() -> AsyncIterator[Callable[..., EngineTarget]]:
    made: list[EngineTarget] = []

    def make(*args: Any, **settings: Any) -> EngineTarget:
        made.append(EngineTarget("h100-a", *args, **settings))
        return made[-1]

    yield make
    for engine in made:
        await engine.aclose()
        assert engine.open_connections == 0


async def test_path_and_body_go_out_as_they_came_in(
    make_engine: Any, make_exchange: Callable[..., Exchange]
) -> None:
    body = b'{"model" : "m",\n "top_k":3, "unknown":[1.0e3], "priority": 5}'
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        engine = make_engine(upstream.url)
        exchange = make_exchange(
            body, path="/pooling", headers=[(b"content-type", b"application/json"), (b"x-session-id", b"s")],
            request_id="req-1-2",
        )  # fmt: skip
        response = await engine.send(exchange)
        await response.read(100)
        (request,) = upstream.requests
        assert (request.method, request.path, request.body) == ("POST", "/pooling", body)
        assert request.header("x-request-id") == "req-1-2"
        assert request.header("x-session-id") == "s"
        assert request.header("authorization") is None
        assert exchange.dropped_fields == []


async def test_the_engine_s_own_key_is_sent(make_engine: Any, make_exchange: Callable[..., Exchange]) -> None:
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        engine = make_engine(upstream.url, "engine-key")
        response = await engine.send(make_exchange(headers=[(b"authorization", b"Bearer client-key")]))
        await response.read(100)
        assert await engine.get("/v1/models", 1.0, 100) == (200, b"{}")
        assert [r.header("authorization") for r in upstream.requests] == ["Bearer engine-key"] * 2


async def test_a_full_engine_still_answers_our_own_questions(
    make_engine: Any, make_exchange: Callable[..., Exchange]
) -> None:
    """G12: an engine whose every connection streams must not look dead."""
    streaming = replies_then_hangs(stream_head(), chunk(b"x"))
    async with ScriptedUpstream(streaming, streaming, replies(ok(b"vllm:x 1\n", "text/plain"))) as upstream:
        engine = make_engine(upstream.url, max_connections=2)
        streams = [await engine.send(make_exchange()) for _ in range(2)]
        assert await engine.get("/metrics", 1.0, 1000) == (200, b"vllm:x 1\n")
        for stream in streams:
            stream.close()
