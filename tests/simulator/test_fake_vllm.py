"""The fake vLLM over real sockets: served, refused, aborted, killed, hung, restarted."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
import uvloop

from gateway.simulator.engine import StepTime
from gateway.simulator.fake_vllm import FakeVLLM, main
from gateway.simulator.vllm_shapes import ENGINE_DEAD
from gateway.vllm.metrics import RankMetrics, parse

Body = Callable[..., dict[str, Any]]
CHAT = "/v1/chat/completions"


async def metrics(engine: FakeVLLM, client: httpx.AsyncClient) -> RankMetrics:
    """The one rank of the page, as the gateway reads it."""
    (rank,) = parse((await client.get(engine.base_url + "/metrics")).content).ranks
    return rank


async def events(response: httpx.Response) -> AsyncIterator[str]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield line.removeprefix("data: ")


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for the other side of a socket to notice."""
    async with asyncio.timeout(5):
        while not is_so():
            await asyncio.sleep(0.001)


@pytest.mark.anyio
async def test_a_stream_has_every_token_its_usage_and_an_end(
    engine: FakeVLLM, client: httpx.AsyncClient, chat: Body
) -> None:
    body = chat(stream=True, max_tokens=40, stream_options={"include_usage": True})
    async with client.stream("POST", engine.base_url + CHAT, json=body) as response:
        found = [event async for event in events(response)]
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert found[-1] == "[DONE]"
    parsed = [json.loads(event) for event in found[:-1]]
    assert parsed[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert parsed[-2]["choices"][0]["finish_reason"] == "length"
    assert parsed[-1]["usage"] == {"prompt_tokens": 3, "total_tokens": 43, "completion_tokens": 40}


@pytest.mark.anyio
async def test_an_answer_without_stream_comes_whole(
    engine: FakeVLLM, client: httpx.AsyncClient, chat: Body
) -> None:
    response = await client.post(engine.base_url + CHAT, json=chat(), headers={"x-request-id": "mine"})
    body = response.json()
    assert (response.status_code, body["id"], body["usage"]["completion_tokens"]) == (200, "chatcmpl-mine", 5)


@pytest.mark.anyio
async def test_without_ignore_eos_lengths_vary_but_repeat(
    engine: FakeVLLM, client: httpx.AsyncClient, chat: Body
) -> None:
    async def length(text: str) -> tuple[int, str]:
        body = chat(text, ignore_eos=False, max_tokens=300)
        answer = (await client.post(engine.base_url + CHAT, json=body)).json()
        return answer["usage"]["completion_tokens"], answer["choices"][0]["finish_reason"]

    lengths = await asyncio.gather(*(length(f"question {number}") for number in range(8)))
    assert len(set(lengths)) > 4
    assert {reason for tokens, reason in lengths if tokens < 300} == {"stop"}
    assert await length("question 0") == lengths[0]


@pytest.mark.anyio
async def test_several_choices_and_prompts_are_made(engine: FakeVLLM, client: httpx.AsyncClient) -> None:
    body = {"model": "tiny", "prompt": ["hello", "world"], "n": 2, "max_tokens": 2, "ignore_eos": True}
    answer = (await client.post(engine.base_url + "/v1/completions", json=body)).json()
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert answer["usage"]["completion_tokens"] == 8


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/health", 200, ""),
        ("GET", "/ping", 200, ""),
        ("GET", "/version", 200, '{"version":"0.32.0"}'),
        ("GET", "/load", 200, '{"server_load":0}'),
        ("GET", "/v1/nope", 404, '{"detail":"Not Found"}'),
        ("POST", "/v1/embeddings", 404, '{"detail":"Not Found"}'),
        ("GET", CHAT, 405, '{"detail":"Method Not Allowed"}'),
        ("POST", "/health", 405, '{"detail":"Method Not Allowed"}'),
    ],
)
async def test_other_paths_answer_as_vllms_do(
    engine: FakeVLLM, client: httpx.AsyncClient, method: str, path: str, status: int, body: str
) -> None:
    response = await client.request(method, engine.base_url + path)
    assert (response.status_code, response.text) == (status, body)


@pytest.mark.anyio
async def test_models_are_listed_and_text_is_tokenized(engine: FakeVLLM, client: httpx.AsyncClient) -> None:
    card = (await client.get(engine.base_url + "/v1/models")).json()["data"][0]
    assert (card["id"], card["root"], card["parent"], card["max_model_len"]) == ("tiny", "tiny", None, 1024)
    counted = await client.post(
        engine.base_url + "/tokenize", json={"model": "tiny", "prompt": "hello world"}
    )
    assert (counted.json()["count"], counted.json()["max_model_len"]) == (3, 1024)
    assert (await client.post(engine.base_url + "/tokenize", content=b"{")).status_code == 400


@pytest.mark.anyio
async def test_what_is_refused_never_reaches_the_scheduler(
    engine: FakeVLLM, client: httpx.AsyncClient, chat: Body
) -> None:
    unknown = await client.post(engine.base_url + CHAT, json=chat(model="nope"))
    assert (unknown.status_code, unknown.json()["error"]["type"]) == (404, "NotFoundError")
    too_long = await client.post(engine.base_url + CHAT, json=chat("four" * 2000, stream=True))
    assert (too_long.status_code, too_long.json()["error"]["param"]) == (400, "input_tokens")
    assert engine.scheduler.stats().steps == 0


@pytest.mark.anyio
async def test_a_key_guards_v1_and_nothing_else(client: httpx.AsyncClient, chat: Body) -> None:
    async with FakeVLLM(api_key="secret", step=StepTime(0.001, 0.0)) as engine:
        refused = await client.post(engine.base_url + CHAT, json=chat())
        assert (refused.status_code, refused.json()) == (401, {"error": "Unauthorized"})
        assert (await client.get(engine.base_url + "/metrics")).status_code == 200
        headers = {"authorization": "Bearer secret"}
        assert (await client.post(engine.base_url + CHAT, json=chat(), headers=headers)).status_code == 200


@pytest.mark.anyio
async def test_past_the_queue_limit_requests_are_refused_with_503(
    client: httpx.AsyncClient, chat: Body
) -> None:
    async with FakeVLLM(max_num_queued_reqs=1, step=StepTime(0.05, 0.0)) as engine:
        async with client.stream("POST", engine.base_url + CHAT, json=chat(stream=True)):
            refused = await client.post(engine.base_url + CHAT, json=chat())
        assert (refused.status_code, refused.json()["error"]["type"]) == (503, "Service Unavailable")
        assert "retry-after" not in refused.headers
        page = parse((await client.get(engine.base_url + "/metrics")).content)
        assert page.rejections == 1


@pytest.mark.anyio
async def test_overload_preempts_as_a_real_engine_does_and_every_stream_still_ends(
    engine: FakeVLLM, client: httpx.AsyncClient, chat: Body
) -> None:
    async def one(number: int) -> str:
        async with client.stream(
            "POST", engine.base_url + CHAT, json=chat(f"{number}", stream=True, max_tokens=600)
        ) as response:
            return [event async for event in events(response)][-1]

    assert await asyncio.gather(*(one(number) for number in range(12))) == ["[DONE]"] * 12
    # A real 0.32.0 counted 16 for the same load; requests come a step or two apart here as there.
    assert 12 <= engine.scheduler.stats().preemptions <= 20
    page = await metrics(engine, client)
    assert (page.preemptions, page.success) == (engine.scheduler.stats().preemptions, 12)
    assert (page.generation_tokens, page.kv_usage, page.running, page.waiting) == (7200, 0.0, 0, 0)


@pytest.mark.anyio
async def test_a_client_that_leaves_frees_its_blocks(
    engine: FakeVLLM, client: httpx.AsyncClient, chat: Body
) -> None:
    async with client.stream(
        "POST", engine.base_url + CHAT, json=chat(stream=True, max_tokens=1000)
    ) as response:
        async for _ in events(response):
            break
        assert engine.scheduler.stats().used_blocks > 0
    await until(lambda: not engine.scheduler.has_work)
    page = await metrics(engine, client)
    assert (page.running, page.kv_usage, page.success) == (0, 0.0, 0)


@pytest.mark.anyio
async def test_two_live_requests_with_one_id_are_kept_apart(client: httpx.AsyncClient, chat: Body) -> None:
    async with FakeVLLM(step=StepTime(0.01, 0.0)) as engine:
        headers = {"x-request-id": "same"}
        posts = (client.post(engine.base_url + CHAT, json=chat(), headers=headers) for _ in range(2))
        ids = {response.json()["id"] for response in await asyncio.gather(*posts)}
    assert len(ids) == 2
    assert "chatcmpl-same" in ids


@pytest.mark.anyio
async def test_a_killed_engine_cuts_streams_without_done_and_refuses_until_restarted(
    engine: FakeVLLM, client: httpx.AsyncClient, chat: Body
) -> None:
    await client.post(engine.base_url + CHAT, json=chat())
    found: list[str] = []

    async def read() -> None:
        async with client.stream(
            "POST", engine.base_url + CHAT, json=chat(stream=True, max_tokens=900)
        ) as response:
            async for event in events(response):
                found.append(event)
                if len(found) == 3:
                    await engine.kill()

    with pytest.raises(httpx.RemoteProtocolError):
        await read()
    assert "[DONE]" not in found
    with pytest.raises(httpx.ConnectError):
        await client.get(engine.base_url + "/health")
    port = engine.port
    await engine.restart()
    assert engine.port == port
    assert (await metrics(engine, client)).generation_tokens == 0
    assert (await client.post(engine.base_url + CHAT, json=chat())).status_code == 200


@pytest.mark.anyio
async def test_a_hung_engine_looks_healthy_and_makes_no_token_until_resumed(
    engine: FakeVLLM, client: httpx.AsyncClient, chat: Body
) -> None:
    async with client.stream(
        "POST", engine.base_url + CHAT, json=chat(stream=True, max_tokens=200)
    ) as response:
        stream = events(response)
        await anext(stream)
        engine.hang()
        before = await metrics(engine, client)
        await asyncio.sleep(0.03)
        assert await metrics(engine, client) == before
        assert before.running == 1
        assert (await client.get(engine.base_url + "/health")).status_code == 200
        engine.resume()
        assert [event async for event in stream][-1] == "[DONE]"


@pytest.mark.anyio
async def test_a_dead_engine_core_says_error_and_done_and_then_is_gone(
    engine: FakeVLLM, client: httpx.AsyncClient, chat: Body
) -> None:
    async def streamed() -> list[str]:
        async with client.stream(
            "POST", engine.base_url + CHAT, json=chat(stream=True, max_tokens=900)
        ) as response:
            return [event async for event in events(response)]

    async with asyncio.TaskGroup() as tasks:
        stream = tasks.create_task(streamed())
        unary = tasks.create_task(client.post(engine.base_url + CHAT, json=chat(max_tokens=900)))
        await until(lambda: len(engine.scheduler.running_ids) == 2)
        dying = tasks.create_task(engine.core_died(linger=0.3))
        await until(lambda: engine.is_dead)
        assert (await client.get(engine.base_url + "/health")).status_code == 503
        assert (await client.get(engine.base_url + "/v1/models")).status_code == 200
        assert (await client.post(engine.base_url + CHAT, json=chat())).status_code == 500
    assert stream.result()[-1] == "[DONE]"
    assert json.loads(stream.result()[-2])["error"]["message"] == ENGINE_DEAD
    assert unary.result().status_code == 500
    assert dying.done()
    with pytest.raises(httpx.ConnectError):
        await client.get(engine.base_url + "/health")


@pytest.mark.anyio
async def test_a_cached_prefix_is_seen_in_the_counters(client: httpx.AsyncClient, chat: Body) -> None:
    async with FakeVLLM(prefix_caching=True, step=StepTime(0.001, 0.0)) as engine:
        for _ in range(2):
            await client.post(engine.base_url + CHAT, json=chat("four" * 100))
        # Three full blocks of 32 of the second prompt were there.
        assert engine.scheduler.stats().cached_prompt_tokens == 96


@pytest.mark.anyio
async def test_the_page_says_how_large_the_cache_is_and_counts_prompts(
    engine: FakeVLLM, client: httpx.AsyncClient, chat: Body
) -> None:
    await client.post(engine.base_url + CHAT, json=chat())
    page = await metrics(engine, client)
    assert (page.cache.num_gpu_blocks, page.cache.block_size, page.cache.kv_cache_size_tokens) == (
        64,
        32,
        2048,
    )
    assert (page.prompt_tokens, page.generation_tokens, page.awake) == (3, 5, True)
    assert parse(engine.metrics_page().encode()).model_name == "tiny"


def test_a_window_that_does_not_fit_does_not_boot() -> None:
    with pytest.raises(ValueError, match="does not fit in 2016 tokens"):
        FakeVLLM(max_model_len=2017)


def test_it_runs_on_uvloop_too(chat: Body) -> None:
    async def run() -> int:
        async with FakeVLLM(step=StepTime(0.001, 0.0)) as engine, httpx.AsyncClient() as client:
            return (await client.post(engine.base_url + CHAT, json=chat())).status_code

    assert uvloop.run(run()) == 200


def test_its_command_names_vllms_own_flags() -> None:
    flags = {name for option in main.params for name in option.opts}
    assert {"--host", "--port", "--max-num-seqs", "--max-model-len", "--block-size"} <= flags
    assert next(option for option in main.params if option.name == "host").default == "127.0.0.1"
