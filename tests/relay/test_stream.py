"""Streams with every fault at every moment, through a whole gateway: what the client, the ledger and the
other target see.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scripted import LAST_CHUNK
from stack import Stack, events, running_stack
from streams import (
    BAD,
    DONE,
    ENGINE_DEAD,
    FINISH,
    FULL,
    ROLE,
    USAGE,
    Act,
    Exchanged,
    Target,
    delta,
    drips,
    ends,
    error_object,
    exchange,
    hangs,
    last_row,
    says,
    target,
)

pytestmark = pytest.mark.anyio

ONLY = "x-spillgate-overflow: only"
NEVER = "x-spillgate-overflow: never"
HEALTHY = says(*FULL)


class Between(NamedTuple):
    stack: Stack
    engine: Target
    endpoint: Target


@asynccontextmanager
async def between(
    tmp_path: Path, engine: Act, endpoint: Act = HEALTHY, **options: Any
) -> AsyncIterator[Between]:
    async with (
        target(engine) as near,
        target(endpoint) as far,
        running_stack(tmp_path, engine=near.url, endpoint=far.base_url, **options) as stack,
    ):
        await stack.ready()
        yield Between(stack, near, far)


def text_of(answer: Exchanged) -> str:
    chunks = [e for e in events(answer.body.decode()) if e != "[DONE]"]
    return "".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c.get("choices"))


def in_band_error(answer: Exchanged) -> dict[str, Any]:
    """The error that ends a broken stream: an OpenAI error object, no end marker, no last chunk."""
    assert answer.status == 200
    assert not answer.wire.endswith(LAST_CHUNK)
    assert b"[DONE]" not in answer.body
    error: dict[str, Any] = events(answer.body.decode())[-1]["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


# Before content: another target, or a real status.

BEFORE_CONTENT = {
    "error first": (says(error_object(503)), "upstream_error_event"),
    "role then error": (says(ROLE, error_object(503)), "upstream_error_event"),
    "error then end marker": (says(error_object(500, ENGINE_DEAD), DONE), "upstream_error_event"),
    "role and error in one read": (says(ROLE + error_object(503)), "upstream_error_event"),
    "clean end with nothing": (says(), "upstream_truncated"),
    "clean end after the role": (says(ROLE), "upstream_truncated"),
    "cut before content": (ends(ROLE), "upstream_cut"),
    "abort before content": (says(delta("", "abort"), DONE), "upstream_error_event"),
    "twenty malformed events": (says(*[BAD] * 20), "upstream_protocol"),
    "an event without an end": (says(b"data: " + b"x" * (2**20 + 1)), "upstream_protocol"),
    "a megabyte without content": (says(*[b": " + b"x" * 300_000 + b"\n\n"] * 4), "upstream_protocol"),
}


@pytest.mark.parametrize(("act", "outcome"), BEFORE_CONTENT.values(), ids=BEFORE_CONTENT.keys())
async def test_an_engine_that_fails_before_content_is_replaced(
    tmp_path: Path, act: Act, outcome: str
) -> None:
    async with between(tmp_path, act) as (stack, engine, endpoint):
        answer = await exchange(stack)
        assert (answer.status, text_of(answer), answer.is_whole) == (200, "abc", True)
        assert answer.body.count(DONE) == 1
        assert answer.body.count(b'"role"') == 1
        assert answer.header("x-spillgate-route") == "overflow"
        assert answer.header("x-spillgate-reason") == "attempt_failed"
        row, (first, second) = await last_row(stack)
        assert (row["outcome"], row["route"], row["status"]) == ("ok", "overflow", 200)
        assert (first["outcome"], first["billable"], first["moment"]) == (outcome, "no", "headers")
        assert (second["outcome"], second["billable"], second["moment"]) == ("ok", "yes", "end")
        assert row["cash_marginal"] == 7 * 200_000 + 3 * 600_000
        assert (len(engine.posts), len(endpoint.posts)) == (1, 1)


@pytest.mark.parametrize(
    ("act", "status", "outcome", "billable"),
    [
        (says(error_object(429, "slow down", "rate_limit_error")), 429, "upstream_error_event", "no"),
        (says(ROLE, error_object(500, "no luck")), 500, "upstream_error_event", "unknown"),
        (says(), 502, "upstream_truncated", "unknown"),
        (ends(ROLE), 502, "upstream_cut", "unknown"),
    ],
    ids=["quota", "server error", "nothing", "cut"],
)
async def test_an_endpoint_that_fails_before_content_is_a_real_status(
    tmp_path: Path, act: Act, status: int, outcome: str, billable: str
) -> None:
    async with between(tmp_path, says(error_object(503)), act) as (stack, engine, endpoint):
        answer = await exchange(stack)
        assert answer.status == status
        error = json.loads(answer.body)["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert (answer.header("x-should-retry") == "false") == (billable == "unknown")
        row, (_, tried) = await last_row(stack)
        assert (row["outcome"], row["status"], row["route"]) == (outcome, status, "overflow")
        assert (tried["outcome"], tried["billable"]) == (outcome, billable)
        assert row["cash_marginal"] == (0 if billable == "no" else None)
        assert (len(engine.posts), len(endpoint.posts)) == (1, 1)


async def test_the_targets_own_words_reach_the_client(tmp_path: Path) -> None:
    act = says(error_object(429, "slow down", "rate_limit_error"))
    async with between(tmp_path, says(error_object(503)), act) as (stack, _, _):
        error = json.loads((await exchange(stack)).body)["error"]
        assert (error["message"], error["type"]) == ("slow down", "rate_limit_error")


async def test_silence_before_content_goes_to_the_next_target(tmp_path: Path) -> None:
    policy = "name: quick\ndeadlines: {first_byte: 300ms, between_events: 5s}\n"
    async with between(tmp_path, hangs(ROLE), policy=policy) as (stack, engine, _):
        answer = await exchange(stack)
        assert (text_of(answer), answer.header("x-spillgate-route")) == ("abc", "overflow")
        _, (first, _) = await last_row(stack)
        assert (first["outcome"], first["billable"]) == ("upstream_stall", "no")
        assert (await engine.post_peer()).left_at is not None


# After content: nobody else, an error inside the stream, and a body that does not end.

AFTER_CONTENT = {
    "clean end": (says(ROLE, delta("a"), delta("b")), "upstream_truncated"),
    "fin inside the body": (ends(ROLE, delta("a"), delta("b")), "upstream_cut"),
    "reset": (ends(ROLE, delta("a"), delta("b"), reset=True), "upstream_cut"),
    "error, end marker": (says(delta("ab"), error_object(500, ENGINE_DEAD), DONE), "upstream_error_event"),
    "error, more tokens": (says(delta("ab"), error_object(500), delta("c")), "upstream_error_event"),
    "content and error in one read": (says(delta("ab") + error_object(500)), "upstream_error_event"),
    "abort": (says(ROLE, delta("ab"), delta("", "abort"), DONE), "upstream_error_event"),
    "twenty malformed": (says(delta("ab"), *[BAD] * 20, FINISH, DONE), "upstream_protocol"),
    "event without an end": (says(delta("ab"), b"data: " + b"x" * (2**20 + 9)), "upstream_protocol"),
    "half an event at the end": (says(delta("ab"), delta("c")[:-9]), "upstream_truncated"),
}


@pytest.mark.parametrize("route", ["engine", "endpoint"])
@pytest.mark.parametrize(("act", "outcome"), AFTER_CONTENT.values(), ids=AFTER_CONTENT.keys())
async def test_after_content_there_is_no_second_generation(
    tmp_path: Path, act: Act, outcome: str, route: str
) -> None:
    local = route == "engine"
    acts = (act, says(*FULL)) if local else (says(*FULL), act)
    async with between(tmp_path, *acts) as (stack, engine, endpoint):
        answer = await exchange(stack, *(() if local else (ONLY,)))
        in_band_error(answer)
        assert answer.body.decode().count('"content":"a') == 1
        assert '"content":"c"' not in answer.body.decode()
        row, [tried] = await last_row(stack)
        assert (row["outcome"], row["status"], tried["outcome"]) == (outcome, 200, outcome)
        assert (tried["billable"], tried["moment"]) == ("no" if local else "yes", "midstream")
        assert tried["usage_source"] == "estimated"
        assert (row["cash_marginal"] == 0) == local
        assert (len(engine.posts), len(endpoint.posts)) == ((1, 0) if local else (0, 1))


async def test_silence_after_content_ends_at_the_limit_between_events(tmp_path: Path) -> None:
    policy = "name: quick\ndeadlines: {first_byte: 5s, between_events: 300ms}\n"
    async with between(tmp_path, hangs(ROLE, delta("a")), policy=policy) as (stack, engine, endpoint):
        in_band_error(await exchange(stack))
        row, [tried] = await last_row(stack)
        assert (row["outcome"], tried["moment"]) == ("upstream_stall", "midstream")
        assert (await engine.post_peer()).left_at is not None
        assert endpoint.posts == []


async def test_an_error_in_a_stream_carries_the_engines_words(tmp_path: Path) -> None:
    act = says(delta("a"), error_object(500, ENGINE_DEAD), DONE)
    async with between(tmp_path, act) as (stack, _, _):
        assert in_band_error(await exchange(stack))["message"] == ENGINE_DEAD


# Streams that are whole, in their various spellings.


@pytest.mark.parametrize(
    "act",
    [
        says(ROLE, delta("a"), delta("b"), delta("c"), FINISH),
        ends(ROLE, delta("a"), delta("b"), delta("c"), FINISH),
        ends(ROLE, delta("a"), delta("b"), delta("c"), FINISH, reset=True),
    ],
    ids=["clean end", "fin", "reset"],
)
async def test_a_finish_without_its_tail_is_whole(tmp_path: Path, act: Act) -> None:
    async with between(tmp_path, act) as (stack, _, endpoint):
        answer = await exchange(stack)
        assert (text_of(answer), answer.is_whole) == ("abc", True)
        assert answer.body.endswith(DONE)
        assert answer.body.count(DONE) == 1
        row, [tried] = await last_row(stack)
        assert (row["outcome"], row["usage_source"], tried["outcome"]) == ("ok", "estimated", "ok")
        assert row["completion_tokens"] >= 3
        assert endpoint.posts == []


async def test_one_finished_choice_of_two_is_not_the_whole(tmp_path: Path) -> None:
    second = delta("b").replace(b'"index":0', b'"index":1')
    finish = FINISH.replace(b'"index":0', b'"index":1')
    async with between(tmp_path, says(ROLE, delta("a"), second, FINISH)) as (stack, _, _):
        in_band_error(await exchange(stack, n=2))
        assert (await last_row(stack))[0]["outcome"] == "upstream_truncated"
    (tmp_path / "whole").mkdir()
    async with between(tmp_path / "whole", says(delta("a"), second, FINISH, finish)) as (stack, _, _):
        answer = await exchange(stack, n=2)
        assert (answer.is_whole, answer.body.endswith(DONE)) == (True, True)
        assert (await last_row(stack))[0]["outcome"] == "ok"


async def test_silence_after_the_finish_does_not_hold_the_client_for_long(tmp_path: Path) -> None:
    policy = "name: quick\ndeadlines: {first_byte: 5s, between_events: 300ms}\n"
    async with between(tmp_path, hangs(ROLE, delta("abc"), FINISH), policy=policy) as (stack, _, _):
        answer = await exchange(stack)
        assert (text_of(answer), answer.is_whole, answer.body.endswith(DONE)) == ("abc", True, True)
        row, _ = await last_row(stack)
        assert (row["outcome"], row["usage_source"]) == ("ok", "estimated")


async def test_an_end_marker_alone_is_a_whole_stream(tmp_path: Path) -> None:
    async with between(tmp_path, says(DONE)) as (stack, _, endpoint):
        answer = await exchange(stack)
        assert (answer.status, answer.body, answer.is_whole) == (200, DONE, True)
        row, _ = await last_row(stack)
        assert row["outcome"] == "ok"
        assert endpoint.posts == []


async def test_an_end_marker_whose_empty_line_never_came_is_one(tmp_path: Path) -> None:
    async with between(tmp_path, says(ROLE, delta("a"), b"data: [DONE]")) as (stack, _, _):
        answer = await exchange(stack)
        assert (text_of(answer), answer.is_whole) == ("a", True)
        assert (await last_row(stack))[0]["outcome"] == "ok"


async def test_nothing_passes_behind_the_end_marker(tmp_path: Path) -> None:
    async with between(tmp_path, says(*FULL, delta("late"), DONE)) as (stack, _, _):
        answer = await exchange(stack)
        assert answer.body.endswith(DONE)
        assert answer.body.count(DONE) == 1
        assert b"late" not in answer.body


async def test_one_malformed_event_is_left_out_and_counted(tmp_path: Path) -> None:
    pieces = (ROLE, delta("a"), BAD, delta("b"), delta("c"), FINISH, USAGE, DONE)
    async with between(tmp_path, says(*pieces)) as (stack, _, _):
        answer = await exchange(stack)
        assert (text_of(answer), answer.is_whole, BAD in answer.body) == ("abc", True, False)
        row, _ = await last_row(stack)
        assert (row["outcome"], row["completion_tokens"], row["usage_source"]) == ("ok", 3, "reported")
        assert "bad_events" in row["flags"]
        assert stack.gateway.parts.counters.bad_events["a"] == 1


@pytest.mark.parametrize("asked", [False, True])
async def test_the_usage_chunk_passes_only_where_it_was_asked_for(tmp_path: Path, asked: bool) -> None:
    options = {"stream_options": {"include_usage": True}} if asked else {}
    async with between(tmp_path, says(*FULL)) as (stack, engine, _):
        answer = await exchange(stack, **options)
        assert answer.body == b"".join(FULL) if asked else answer.body == b"".join(FULL).replace(USAGE, b"")
        sent = json.loads(engine.posts[0].body)
        assert sent["stream_options"] == {"include_usage": True}
        assert (await last_row(stack))[0]["usage_source"] == "reported"


async def test_ids_are_taken_out_and_comments_kept(tmp_path: Path) -> None:
    pieces = (b"id: 1\n" + delta("a"), b": keep-alive\n\n", b"id: 2\n" + delta("b"), FINISH, DONE)
    async with between(tmp_path, says(*pieces)) as (stack, _, _):
        answer = await exchange(stack)
        assert answer.body == delta("a") + b": keep-alive\n\n" + delta("b") + FINISH + DONE


@pytest.mark.parametrize("spelling", ["\r\n", "\r"])
async def test_other_line_ends_say_the_same(tmp_path: Path, spelling: str) -> None:
    spelled = [piece.replace(b"\n", spelling.encode()) for piece in FULL]
    async with between(tmp_path, says(*spelled)) as (stack, _, _):
        answer = await exchange(stack)
        assert answer.is_whole
        said = answer.body.decode().replace("\r\n", "\n").replace("\r", "\n")
        assert said == b"".join(FULL).replace(USAGE, b"").decode()
        row, _ = await last_row(stack)
        assert (row["outcome"], row["completion_tokens"]) == ("ok", 3)


async def test_bytes_that_leave_are_bytes_that_came_however_they_were_cut(tmp_path: Path) -> None:
    whole = ROLE + delta("北京😀") + delta("é") + FINISH + DONE
    async with between(tmp_path, drips(whole)) as (stack, _, _):
        answer = await exchange(stack)
        assert (answer.body, answer.is_whole) == (whole, True)


async def test_all_events_in_one_read_are_seen_once_each(tmp_path: Path) -> None:
    async with between(tmp_path, says(b"".join(FULL))) as (stack, _, _):
        assert text_of(await exchange(stack)) == "abc"
        row, _ = await last_row(stack)
        assert (row["completion_tokens"], row["outcome"]) == (3, "ok")


async def test_reasoning_and_tool_calls_are_content(tmp_path: Path) -> None:
    """A stream that has begun with either may not be begun again elsewhere."""
    for part in (b'"reasoning":"hm"', b'"tool_calls":[{"index":0,"function":{"arguments":"{"}}]'):
        event = delta("x").replace(b'"content":"x"', part)
        folder = tmp_path / str(len(part))
        folder.mkdir()
        async with between(folder, says(ROLE, event)) as (stack, _, endpoint):
            in_band_error(await exchange(stack))
            assert endpoint.posts == []


async def test_a_stream_that_is_none_goes_to_the_next_target(tmp_path: Path) -> None:
    from scripted import ok
    from streams import WHOLE, answers

    for body, kind in ((WHOLE, "application/json"), (b"<html>", "text/html")):
        folder = tmp_path / kind.replace("/", "-")
        folder.mkdir()
        async with between(folder, answers(ok(body, kind))) as (stack, _, endpoint):
            assert text_of(await exchange(stack)) == "abc"
            _, (first, _) = await last_row(stack)
            assert first["outcome"] == "upstream_protocol"
            assert len(endpoint.posts) == 1


async def test_nobody_else_is_asked_where_the_request_may_not_leave(tmp_path: Path) -> None:
    async with between(tmp_path, says(ROLE, error_object(503, "full"))) as (stack, _, endpoint):
        answer = await exchange(stack, NEVER)
        assert answer.status == 503
        assert answer.header("retry-after") == "1"
        assert json.loads(answer.body)["error"]["message"] == "full"
        assert (await last_row(stack))[0]["outcome"] == "upstream_error_event"
        assert endpoint.posts == []
