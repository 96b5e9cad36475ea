"""Attempt after attempt: who is tried next after which failure, and what of it the client and the ledger
see."""

import json
import time
from pathlib import Path

import anyio
import httpx
import pytest
from scripted import answer as http
from scripted import closed_port, ok, resets_at_once
from stack import POLICY, running_stack
from streams import (
    FULL,
    ROLE,
    WHOLE,
    Act,
    Exchanged,
    answers,
    connect,
    delta,
    ends,
    exchange,
    floods,
    hangs,
    last_row,
    quiet,
    request_bytes,
    says,
    target,
)

from gateway.simulator.fake_vllm import FakeVLLM

pytestmark = pytest.mark.anyio

ONLY = "x-spillgate-overflow: only"
NEVER = "x-spillgate-overflow: never"
JSON = [("content-type", "application/json")]


def refusal(status: int, message: str, kind: str, param: str | None = None) -> bytes:
    """An error body in OpenAI's shape, spaced as vLLM spaces it."""
    return json.dumps({"error": {"message": message, "type": kind, "param": param, "code": status}}).encode()


BUSY = refusal(503, "The model is busy and cannot accept new requests at the moment.", "service_unavailable")
MISSING = refusal(404, "The model `tiny` does not exist.", "NotFoundError", "model")


async def test_a_400_of_the_engine_comes_back_unchanged_and_once(tmp_path: Path) -> None:
    body = refusal(400, "top_p must be in (0, 1], got 7.0.", "BadRequestError", "top_p")
    async with (
        target(answers(http(400, JSON, body))) as engine,
        target(says(*FULL)) as endpoint,
        running_stack(tmp_path, engine=engine.url, endpoint=endpoint.base_url) as stack,
    ):
        await stack.ready()
        answer = await exchange(stack)
        assert (answer.status, answer.body) == (400, body)
        row, [tried] = await last_row(stack)
        assert (row["outcome"], row["status"]) == ("upstream_status", 400)
        assert (tried["moment"], tried["status"], tried["billable"]) == ("headers", 400, "no")
        assert (len(engine.posts), len(endpoint.posts)) == (1, 0)


async def test_a_model_that_the_engine_lacks_is_our_mistake_and_not_the_clients(tmp_path: Path) -> None:
    async with (
        target(answers(http(404, JSON, MISSING))) as engine,
        target(says(*FULL)) as endpoint,
        running_stack(tmp_path, engine=engine.url, endpoint=endpoint.base_url) as stack,
    ):
        await stack.ready()
        answer = await exchange(stack, NEVER)
        assert answer.status == 502
        assert json.loads(answer.body)["error"]["code"] == "engine_model_missing"
        assert (await last_row(stack))[0]["status"] == 502
        elsewhere = await exchange(stack)
        assert (elsewhere.status, elsewhere.header("x-spillgate-route")) == (200, "overflow")
        await quiet(stack)


async def test_a_bad_endpoint_key_is_a_502_without_the_providers_words(tmp_path: Path) -> None:
    body = refusal(401, "Incorrect API key provided: endpoint-key. See https://provider.test.", "auth", None)
    busy, refused = answers(http(503, JSON, BUSY)), answers(http(401, JSON, body))
    async with (
        target(busy) as engine,
        target(refused) as endpoint,
        running_stack(tmp_path, engine=engine.url, endpoint=endpoint.base_url) as stack,
    ):
        await stack.ready()
        answer = await exchange(stack)
        assert answer.status == 502
        assert json.loads(answer.body)["error"]["code"] == "overflow_auth"
        assert b"provider.test" not in answer.body
        assert b"endpoint-key" not in answer.body
        row, (_, tried) = await last_row(stack)
        assert (row["outcome"], row["cash_marginal"], tried["billable"]) == ("upstream_status", 0, "no")


async def test_a_refusal_at_admission_overflows_by_its_own_name(tmp_path: Path) -> None:
    async with (
        target(answers(http(503, JSON, BUSY))) as engine,
        target(says(*FULL)) as endpoint,
        running_stack(tmp_path, engine=engine.url, endpoint=endpoint.base_url) as stack,
    ):
        await stack.ready()
        for _ in range(4):
            answer = await exchange(stack)
            assert answer.status == 200
            assert answer.header("x-spillgate-reason") == "engine_refused"
            assert answer.header("x-spillgate-attempts") == "2"
        row, (first, second) = await last_row(stack, 4)
        assert row["reason"] == "engine_refused"
        assert (first["outcome"], first["status"], first["billable"]) == ("upstream_status", 503, "no")
        assert (second["n"], second["reason"], second["outcome"]) == (2, "engine_refused", "ok")
        # Saturation is no failure: the breaker stays shut, the engine is asked every time.
        assert len(engine.posts) == 4
        assert stack.gateway.parts.view.breakers.open_until("a") is None


async def test_a_429_passes_with_its_time_and_the_target_is_left_alone_for_it(tmp_path: Path) -> None:
    body = refusal(429, "Rate limit reached.", "requests", None)
    limited = http(429, [*JSON, ("retry-after", "7")], body)
    async with (
        target(answers(http(503, JSON, BUSY))) as engine,
        target(answers(limited)) as endpoint,
        running_stack(tmp_path, engine=engine.url, endpoint=endpoint.base_url) as stack,
    ):
        await stack.ready()
        answer = await exchange(stack)
        assert (answer.status, answer.body) == (429, body)
        assert (answer.header("retry-after"), answer.header("retry-after-ms")) == ("7", "7000")
        until = stack.gateway.parts.view.breakers.open_until("serverless")
        assert until is not None
        assert 5 < until - time.monotonic() <= 7
        again = await exchange(stack)
        assert (again.status, len(endpoint.posts)) == (503, 1)
        assert [row["status"] for row in stack.rows()] == [429, 503]
        first, second = [
            a for a in stack.rows("attempts") if a["request_id"] == stack.rows()[0]["request_id"]
        ]
        assert (first["target"], second["status"], second["billable"]) == ("a", 429, "no")


@pytest.mark.parametrize("given", ["86400", "Fri, 31 Dec 2027 23:59:59 GMT", "soon", "-3", "nan", "inf"])
async def test_a_strange_retry_after_neither_breaks_nor_shuts_out_for_long(
    tmp_path: Path, given: str
) -> None:
    limited = http(429, [*JSON, ("retry-after", given)], b"{}")
    async with (
        target(answers(limited)) as endpoint,
        running_stack(tmp_path, endpoint=endpoint.base_url) as stack,
    ):
        assert stack.engine is not None
        await stack.ready()
        await stack.engine.kill()
        answer = await exchange(stack)
        assert answer.status == 429
        assert 1 <= int(answer.header("retry-after") or 0) <= 300
        until = stack.gateway.parts.view.breakers.open_until("serverless")
        assert until is None or until - time.monotonic() <= 300
        await quiet(stack)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reset_before_headers_at_the_engine_goes_to_the_endpoint(
    tmp_path: Path, stream: bool
) -> None:
    act = says(*FULL) if stream else answers(ok(WHOLE))
    async with (
        target(ends(head=False, reset=True)) as engine,
        target(act) as endpoint,
        running_stack(tmp_path, engine=engine.url, endpoint=endpoint.base_url) as stack,
    ):
        await stack.ready()
        answer = await exchange(stack, stream=stream)
        assert (answer.status, answer.header("x-spillgate-reason")) == (200, "attempt_failed")
        row, (first, second) = await last_row(stack)
        assert (row["outcome"], row["route"], row["reason"]) == ("ok", "overflow", "attempt_failed")
        assert (first["outcome"], first["moment"], first["billable"]) == ("upstream_cut", "sent", "no")
        assert (second["outcome"], second["billable"]) == ("ok", "yes")
        assert (len(engine.posts), len(endpoint.posts)) == (1, 1)
        assert engine.posts[0].header("x-request-id") != endpoint.posts[0].header("x-request-id")


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reset_at_the_endpoint_after_the_body_may_have_been_billed(
    tmp_path: Path, stream: bool
) -> None:
    async with (
        target(says(*FULL)) as engine,
        target(ends(head=False, reset=True)) as endpoint,
        running_stack(tmp_path, engine=engine.url, endpoint=endpoint.base_url) as stack,
    ):
        await stack.ready()
        answer = await exchange(stack, ONLY, stream=stream)
        assert answer.status == 502
        assert answer.header("x-should-retry") == "false"
        row, [tried] = await last_row(stack)
        assert (tried["outcome"], tried["billable"], tried["moment"]) == ("upstream_cut", "unknown", "sent")
        assert (row["outcome"], row["cash_marginal"]) == ("upstream_cut", None)
        assert (len(engine.posts), len(endpoint.posts)) == (0, 1)


async def test_a_refused_connection_at_both_is_a_503_and_costs_nothing(tmp_path: Path) -> None:
    with closed_port() as near, closed_port() as far:
        urls = (f"http://127.0.0.1:{near}", f"http://127.0.0.1:{far}/v1")
        async with running_stack(tmp_path, engine=urls[0], endpoint=urls[1]) as stack:
            answer = await exchange(stack)
            assert (answer.status, answer.header("x-should-retry")) == (503, None)
            assert int(answer.header("retry-after") or 0) >= 1
            row, tries = await last_row(stack)
            assert {(a["outcome"], a["billable"], a["moment"]) for a in tries} == {
                ("upstream_refused", "no", "connecting")
            }
            assert (row["cash_marginal"], row["standard"]) == (0, 0)


async def test_an_endpoint_that_never_answers_is_a_504_and_may_have_billed(tmp_path: Path) -> None:
    policy = "name: quick\ndeadlines: {first_byte: 200ms}\npin: overflow\n"
    async with (
        target(hangs(head=False)) as endpoint,
        running_stack(tmp_path, endpoint=endpoint.base_url, policy=policy) as stack,
    ):
        answer = await exchange(stack, stream=False)
        assert (answer.status, answer.header("x-should-retry")) == (504, "false")
        row, [tried] = await last_row(stack)
        assert (tried["outcome"], tried["billable"]) == ("upstream_timeout", "unknown")
        assert row["cash_marginal"] is None
        assert (await endpoint.post_peer()).left_at is not None


async def test_a_stale_connection_is_redialled_once_and_is_one_attempt(tmp_path: Path) -> None:
    from scripted import Peer, ScriptedUpstream, replies

    async def serves_one_then_resets(peer: Peer) -> None:
        await peer.request()
        peer.send(ok(WHOLE))
        await peer.request()
        peer.reset()

    async with (
        ScriptedUpstream(serves_one_then_resets, replies(ok(WHOLE))) as endpoint,
        running_stack(tmp_path, endpoint=f"{endpoint.url}/v1") as stack,
    ):
        for _ in range(2):
            assert (await exchange(stack, ONLY, stream=False)).status == 200
        row, [tried] = await last_row(stack, 2)
        assert (row["outcome"], tried["outcome"]) == ("ok", "ok")
        assert len(endpoint.peers) == 2


async def test_a_target_that_is_not_http_is_left(tmp_path: Path) -> None:
    async with (
        target(answers(b"220 mail.example ESMTP\r\n")) as engine,
        running_stack(tmp_path, engine=engine.url) as stack,
    ):
        await stack.ready()
        answer = await exchange(stack)
        assert (answer.status, answer.header("x-spillgate-route")) == (200, "overflow")
        _, (first, _) = await last_row(stack)
        assert (first["outcome"], first["billable"]) == ("upstream_protocol", "no")


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    from scripted import ScriptedUpstream

    async with ScriptedUpstream(resets_at_once) as trap:
        moved = http(302, [("location", f"{trap.url}/v1/chat/completions")])
        async with (
            target(answers(moved)) as endpoint,
            running_stack(tmp_path, endpoint=endpoint.base_url) as stack,
        ):
            answer = await exchange(stack, ONLY)
            assert answer.status == 502
            assert trap.url.encode() not in answer.body
            assert (await last_row(stack))[0]["outcome"] == "upstream_protocol"
            assert trap.peers == []


async def test_a_dead_core_is_replaced_before_content_and_told_after_it(tmp_path: Path) -> None:
    """vLLM's death: an error event and then `[DONE]`; a 500 to those that are not streamed."""
    from gateway.simulator.engine import StepTime

    engine = FakeVLLM(step=StepTime(0.02, 0.0))
    async with running_stack(tmp_path, engine=engine) as stack:
        await stack.ready()
        reader, writer = await connect(stack)
        writer.write(request_bytes(max_tokens=500, ignore_eos=True))
        with anyio.fail_after(5):
            head = await reader.readuntil(b"\r\n\r\n")
        wholes: list[httpx.Response] = []
        async with anyio.create_task_group() as group:

            async def whole() -> None:
                wholes.append(await stack.chat(max_tokens=300))

            group.start_soon(whole)
            with anyio.fail_after(5):
                while len(stack.gateway.parts.view.books["a"]) < 2:
                    await anyio.sleep(0.002)
            group.start_soon(engine.core_died)
        with anyio.fail_after(5):
            broken = Exchanged(head[:-4], await reader.read(-1))
        writer.close()
        assert (broken.is_whole, b"[DONE]" in broken.body, b'"error"' in broken.body) == (False, False, True)
        assert [(a.status_code, a.headers["x-spillgate-route"]) for a in wholes] == [(200, "overflow")]
        await last_row(stack, 2)
        assert {r["outcome"] for r in stack.rows()} == {"upstream_error_event", "ok"}


# Clients that leave.


@pytest.mark.parametrize("reset", [False, True], ids=["fin", "reset"])
@pytest.mark.parametrize(
    ("act", "stream", "heard"),
    [
        (hangs(head=False), True, False),
        (hangs(head=False), False, False),
        (hangs(ROLE), True, False),
        (hangs(ROLE, delta("a")), True, True),
    ],
    ids=["headers, streamed", "headers, whole", "silent prefill", "mid-stream"],
)
async def test_a_client_that_leaves_frees_the_engine_at_once(
    tmp_path: Path, act: Act, stream: bool, heard: bool, reset: bool
) -> None:
    async with (
        target(act) as engine,
        target(says(*FULL)) as endpoint,
        running_stack(tmp_path, engine=engine.url, endpoint=endpoint.base_url) as stack,
    ):
        await stack.ready()
        reader, writer = await connect(stack)
        writer.write(request_bytes(stream=stream))
        peer = await engine.post_peer()
        if heard:
            with anyio.fail_after(5):
                await reader.readuntil(b'"a"')
        left = anyio.current_time()
        writer.transport.abort() if reset else writer.close()
        with anyio.fail_after(2):
            await peer.gone()
        assert peer.left_at is not None
        assert peer.left_at - left < 0.25
        row, [tried] = await last_row(stack)
        assert (row["outcome"], tried["outcome"], tried["billable"]) == ("client_gone", "client_gone", "no")
        assert tried["completion_tokens"] == (1 if heard else None)
        assert endpoint.posts == []
        assert stack.gateway.parts.counters.attempts["a", "client_gone"] == 1
        assert stack.gateway.parts.view.breakers.open_until("a") is None


@pytest.mark.parametrize(("pieces", "billable"), [((), "unknown"), ((ROLE, delta("a")), "yes")])
async def test_a_client_that_leaves_an_endpoint_may_have_to_be_paid_for(
    tmp_path: Path, pieces: tuple[bytes, ...], billable: str
) -> None:
    async with (
        target(hangs(*pieces)) as endpoint,
        running_stack(tmp_path, endpoint=endpoint.base_url) as stack,
    ):
        reader, writer = await connect(stack)
        writer.write(request_bytes(headers=(ONLY,)))
        peer = await endpoint.post_peer()
        if pieces:
            with anyio.fail_after(5):
                await reader.readuntil(b'"a"')
        writer.close()
        with anyio.fail_after(1):
            await peer.gone()
        row, [tried] = await last_row(stack)
        assert (row["outcome"], tried["billable"]) == ("client_gone", billable)
        assert (row["cash_marginal"] is None) == (billable == "unknown")


async def test_a_client_that_stops_reading_is_given_up_and_its_engine_freed(tmp_path: Path) -> None:
    policy = POLICY.replace("client_stall: 5s", "client_stall: 300ms")
    async with (
        target(floods(delta("x" * 60_000), 400)) as engine,
        running_stack(tmp_path, engine=engine.url, policy=policy) as stack,
    ):
        await stack.ready()
        _, writer = await connect(stack)
        writer.transport.pause_reading()
        writer.write(request_bytes())
        peer = await engine.post_peer()
        with anyio.fail_after(10):
            await peer.gone()
        row, [tried] = await last_row(stack)
        assert (row["outcome"], tried["outcome"]) == ("client_slow", "client_slow")
        assert stack.gateway.parts.counters.attempts["a", "client_slow"] == 1
        writer.transport.abort()


async def test_other_clients_do_not_notice_one_that_stops_reading(tmp_path: Path) -> None:
    async with (
        target(floods(delta("x" * 60_000), 400), says(*FULL)) as engine,
        running_stack(tmp_path, engine=engine.url) as stack,
    ):
        await stack.ready()
        _, writer = await connect(stack)
        writer.transport.pause_reading()
        writer.write(request_bytes())
        await engine.post_peer()
        assert (await exchange(stack)).is_whole
        writer.transport.abort()
        await quiet(stack)


async def test_retries_are_a_share_of_what_is_in_flight(tmp_path: Path) -> None:
    """A target that fails for all must not double the load: a few second attempts at a time, no more."""
    async with (
        target(ends(head=False, wait=1.0)) as engine,
        target(hangs(head=False)) as endpoint,
        running_stack(tmp_path, engine=engine.url, endpoint=endpoint.base_url) as stack,
    ):
        await stack.ready()
        statuses: list[int] = []

        async def one() -> None:
            statuses.append((await exchange(stack)).status)

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(one)
            with anyio.fail_after(5):
                while len(statuses) < 5 or len(endpoint.posts) < 3:
                    await anyio.sleep(0.01)
            assert len(endpoint.posts) == 3
            assert set(statuses) == {502}
            group.cancel_scope.cancel()
        await quiet(stack)
