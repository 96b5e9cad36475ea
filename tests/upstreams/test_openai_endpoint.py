"""An OpenAI-compatible endpoint as a target."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gateway.upstreams.base import Exchange
from gateway.upstreams.errors import Refused, UpstreamError
from gateway.upstreams.openai_endpoint import OpenAIEndpoint, body_for_endpoint
from tests.scripted import ScriptedUpstream, closed_port, ok, replies, replies_then_closes

pytestmark = pytest.mark.anyio


@pytest.fixture
async def make_endpoint() -> AsyncIterator[Callable[..., OpenAIEndpoint]]:
    made: list[OpenAIEndpoint] = []

    def make(*args: Any, **settings: Any) -> OpenAIEndpoint:
        made.append(OpenAIEndpoint("serverless", *args, **settings))
        return made[-1]

    yield make
    for endpoint in made:
        await endpoint.aclose()
        assert endpoint.open_connections == 0


@pytest.mark.parametrize(
    ("base", "path", "there"),
    [
        ("/v1", "/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/", "/v1/embeddings", "/v1/embeddings"),
        ("/openai/deployments/x", "/v1/completions", "/openai/deployments/x/completions"),
        ("", "/v1/responses", "/responses"),
        ("/v1?key=CANARY", "/v1/chat/completions", "/v1/chat/completions?key=CANARY"),
    ],
)
async def test_the_base_url_stands_in_for_v1(
    make_endpoint: Any, make_exchange: Callable[..., Exchange], base: str, path: str, there: str
) -> None:
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        response = await make_endpoint(upstream.url + base, "k").send(make_exchange(path=path))
        assert await response.read(10) == b"{}"
        assert upstream.requests[0].path == there


async def test_nothing_of_the_client_or_the_house_leaves_with_the_request(
    make_endpoint: Any, make_exchange: Callable[..., Exchange]
) -> None:
    """F48, F52, F61, C16, U21."""
    messages = b'"messages":[{"role":"user","content":"hi"}]'
    body = b'{"model":"chat", %b, "top_k":3, "x":1.50, "priority":2,"max_tokens":7}' % messages
    sent = [
        (b"content-type", b"application/json"), (b"authorization", b"Bearer client"), (b"x-session-id", b"s"),
        (b"traceparent", b"t"), (b"cookie", b"c"), (b"host", b"h"), (b"x-vllm-priority", b"1"),
    ]  # fmt: skip
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        endpoint = make_endpoint(f"{upstream.url}/v1", "provider-key")
        exchange = make_exchange(
            body, headers=sent, model="meta-llama/Llama-3.1-70B-Instruct", request_id="r-2"
        )
        await (await endpoint.send(exchange)).read(10)
        (request,) = upstream.requests
        assert json.loads(request.body) == {
            "model": "meta-llama/Llama-3.1-70B-Instruct",
            "messages": [{"role": "user", "content": "hi"}],
            "x": 1.5,
            "max_tokens": 7,
        }
        # What is kept is kept to the byte.
        assert messages in request.body
        assert b'"x":1.50' in request.body
        assert exchange.dropped_fields == ["priority", "top_k"]
        assert request.header_names() == {
            "host", "user-agent", "accept-encoding", "content-type", "content-length", "authorization",
            "x-request-id",
        }  # fmt: skip
        assert request.header("authorization") == "Bearer provider-key"
        assert request.header("host") == f"127.0.0.1:{upstream.port}"


async def test_a_key_in_the_url_is_in_no_error(
    make_endpoint: Any, make_exchange: Callable[..., Exchange]
) -> None:
    """F46."""
    with closed_port() as port:
        refused = make_endpoint(f"http://127.0.0.1:{port}/v1?key=CANARY", "CANARY")
        with pytest.raises(UpstreamError) as first:
            await refused.send(make_exchange())
    async with ScriptedUpstream(
        replies_then_closes(b"HTTP/1.1 200 CANARY\r\nx CANARY: y\r\n\r\n")
    ) as upstream:
        broken = make_endpoint(f"{upstream.url}/v1?key=CANARY", "CANARY")
        with pytest.raises(UpstreamError) as second:
            await broken.send(make_exchange())
    for caught in (first, second):
        error: BaseException | None = caught.value
        while error is not None:
            assert "CANARY" not in f"{error} {error!r}"
            error = error.__cause__ or error.__context__
    assert "CANARY" not in repr(refused) + repr(vars(refused)["_pool"])


async def test_a_path_that_endpoints_do_not_have_is_never_dialled(
    make_endpoint: Any, make_exchange: Callable[..., Exchange]
) -> None:
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        endpoint = make_endpoint(f"{upstream.url}/v1")
        for exchange in (make_exchange(path="/pooling"), make_exchange(b"--form")):
            with pytest.raises(Refused):
                await endpoint.send(exchange)
        assert upstream.peers == []


def test_a_body_that_needs_no_change_is_not_changed() -> None:
    body = b'{ "model":"m" , "n":1e2}'
    assert body_for_endpoint(body, "") == (body, [])


def test_the_model_is_set_where_there_was_none() -> None:
    changed, dropped = body_for_endpoint(b'{"messages":[]}', 'a"b')
    assert json.loads(changed) == {"messages": [], "model": 'a"b'}
    assert dropped == []
