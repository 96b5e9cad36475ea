"""The fake endpoint over real sockets: its key, what it refuses and bills, and failures made to order."""

import asyncio
import json
from typing import Any

import httpx
import openai
import pytest

from gateway.simulator.fake_endpoint import FakeEndpoint, main
from gateway.wire.usage import Usage

KEY = {"authorization": "Bearer endpoint-key"}
BODY = {"model": "tiny-remote", "messages": [{"role": "user", "content": "hello world"}], "max_tokens": 5}


async def post(endpoint: FakeEndpoint, client: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    return await client.post(endpoint.base_url + "/chat/completions", json=BODY | fields, headers=KEY)


@pytest.mark.anyio
async def test_the_openai_sdk_reads_its_answers_and_their_usage(endpoint: FakeEndpoint) -> None:
    endpoint.cached_share = 0.5
    async with openai.AsyncOpenAI(base_url=endpoint.base_url, api_key="endpoint-key") as sdk:
        whole = await sdk.chat.completions.create(
            model="tiny-remote", messages=[{"role": "user", "content": "four" * 10}], max_tokens=5
        )
        stream = await sdk.chat.completions.create(
            model="tiny-remote",
            messages=[{"role": "user", "content": "four" * 10}],
            max_tokens=5,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    assert whole.usage is not None
    assert whole.usage.prompt_tokens_details is not None
    assert (whole.usage.prompt_tokens, whole.usage.prompt_tokens_details.cached_tokens) == (10, 5)
    assert chunks[-1].usage == whole.usage
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content


@pytest.mark.anyio
async def test_the_bill_is_what_was_reported_to_the_token(
    endpoint: FakeEndpoint, client: httpx.AsyncClient
) -> None:
    answers = [(await post(endpoint, client, n=number + 1)).json() for number in range(3)]
    assert [line.answer_id for line in endpoint.bill] == [answer["id"] for answer in answers]
    assert [line.usage.completion for line in endpoint.bill] == [
        answer["usage"]["completion_tokens"] for answer in answers
    ]
    assert endpoint.billed() == Usage(prompt=9, cached=0, completion=30, reasoning=0, source="reported")
    assert all(line.complete for line in endpoint.bill)


@pytest.mark.anyio
async def test_a_client_that_leaves_is_billed_for_what_was_made(client: httpx.AsyncClient) -> None:
    async with FakeEndpoint(latency=0.0, token_seconds=0.005, output_length=lambda *_: 4000) as endpoint:
        url = endpoint.base_url + "/chat/completions"
        body = BODY | {"stream": True, "max_tokens": 4000}
        async with client.stream("POST", url, json=body, headers=KEY | {"x-request-id": "left"}) as response:
            async for _ in response.aiter_lines():
                break
        async with asyncio.timeout(5):
            while not endpoint.bill:
                await asyncio.sleep(0.001)
        line = endpoint.bill[0]
    assert (line.client_request_id, line.complete) == ("left", False)
    assert line.usage.completion is not None
    assert 1 <= line.usage.completion < 4000


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"ignore_eos": True}, 400, "Unrecognized request argument supplied: ignore_eos"),
        ({"model": "other"}, 404, "`other` does not exist"),
        ({"stream_options": {"include_usage": True}}, 400, "stream_options"),
    ],
)
async def test_what_a_strict_provider_does_not_know_is_refused_and_not_billed(
    endpoint: FakeEndpoint, client: httpx.AsyncClient, fields: dict[str, Any], status: int, said: str
) -> None:
    response = await post(endpoint, client, **fields)
    assert response.status_code == status
    assert said in response.json()["error"]["message"]
    assert endpoint.bill == []


@pytest.mark.anyio
async def test_a_lenient_provider_ignores_unknown_fields(client: httpx.AsyncClient) -> None:
    async with FakeEndpoint(strict=False, latency=0.0, token_seconds=0.0) as endpoint:
        assert (await post(endpoint, client, ignore_eos=True)).status_code == 200


@pytest.mark.anyio
async def test_bodies_that_are_no_json_and_paths_that_are_not_served_are_refused(
    endpoint: FakeEndpoint, client: httpx.AsyncClient
) -> None:
    bad = await client.post(endpoint.base_url + "/chat/completions", content=b"{", headers=KEY)
    assert (bad.status_code, bad.json()["error"]["type"]) == (400, "invalid_request_error")
    assert (await client.get(endpoint.base_url + "/chat/completions", headers=KEY)).status_code == 404
    assert (await client.post(endpoint.base_url + "/nope", headers=KEY)).status_code == 404


@pytest.mark.anyio
@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}], ids=["none", "wrong"])
async def test_the_key_is_checked(
    endpoint: FakeEndpoint, client: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    response = await client.get(endpoint.base_url + "/models", headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (401, "invalid_api_key")


@pytest.mark.anyio
async def test_ordered_failures_come_in_order_and_then_it_works_again(
    endpoint: FakeEndpoint, client: httpx.AsyncClient
) -> None:
    endpoint.fail_next(503, times=2)
    endpoint.fail_next(429, retry_after=7)
    responses = [await post(endpoint, client) for _ in range(4)]
    assert [response.status_code for response in responses] == [503, 503, 429, 200]
    assert responses[2].headers["retry-after"] == "7"
    assert len(endpoint.bill) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("after", [0, 2])
async def test_an_ordered_cut_ends_a_stream_without_done_and_is_billed(
    endpoint: FakeEndpoint, client: httpx.AsyncClient, after: int
) -> None:
    endpoint.cut_next(after_tokens=after)
    said: list[bytes] = []

    async def read() -> None:
        url = endpoint.base_url + "/chat/completions"
        async with client.stream("POST", url, json=BODY | {"stream": True}, headers=KEY) as response:
            said.extend([data async for data in response.aiter_raw()])

    with pytest.raises(httpx.RemoteProtocolError):
        await read()
    assert b"[DONE]" not in b"".join(said)
    assert (endpoint.bill[0].usage.completion, endpoint.bill[0].complete) == (after, False)


@pytest.mark.anyio
async def test_requests_above_the_rate_are_told_when_to_come_back(client: httpx.AsyncClient) -> None:
    async with FakeEndpoint(rate_limit=2.0, latency=0.0, token_seconds=0.0) as endpoint:
        responses = [await post(endpoint, client) for _ in range(4)]
    assert [response.status_code for response in responses] == [200, 200, 429, 429]
    assert 0 < float(responses[-1].headers["retry-after"]) <= 0.5


@pytest.mark.anyio
async def test_tokens_keep_their_pace(client: httpx.AsyncClient) -> None:
    loop = asyncio.get_running_loop()
    async with FakeEndpoint(latency=0.05, token_seconds=0.01, output_length=lambda *_: 10) as endpoint:
        began = loop.time()
        await post(endpoint, client, max_tokens=10)
    assert loop.time() - began >= 0.05 + 9 * 0.01


@pytest.mark.anyio
async def test_other_kinds_are_served_and_billed(endpoint: FakeEndpoint, client: httpx.AsyncClient) -> None:
    models = await client.get(endpoint.base_url + "/models", headers=KEY)
    assert [card["id"] for card in models.json()["data"]] == ["tiny-remote"]
    body: dict[str, Any] = {"model": "tiny-remote", "input": ["four", "more"]}
    embedded = await client.post(endpoint.base_url + "/embeddings", json=body, headers=KEY)
    assert len(embedded.json()["data"]) == 2
    body = {"model": "tiny-remote", "prompt": "four", "max_tokens": 2, "stream": True}
    streamed = await client.post(endpoint.base_url + "/completions", json=body, headers=KEY)
    assert json.loads(streamed.text.split("\n\n")[0].removeprefix("data: "))["object"] == "text_completion"
    embedding, completion = endpoint.bill
    assert (embedding.usage.prompt, embedding.usage.completion) == (2, 0)
    assert completion.usage.prompt == 1


@pytest.mark.anyio
async def test_stopping_bills_what_is_open(client: httpx.AsyncClient) -> None:
    async with FakeEndpoint(latency=30.0) as endpoint:
        url = endpoint.base_url + "/chat/completions"
        async with client.stream("POST", url, json=BODY | {"stream": True}, headers=KEY):
            await endpoint.stop()
    assert [(line.usage.completion, line.complete) for line in endpoint.bill] == [(0, False)]


def test_its_command_binds_to_loopback_unless_told() -> None:
    assert next(option for option in main.params if option.name == "host").default == "127.0.0.1"
