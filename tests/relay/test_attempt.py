"""One attempt whose answer is not streamed: carried whole, or told why not."""

import json
from pathlib import Path

import pytest
from scripted import Peer, Received, ok
from scripted import answer as http
from stack import running_stack
from streams import WHOLE, Act, answers, exchange, hangs, last_row, says, target

pytestmark = pytest.mark.anyio

JSON = ("content-type", "application/json")
NEVER = "x-spillgate-overflow: never"


async def test_a_whole_answer_passes_byte_for_byte_with_its_length(tmp_path: Path) -> None:
    spaced = WHOLE.replace(b'": ', b'" :  ')
    async with target(answers(ok(spaced))) as engine, running_stack(tmp_path, engine=engine.url) as stack:
        await stack.ready()
        answer = await exchange(stack, stream=False)
        assert (answer.status, answer.wire) == (200, spaced)
        assert answer.header("content-length") == str(len(spaced))
        row, [tried] = await last_row(stack)
        assert (row["outcome"], row["prompt_tokens"], row["completion_tokens"]) == ("ok", 7, 3)
        assert (tried["moment"], tried["usage_source"]) == ("end", "reported")


async def test_an_answer_without_usage_is_estimated_and_says_so(tmp_path: Path) -> None:
    bare = json.dumps({k: v for k, v in json.loads(WHOLE).items() if k != "usage"}).encode()
    async with target(answers(ok(bare))) as engine, running_stack(tmp_path, engine=engine.url) as stack:
        await stack.ready()
        assert (await exchange(stack, stream=False)).wire == bare
        row, _ = await last_row(stack)
        assert (row["outcome"], row["usage_source"]) == ("ok", "estimated")
        assert row["completion_tokens"] is None


def raw_then_fin(raw: bytes) -> Act:
    async def act(peer: Peer, _: Received) -> None:
        peer.send(raw)
        peer.fin()

    return act


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
BROKEN = {
    "html": (answers(ok(b"<html><title>busy</title>", "text/html")), "upstream_protocol"),
    "no JSON": (answers(ok(WHOLE[:-1])), "upstream_protocol"),
    "shorter than promised": (raw_then_fin(HEAD + b"content-length: 999\r\n\r\n" + WHOLE), "upstream_cut"),
    "cut inside": (raw_then_fin(HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\n{"), "upstream_cut"),
}


@pytest.mark.parametrize(("act", "outcome"), BROKEN.values(), ids=BROKEN.keys())
async def test_half_an_answer_is_never_a_200(tmp_path: Path, act: Act, outcome: str) -> None:
    async with (
        target(act) as engine,
        target(answers(ok(WHOLE))) as endpoint,
        running_stack(tmp_path, engine=engine.url, endpoint=endpoint.base_url) as stack,
    ):
        await stack.ready()
        alone = await exchange(stack, NEVER, stream=False)
        assert alone.status == 502
        assert set(json.loads(alone.body)["error"]) == {"message", "type", "param", "code"}
        assert (await last_row(stack))[0]["outcome"] == outcome
        helped = await exchange(stack, stream=False)
        assert (helped.status, helped.header("x-spillgate-route")) == (200, "overflow")
        row, (first, second) = await last_row(stack, 2)
        assert (row["outcome"], first["outcome"], second["outcome"]) == ("ok", outcome, "ok")


async def test_an_error_of_any_length_is_read_so_far_and_keeps_its_status(tmp_path: Path) -> None:
    long = json.dumps({"error": {"message": "x" * 200_000, "type": "t", "param": None, "code": 400}}).encode()
    async with (
        target(answers(http(400, [JSON], long))) as engine,
        running_stack(tmp_path, engine=engine.url) as stack,
    ):
        await stack.ready()
        answer = await exchange(stack, stream=False)
        assert answer.status == 400
        assert len(answer.body) < 70_000
        assert set(json.loads(answer.body)["error"]) == {"message", "type", "param", "code"}
        assert (await last_row(stack))[0]["outcome"] == "upstream_status"


async def test_a_silent_engine_is_left_at_the_first_byte_limit(tmp_path: Path) -> None:
    policy = "name: quick\ndeadlines: {first_byte: 200ms}\n"
    async with (
        target(hangs(head=False)) as engine,
        target(answers(ok(WHOLE))) as endpoint,
        running_stack(tmp_path, engine=engine.url, endpoint=endpoint.base_url, policy=policy) as stack,
    ):
        await stack.ready()
        answer = await exchange(stack, stream=False)
        assert (answer.status, answer.header("x-spillgate-route")) == (200, "overflow")
        _, (first, _) = await last_row(stack)
        assert (first["outcome"], first["moment"], first["billable"]) == ("upstream_timeout", "sent", "no")
        assert (await engine.post_peer()).left_at is not None


async def test_an_event_stream_where_json_was_asked_for_is_not_passed_off_as_it(tmp_path: Path) -> None:
    async with target(says(b"data: {}\n\n")) as engine, running_stack(tmp_path, engine=engine.url) as stack:
        await stack.ready()
        assert (await exchange(stack, NEVER, stream=False)).status == 502
        assert (await last_row(stack))[0]["outcome"] == "upstream_protocol"
