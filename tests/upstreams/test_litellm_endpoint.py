"""litellm as a target, with the real library against a raw server that speaks OpenAI."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from gateway.upstreams.base import Exchange
from gateway.upstreams.errors import Cut, Refused, Stalled, TimedOut, UpstreamError
from gateway.upstreams.litellm_answers import Streamed
from gateway.upstreams.litellm_endpoint import LiteLLMEndpoint, LiteLLMLibrary, call_arguments
from tests.scripted import (
    LAST_CHUNK,
    ScriptedUpstream,
    answer,
    black_hole,
    chunk,
    closed_port,
    never_answers,
    ok,
    replies_then_closes,
    replies_then_hangs,
    stream_head,
)

pytestmark = [
    pytest.mark.anyio,
    # litellm leaves its aiohttp sessions and their sockets to the collector where a request failed, and its
    # models trip over pydantic's own deprecations: neither is ours, and neither touches our sockets.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    # Its modules are imported as they are first called; which one warns depends on what ran before.
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

KEY = "sk-canary-0123456789"
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here: litellm's clients are tied to the loop that first used them."""
    return "asyncio"


@pytest.fixture
async def library() -> AsyncIterator[LiteLLMLibrary]:
    library = LiteLLMLibrary()
    await library.module()
    yield library
    await library.aclose()


def event(**members: Any) -> bytes:
    body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "remote", **members}
    return chunk(b"data: " + json.dumps(body).encode() + b"\n\n")


def delta(finish: str | None = None, **members: Any) -> bytes:
    return event(choices=[{"index": 0, "delta": members, "finish_reason": finish}])


STREAM = (
    stream_head(),
    delta(role="assistant", content=""),
    delta(content="hel"),
    delta(content="lo"),
    delta("stop"),
)
END = (chunk(b"data: [DONE]\n\n"), LAST_CHUNK)


def chat(make_exchange: Callable[..., Exchange], stream: bool = True, **more: Any) -> Exchange:
    limits = {name: more.pop(name) for name in ("connect", "first_byte", "between_reads") if name in more}
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": stream, **more}
    return make_exchange(json.dumps(body).encode(), model="openai/remote", stream=stream, **limits)


async def events_of(response: Any) -> list[Any]:
    async with aclosing(response.chunks()) as chunks:
        raw = [piece async for piece in chunks]
    assert all(piece.startswith(b"data: ") and piece.endswith(b"\n\n") for piece in raw)
    return [piece[6:-2].decode() if b"[DONE]" in piece else json.loads(piece[6:]) for piece in raw]


async def test_a_stream_keeps_openai_s_shape_and_the_provider_s_usage(
    library: LiteLLMLibrary, make_exchange: Any
) -> None:
    script = replies_then_hangs(*STREAM, event(choices=[], usage=USAGE), *END)
    async with ScriptedUpstream(script) as upstream:
        endpoint = LiteLLMEndpoint("e", library, KEY, base_url=f"{upstream.url}/v1")
        exchange = chat(make_exchange, stream_options={"include_usage": True}, top_k=5, metadata={"a": "b"})
        response = await endpoint.send(exchange)
        events = await events_of(response)
        assert response.status == 200
        assert [e["choices"][0]["delta"].get("content") for e in events[:4]] == ["", "hel", "lo", None]
        assert [e["choices"][0]["finish_reason"] for e in events[:4]] == [None, None, None, "stop"]
        assert events[4]["choices"] == []
        assert events[4]["usage"] | USAGE == events[4]["usage"]
        assert events[5] == "[DONE]"
        assert not response.usage_is_estimated
        assert exchange.dropped_fields == ["metadata", "top_k"]
        (request,) = upstream.requests
        assert json.loads(request.body) == {
            "model": "remote",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        assert request.header("authorization") == f"Bearer {KEY}"


async def test_usage_that_the_library_made_up_is_called_estimated(
    library: LiteLLMLibrary, make_exchange: Any
) -> None:
    async with ScriptedUpstream(replies_then_hangs(*STREAM, *END)) as upstream:
        endpoint = LiteLLMEndpoint("e", library, KEY, base_url=f"{upstream.url}/v1")
        response = await endpoint.send(chat(make_exchange, stream_options={"include_usage": True}))
        events = await events_of(response)
        assert events[-2]["usage"]["completion_tokens"] > 0
        assert response.usage_is_estimated


@pytest.mark.parametrize("usage", [USAGE, None])
async def test_a_whole_answer(library: LiteLLMLibrary, make_exchange: Any, usage: Any) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ]}  # fmt: skip
    body = {"id": "c1", "object": "chat.completion", "created": 1, "model": "remote",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]} | (
                {"usage": usage} if usage else {})  # fmt: skip
    async with ScriptedUpstream(replies_then_hangs(ok(json.dumps(body).encode()))) as upstream:
        endpoint = LiteLLMEndpoint("e", library, KEY, base_url=f"{upstream.url}/v1")
        response = await endpoint.send(chat(make_exchange, stream=False))
        got = json.loads(await response.read(100_000))
        assert got["choices"][0]["message"] == message
        # Zeros stand where the provider said nothing.
        assert got["usage"] == (usage or dict.fromkeys(USAGE, 0))
        assert response.usage_is_estimated is (usage is None)


async def test_a_provider_s_refusal_is_an_answer_without_the_key(
    library: LiteLLMLibrary, make_exchange: Any
) -> None:
    """U15, U16, U18, F46."""
    for status, code in (
        (429, "slow_down"),
        (400, "context_length_exceeded"),
        (401, "bad_key"),
        (500, "oops"),
    ):
        error = {"error": {"message": f"no: {KEY}", "type": "a_type", "code": code, "param": "messages"}}
        headers = [("content-type", "application/json"), ("retry-after", "7"), ("set-cookie", "a")]
        sent = answer(status, headers, json.dumps(error).encode())
        async with ScriptedUpstream(replies_then_hangs(sent)) as upstream:
            endpoint = LiteLLMEndpoint("e", library, KEY, base_url=f"{upstream.url}/v1")
            response = await endpoint.send(chat(make_exchange))
            body = json.loads(await response.read(100_000))
            assert response.status == status
            assert set(body["error"]) == {"message", "type", "param", "code"}
            assert "no: " in body["error"]["message"]
            assert KEY not in json.dumps(body)
            assert {name for name, _ in response.headers} == {b"content-type", b"retry-after"}
            # Nothing retried it.
            assert len(upstream.requests) == 1


async def test_a_connection_that_never_was_is_told_from_one_that_broke(
    library: LiteLLMLibrary, make_exchange: Any
) -> None:
    """U02, U03, U10, U13."""
    with closed_port() as port:
        endpoint = LiteLLMEndpoint("e", library, KEY, base_url=f"http://127.0.0.1:{port}/v1")
        exchange = chat(make_exchange)
        with pytest.raises(Refused):
            await endpoint.send(exchange)
        assert exchange.sent_at is None
    with black_hole() as port:
        endpoint = LiteLLMEndpoint("e", library, KEY, base_url=f"http://127.0.0.1:{port}/v1")
        with pytest.raises(TimedOut) as caught:
            await endpoint.send(chat(make_exchange, connect=0.2))
        assert not caught.value.sent
    for script, kind in ((replies_then_closes(), Cut), (never_answers, TimedOut)):
        async with ScriptedUpstream(script) as upstream:
            endpoint = LiteLLMEndpoint("e", library, KEY, base_url=f"{upstream.url}/v1")
            with pytest.raises(kind) as failed:
                await endpoint.send(chat(make_exchange, first_byte=0.3))
            assert isinstance(failed.value, UpstreamError)
            assert failed.value.sent


async def test_a_stream_that_breaks_has_no_end_marker(library: LiteLLMLibrary, make_exchange: Any) -> None:
    """U26, U33, U34, U35, U37."""
    problem = chunk(b'data: {"error":{"message":"boom","type":"x","code":500}}\n\n')
    for ending, expected in (
        (replies_then_closes(*STREAM[:3]), Cut),
        (replies_then_hangs(*STREAM[:3], LAST_CHUNK), Cut),
        (replies_then_hangs(*STREAM[:3]), Stalled),
    ):
        async with ScriptedUpstream(ending) as upstream:
            endpoint = LiteLLMEndpoint("e", library, KEY, base_url=f"{upstream.url}/v1")
            response = await endpoint.send(chat(make_exchange, between_reads=0.3))
            with pytest.raises(expected):
                await events_of(response)
    async with ScriptedUpstream(replies_then_hangs(*STREAM[:3], problem, *END)) as upstream:
        endpoint = LiteLLMEndpoint("e", library, KEY, base_url=f"{upstream.url}/v1")
        events = await events_of(await endpoint.send(chat(make_exchange)))
        assert "boom" in events[-1]["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
async def test_a_reader_that_leaves_closes_the_provider_s_connection(
    library: LiteLLMLibrary, make_exchange: Any, path: str
) -> None:
    """F40; a text stream has no way to be closed but the one through its generator."""
    text = {"id": "c", "object": "text_completion", "created": 1, "model": "remote",
            "choices": [{"index": 0, "text": "hey", "finish_reason": None}]}  # fmt: skip
    texts = [chunk(b"data: " + json.dumps(text).encode() + b"\n\n")] * 3
    sent = STREAM[:4] if path.startswith("/v1/chat") else (stream_head(), *texts)
    async with ScriptedUpstream(replies_then_hangs(*sent)) as upstream:
        endpoint = LiteLLMEndpoint("e", library, KEY, base_url=f"{upstream.url}/v1")
        exchange = chat(make_exchange, prompt="hi") if path == "/v1/completions" else chat(make_exchange)
        exchange.path = path
        if path == "/v1/completions":
            exchange.model = "text-completion-openai/remote"
        response = await endpoint.send(exchange)
        async with aclosing(response.chunks()) as chunks:
            assert b"data: " in await anext(chunks)
        left_at = asyncio.get_running_loop().time()
        async with asyncio.timeout(1):
            peer = await upstream.wait_until_left()
        assert peer.left_at is not None
        assert peer.left_at - left_at < 0.25


async def test_a_stream_that_was_never_read_is_closed_with_the_endpoint(
    library: LiteLLMLibrary, make_exchange: Any
) -> None:
    async with ScriptedUpstream(replies_then_hangs(*STREAM[:3])) as upstream:
        endpoint = LiteLLMEndpoint("e", library, KEY, base_url=f"{upstream.url}/v1")
        response = await endpoint.send(chat(make_exchange))
        assert isinstance(response, Streamed)
        response.close()
        response.close()
        await endpoint.aclose()
        async with asyncio.timeout(1):
            await upstream.wait_until_left()


async def test_embeddings(library: LiteLLMLibrary, make_exchange: Any) -> None:
    body = {"object": "list", "model": "remote", "usage": {"prompt_tokens": 3, "total_tokens": 3},
            "data": [{"object": "embedding", "index": 0, "embedding": [0.1, 0.2]}]}  # fmt: skip
    async with ScriptedUpstream(replies_then_hangs(ok(json.dumps(body).encode()))) as upstream:
        endpoint = LiteLLMEndpoint("e", library, KEY, base_url=f"{upstream.url}/v1")
        exchange = make_exchange(
            b'{"model":"m","input":["hi"]}', path="/v1/embeddings", model="openai/remote"
        )
        response = await endpoint.send(exchange)
        got = json.loads(await response.read(10_000))
        assert got["data"] == body["data"]
        assert not response.usage_is_estimated


@pytest.mark.parametrize("model", ["openai/remote", "anthropic/claude-sonnet-4-5"])
async def test_a_redirect_is_not_followed(library: LiteLLMLibrary, make_exchange: Any, model: str) -> None:
    """U22, F48: for OpenAI's wire and for one of those that litellm speaks itself."""
    async with ScriptedUpstream(replies_then_hangs(ok(b"{}"))) as trap:
        for status in (302, 307):
            sent = answer(status, [("location", f"{trap.url}/stolen")])
            async with ScriptedUpstream(replies_then_hangs(sent)) as upstream:
                endpoint = LiteLLMEndpoint("e", library, KEY, base_url=upstream.url)
                exchange = chat(make_exchange, stream=False, max_tokens=5)
                exchange.model = model
                try:
                    response = await endpoint.send(exchange)
                    assert response.status >= 400
                except UpstreamError:
                    pass
                assert len(upstream.requests) == 1
        assert trap.peers == []


async def test_a_path_that_is_not_served_is_refused_before_anything_is_imported(make_exchange: Any) -> None:
    def explode() -> Any:
        raise AssertionError

    endpoint = LiteLLMEndpoint("e", LiteLLMLibrary(explode), KEY)
    with pytest.raises(Refused):
        await endpoint.send(make_exchange(path="/v1/responses"))


async def test_a_missing_library_is_an_unreachable_target(make_exchange: Any) -> None:
    def missing() -> Any:
        raise ImportError("No module named 'litellm'")

    library = LiteLLMLibrary(missing)
    with pytest.raises(Refused, match="cannot be imported"):
        await LiteLLMEndpoint("e", library, KEY).send(make_exchange())
    await library.aclose()


@pytest.mark.parametrize(
    "field",
    ["api_base", "base_url", "api_key", "callbacks", "success_callback", "metadata", "fallbacks",
     "extra_headers",
     "custom_llm_provider", "mock_response", "num_retries", "timeout", "aws_region_name", "litellm_params",
     "client"],
)  # fmt: skip
def test_no_argument_that_steers_the_call_comes_from_a_client(field: str) -> None:
    """C16, F48."""
    body = json.dumps({"model": "m", "messages": [], field: "x", "top_p": None}).encode()
    assert call_arguments(frozenset({"messages"}), body) == ({"messages": []}, [field])
