"""A real engine's bad days, seen through the gateway."""

import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from stack import Stack, running_stack

from gateway.routing.view import EngineState

pytestmark = pytest.mark.anyio
ASK: dict[str, Any] = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "hello world"}],
    "max_tokens": 900,
    "ignore_eos": True,
}


@pytest.fixture(scope="module")
def engine(engines: Callable[[], Any]) -> Any:
    made = engines()
    assert made.start(), made.log
    return made


@pytest.fixture
async def stack(engine: Any, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running_stack(tmp_path, engine=engine.url) as stack:
        yield stack


async def _until_state(stack: Stack, *states: EngineState) -> None:
    with anyio.fail_after(60):
        while stack.gateway.parts.view.snapshots["a"].state not in states:
            await anyio.sleep(0.02)


async def test_a_core_killed_mid_stream_breaks_the_stream_and_the_next_request_overflows(
    engine: Any, stack: Stack
) -> None:
    """vLLM sends an error event, then [DONE], then ends cleanly: none of that may look like a whole
    answer."""
    await stack.ready()
    text = b""
    cut = False
    try:
        async with stack.client.stream("POST", "/v1/chat/completions", json=ASK | {"stream": True}) as answer:
            assert answer.status_code == 200
            async for data in answer.aiter_raw():
                if not text:
                    os.kill(engine.core(), signal.SIGKILL)
                text += data
    except httpx.RemoteProtocolError:
        cut = True
    assert cut, "a cut answer must not end as a whole one does"
    assert b'"error"' in text
    assert b"[DONE]" not in text
    after = await stack.chat()
    assert (after.status_code, after.headers["x-spillgate-route"]) == (200, "overflow")
    await _until_state(stack, EngineState.UNREACHABLE)
    broken = stack.rows()[0]
    assert broken["outcome"] in ("upstream_error_event", "upstream_cut")
    assert broken["completion_tokens"] > 0
    assert broken["usage_source"] == "estimated"
    assert stack.is_quiet()


async def test_an_engine_that_is_stopped_and_started_again_gets_its_traffic_back(
    engine: Any, stack: Stack
) -> None:
    """It follows the test that killed the engine."""
    assert (await stack.chat()).headers["x-spillgate-route"] == "overflow"
    await anyio.to_thread.run_sync(engine.stop)
    assert await anyio.to_thread.run_sync(engine.start), engine.log
    await _until_state(stack, EngineState.READY)
    with anyio.fail_after(30):
        while (await stack.chat()).headers["x-spillgate-route"] != "local":
            await anyio.sleep(0.1)
    stopped = [r for r in stack.rows() if r["outcome"] != "ok"]
    assert stopped == []


async def test_a_hang_is_seen_though_everything_answers(engine: Any, stack: Stack) -> None:
    await stack.ready()
    core = engine.core()
    async with anyio.create_task_group() as group:
        group.start_soon(_ignore_cut, stack)
        await anyio.sleep(0.5)
        os.kill(core, signal.SIGSTOP)
        try:
            await _until_state(stack, EngineState.HUNG)
            answer = await stack.chat()
            assert (answer.headers["x-spillgate-route"], answer.headers["x-spillgate-reason"]) == (
                "overflow",
                "engine_unreachable",
            )
        finally:
            os.kill(core, signal.SIGCONT)
        group.cancel_scope.cancel()
    await _until_state(stack, EngineState.READY, EngineState.PREEMPTING)


async def _ignore_cut(stack: Stack) -> None:
    """The stream stalls and is broken off at the policy's limit, long before the hang is called one."""
    with suppress(httpx.RemoteProtocolError):
        await _read(stack)


async def _read(stack: Stack) -> None:
    async with stack.client.stream(
        "POST", "/v1/chat/completions", json=ASK | {"stream": True}, timeout=60
    ) as answer:
        async for _ in answer.aiter_raw():
            pass


async def test_a_start_that_fails_for_lack_of_kv_leaves_the_model_to_the_endpoint(
    engines: Callable[[], Any], tmp_path: Path
) -> None:
    failed = engines()
    assert not await anyio.to_thread.run_sync(lambda: failed.start(max_model_len=8192))
    assert failed.log
    extra_log = f"    boot_log: {failed.log}\n"
    import stack as parts

    original = parts.CONFIG
    parts.CONFIG = original.replace("    url: {engine}\n", "    url: {engine}\n" + extra_log)
    try:
        async with running_stack(tmp_path, engine=f"http://127.0.0.1:{failed.port}") as stack:
            await _until_state(stack, EngineState.UNBOOTABLE)
            cause = stack.gateway.parts.view.snapshots["a"].cause or ""
            assert "8192" in cause
            assert "2016" in cause
            answer = await stack.chat()
            assert answer.status_code == 200
            assert answer.headers["x-spillgate-reason"] == "engine_unbootable"
            assert stack.rows()[0]["alternative_kind"] == "infeasible"
    finally:
        parts.CONFIG = original
