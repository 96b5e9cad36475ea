"""The gateway before a real vLLM, as SDK users and raw clients meet it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from sdk_suite import CHECKS
from stack import PATIENT, Stack, running_stack

SUITE = Path(__file__).parent / "sdk_suite.py"
ERRORS = json.loads((Path(__file__).parents[1] / "captures" / "engine_errors.json").read_text())
LONG = "the quick brown fox " * 400
# The gateway answers these itself, before any engine: same status, its own words.
OWN_WORDS = {
    "err-bad-json",
    "err-empty-body",
    "err-unknown-model",
    "err-unknown-model-stream",
    "err-wrong-content-type",
    "err-method-get",
}


@pytest.fixture(scope="module")
def gateway(vllm: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One gateway for the module, in a thread of its own: the SDK's clients here are synchronous."""
    with start_blocking_portal() as portal:
        running = portal.wrap_async_context_manager(
            running_stack(tmp_path_factory.mktemp("gateway"), engine=vllm, policy=PATIENT)
        )
        with running as stack:
            portal.call(stack.ready)
            yield stack


@pytest.fixture(scope="module", params=["3.x", "2.x"])
def sdk(request: pytest.FixtureRequest, gateway: Stack) -> dict[str, str]:
    """The suite's results under one major version of the SDK."""
    env = dict(os.environ)
    if request.param == "2.x":
        folder = os.environ.get("SPILLGATE_OPENAI_2")
        if not folder:
            pytest.skip("no openai 2.x: set SPILLGATE_OPENAI_2 to a folder that it is installed in")
        env["PYTHONPATH"] = folder
    done = subprocess.run(
        [sys.executable, str(SUITE), gateway.url],
        capture_output=True,
        text=True,
        timeout=300,
        env=env,
        check=True,
    )
    results: dict[str, str] = json.loads(done.stdout)
    assert results["version"].startswith(request.param[0])
    return results


@pytest.mark.parametrize("check", [check.__name__ for check in CHECKS])
def test_the_sdk_finds_everything_as_it_should_be(sdk: dict[str, str], check: str) -> None:
    assert sdk[check] == "ok"


def _normal(body: bytes) -> bytes:
    """Without what vLLM makes up anew for each request."""
    text = re.sub(rb'"(id|request_id|created|created_at)": ?("[^"]*"|[\d.]+)', b"", body)
    return re.sub(rb'"(chatcmpl|cmpl|resp|msg|rs|call|chatcmpl-tool)[-_][^"]*"', b'""', text)


CHAT: dict[str, Any] = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "hello 北京😀"}],
    "max_tokens": 12,
    "temperature": 0,
}
TEXT: dict[str, Any] = {"model": "tiny", "prompt": "hello world", "max_tokens": 12, "temperature": 0}
SAME_BYTES = {
    "chat": ("/v1/chat/completions", CHAT),
    "chat-logprobs": (
        "/v1/chat/completions",
        CHAT | {"logprobs": True, "top_logprobs": 2},
    ),
    "chat-stream-with-usage": (
        "/v1/chat/completions",
        CHAT | {"stream": True, "stream_options": {"include_usage": True}},
    ),
    "chat-stream-continuous": (
        "/v1/chat/completions",
        CHAT | {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    ),
    "chat-stream": ("/v1/chat/completions", CHAT | {"stream": True}),
    "completions": ("/v1/completions", TEXT),
    "completions-token-ids": ("/v1/completions", TEXT | {"return_token_ids": True, "echo": True}),
    "completions-stream": ("/v1/completions", TEXT | {"stream": True}),
    "tokenize": ("/tokenize", {"model": "tiny", "prompt": "hello world"}),
    "detokenize": ("/detokenize", {"model": "tiny", "tokens": [50, 51, 52]}),
    "messages": ("/v1/messages", CHAT),
    "count-tokens": ("/v1/messages/count_tokens", {k: CHAT[k] for k in ("model", "messages")}),
}


@pytest.mark.parametrize("name", SAME_BYTES)
def test_the_same_bytes_come_as_from_the_engine_itself(gateway: Stack, vllm: str, name: str) -> None:
    path, body = SAME_BYTES[name]
    for _ in range(
        4
    ):  # how many tokens an event packs is the engine's timing: streams get a few tries to agree
        ours = httpx.post(gateway.url + path, json=body, timeout=30)
        theirs = httpx.post(vllm + path, json=body, timeout=30)
        if _normal(ours.content) == _normal(theirs.content):
            break
    assert _normal(ours.content) == _normal(theirs.content)
    assert ours.status_code == theirs.status_code == 200
    assert ours.headers["content-type"] == theirs.headers["content-type"]
    assert ours.headers["x-spillgate-route"] == "local"


@pytest.mark.parametrize("row", ERRORS, ids=[row["name"] for row in ERRORS])
def test_every_error_of_the_engine_comes_with_its_status_in_openais_shape(
    gateway: Stack, vllm: str, row: dict[str, Any]
) -> None:
    headers = {"content-type": "application/json", "x-spillgate-overflow": "never"} | row["headers"]
    send = partial(
        httpx.request,
        row["method"],
        content=row["body"].replace("@LONG@", LONG).encode(),
        headers=headers,
        timeout=60,
    )
    ours, theirs = send(gateway.url + row["path"]), send(vllm + row["path"])
    assert ours.status_code == theirs.status_code
    if theirs.status_code == 200:  # some of the captured errors are none in other versions
        return
    error = ours.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    if row["name"] not in OWN_WORDS and "error" in theirs.json():
        assert ours.content == theirs.content


def test_usage_is_written_down_though_the_client_did_not_ask(gateway: Stack) -> None:
    with httpx.stream(
        "POST", gateway.url + "/v1/chat/completions", json=CHAT | {"stream": True}, timeout=30
    ) as answer:
        text = answer.read().decode()
        request_id = answer.headers["x-request-id"]
    assert '"usage"' not in text
    [row] = [row for row in gateway.rows() if row["request_id"] == request_id]
    assert (row["completion_tokens"], row["usage_source"], row["outcome"]) == (12, "reported", "ok")
    assert row["alternative_cash"] is not None


@pytest.mark.anyio
@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_frees_the_engine(gateway: Stack, vllm: str, stream: bool) -> None:
    async with httpx.AsyncClient(timeout=30) as client:
        with anyio.move_on_after(0.5):
            await client.post(
                gateway.url + "/v1/completions",
                json=TEXT | {"max_tokens": 1000, "stream": stream, "ignore_eos": True},
            )
        # How soon is told by the scripted upstreams' tests; here the engine must hear of it at all.
        with anyio.fail_after(3):
            while await _running(client, vllm):
                await anyio.sleep(0.01)


async def _running(client: httpx.AsyncClient, vllm: str) -> float:
    page = (await client.get(f"{vllm}/metrics")).text
    return sum(float(v) for v in re.findall(r"^vllm:num_requests_running\{[^}]*\} ([\d.]+)", page, re.M))
