"""`spillgate serve` as a process: how it starts, refuses, drains, and what a kill leaves in the ledger."""

import contextlib
import json
import os
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from click.testing import CliRunner
from scripted import closed_port
from stack import ADMIN_KEY, ENDPOINT_KEY, ENVIRON, write_config

from gateway.cli.main import cli
from gateway.simulator.engine import StepTime
from gateway.simulator.fake_endpoint import FakeEndpoint
from gateway.simulator.fake_vllm import FakeVLLM

SECRETS = (ADMIN_KEY, ENDPOINT_KEY)


@contextmanager
def process(config: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """`python -m gateway serve`, killed at the end if it still runs."""
    log = config.with_suffix(".log").open("ab")
    running = subprocess.Popen(
        [sys.executable, "-m", "gateway", "serve", "-c", str(config), *options],
        env=os.environ | ENVIRON, stdout=log, stderr=log,
    )  # fmt: skip
    try:
        yield running
    finally:
        if running.poll() is None:
            running.kill()
        running.wait(10)
        log.close()


def said(config: Path) -> str:
    return config.with_suffix(".log").read_text()


async def address(config: Path, running: subprocess.Popen[bytes], start: int = 1) -> str:
    """Where start number `start` with this configuration listens, once it answers."""
    with anyio.fail_after(30):
        while len(found := re.findall(r"listening on (http://\S+)", said(config))) < start:
            assert running.poll() is None, said(config)
            await anyio.sleep(0.05)
        async with client(found[-1]) as asking:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    ready = (await asking.get("/readyz")).json()
                    if ready["engines_up"]:
                        return str(found[-1])
                await anyio.sleep(0.05)


def client(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=20, verify=False)


async def ended(running: subprocess.Popen[bytes], within: float = 20) -> int:
    with anyio.fail_after(within):
        while (code := running.poll()) is None:
            await anyio.sleep(0.05)
    return code


def outcomes(folder: Path) -> dict[str, list[str]]:
    """Request id -> the outcomes of its rows."""
    found: dict[str, list[str]] = {}
    with contextlib.closing(sqlite3.connect(folder / "ledger.db")) as ledger:
        for request_id, outcome in ledger.execute("SELECT request_id, outcome FROM requests"):
            found.setdefault(request_id, []).append(outcome)
    return found


@dataclass
class Heard:
    """The clients' own log."""

    whole: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)


async def stream(asking: httpx.AsyncClient, heard: Heard, max_tokens: int) -> None:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": max_tokens}
    with contextlib.suppress(httpx.TransportError):
        async with asking.stream(
            "POST", "/v1/chat/completions", json=body | {"stream": True, "ignore_eos": True}
        ) as answer:
            request_id = answer.headers["x-request-id"]
            heard.open.add(request_id)
            async for line in answer.aiter_lines():
                if line == "data: [DONE]":
                    heard.open.remove(request_id)
                    heard.whole.add(request_id)


@asynccontextmanager
async def fakes(folder: Path) -> AsyncIterator[Path]:
    """An engine and an endpoint in this process, and a configuration that names them."""
    async with FakeVLLM(step=StepTime(0.01, 0.0), num_blocks=512) as engine, FakeEndpoint() as endpoint:
        yield write_config(folder, engine.base_url, endpoint.base_url)


@pytest.mark.anyio
async def test_a_kill_loses_no_finished_request_and_repeats_none(tmp_path: Path) -> None:
    heard = Heard()
    async with fakes(tmp_path) as config:
        with process(config) as first:
            url = await address(config, first)
            async with client(url) as asking, anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(stream, asking, heard, 900)
                for _ in range(20):
                    group.start_soon(stream, asking, heard, random.randint(1, 60))
                with anyio.fail_after(20):
                    while len(heard.whole) < 8 or len(heard.open) < 5:
                        await anyio.sleep(0.01)
                # A moment of its own each time: no seed, the rule holds at any.
                await anyio.sleep(random.random() * 0.3)
                first.kill()
        finished, in_flight = set(heard.whole), set(heard.open)
        assert len(in_flight) >= 5
        with process(config) as second:
            await address(config, second, 2)
            with anyio.fail_after(10):
                while len(rows := outcomes(tmp_path)) < 25:
                    await anyio.sleep(0.05)
            second.send_signal(signal.SIGTERM)
            assert await ended(second) == 0
    assert all(len(written) == 1 for written in rows.values())
    assert all(rows[request_id] == ["ok"] for request_id in finished)
    assert {rows[request_id][0] for request_id in in_flight} <= {"interrupted", "ok"}
    assert Counter(o for [o] in rows.values())["interrupted"] >= 5


@pytest.mark.anyio
async def test_sigterm_drains_refuses_new_work_and_exits_with_0(tmp_path: Path) -> None:
    heard = Heard()
    async with fakes(tmp_path) as config:
        with process(config) as running:
            url = await address(config, running)
            async with client(url) as asking, anyio.create_task_group() as group:
                group.start_soon(stream, asking, heard, 120)
                with anyio.fail_after(10):
                    while not heard.open:
                        await anyio.sleep(0.005)
                running.send_signal(signal.SIGTERM)
                with anyio.fail_after(5):
                    while (await asking.get("/readyz")).status_code == 200:
                        await anyio.sleep(0.01)
                body = {"model": "tiny", "messages": []}
                refused = await asking.post("/v1/chat/completions", json=body)
                assert refused.status_code == 503
                assert refused.json()["error"]["code"] == "draining"
                assert int(refused.headers["retry-after"]) >= 1
                assert heard.open
            assert await ended(running) == 0
    assert len(heard.whole) == 1
    assert sorted(o for [o] in outcomes(tmp_path).values()) == ["ok", "shed"]
    assert "Traceback" not in said(config)
    assert not any(secret in said(config) for secret in SECRETS)


@pytest.mark.anyio
async def test_a_second_signal_stops_at_once_and_closes_the_rows(tmp_path: Path) -> None:
    heard = Heard()
    async with fakes(tmp_path) as config:
        with process(config) as running:
            url = await address(config, running)
            async with client(url) as asking, anyio.create_task_group() as group:
                group.start_soon(stream, asking, heard, 900)
                with anyio.fail_after(10):
                    while not heard.open:
                        await anyio.sleep(0.005)
                running.send_signal(signal.SIGTERM)
                with anyio.fail_after(5):
                    while (await asking.get("/readyz")).status_code == 200:
                        await anyio.sleep(0.01)
                running.send_signal(signal.SIGTERM)
                assert await ended(running, within=4) == 0
    assert list(outcomes(tmp_path).values()) == [["shutdown"]]
    assert "Traceback" not in said(config)


@pytest.mark.anyio
async def test_a_second_gateway_on_one_journal_is_refused_in_one_sentence(tmp_path: Path) -> None:
    async with fakes(tmp_path) as config:
        with process(config) as running:
            await address(config, running)
            before = len(said(config))
            with process(config) as second:
                assert await ended(second) == 2
            sentence = said(config)[before:].strip()
            assert sentence.count("\n") == 0
            assert f"another gateway (process {running.pid})" in sentence
            assert running.poll() is None


@pytest.mark.anyio
async def test_it_serves_while_its_engine_is_away(tmp_path: Path) -> None:
    """A dead engine port is no reason not to start: requests say what is missing."""
    with closed_port() as near, closed_port() as far:
        config = write_config(tmp_path, f"http://127.0.0.1:{near}", f"http://127.0.0.1:{far}/v1")
        with process(config) as running:
            with anyio.fail_after(30):
                while not (found := re.findall(r"listening on (http://\S+)", said(config))):
                    assert running.poll() is None, said(config)
                    await anyio.sleep(0.05)
            async with client(found[0]) as asking:
                body = {"model": "tiny", "messages": [{"role": "user", "content": "x"}]}
                answer = await asking.post("/v1/chat/completions", json=body)
                assert answer.status_code == 503
                error: dict[str, Any] = answer.json()["error"]
                assert set(error) == {"message", "type", "param", "code"}
                assert str(near) not in json.dumps(error)
            running.send_signal(signal.SIGINT)
            assert await ended(running) == 0
        assert "Traceback" not in said(config)


def serve(config: Path, *options: str, env: dict[str, str] = ENVIRON) -> Any:
    return CliRunner(env=env).invoke(cli, ["serve", "-c", str(config), *options])


def one_sentence(result: Any) -> str:
    """What was said, if it is one line, ends with code 2 and shows neither traceback nor secret."""
    assert result.exit_code == 2
    text: str = result.output.strip()
    assert text.count("\n") == 0
    assert "Traceback" not in text
    assert not any(secret in text for secret in SECRETS)
    return text


def test_a_bad_configuration_is_named_by_line(tmp_path: Path) -> None:
    config = write_config(tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:2/v1")
    config.write_text(config.read_text().replace("engines: [a]", "engines: [aa]"))
    result = serve(config)
    assert result.exit_code == 2
    assert re.search(r"spillgate\.yaml:\d+:\d+: error: no engine is named 'aa'", result.output)
    assert "Traceback" not in result.output
    assert not any(secret in result.output for secret in SECRETS)
    assert not (tmp_path / "ledger.db.journal").exists()


def test_a_missing_variable_is_named_and_a_set_one_is_not_shown(tmp_path: Path) -> None:
    config = write_config(tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:2/v1")
    result = serve(config, env={"TEST_ENDPOINT_KEY": ENDPOINT_KEY})
    assert "TEST_ADMIN_KEY" in one_sentence(result)


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    config = write_config(tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:2/v1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        text = one_sentence(serve(config, "--port", port))
    assert f"cannot listen on 127.0.0.1:{port}" in text


def test_a_host_that_cannot_be_bound_is_one_sentence(tmp_path: Path) -> None:
    config = write_config(
        tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:2/v1", extra="clients: {keys_file: k.yaml}"
    )
    (tmp_path / "k.yaml").write_text("keys: []\n")
    for host in ("no such host", "192.0.2.1", "::g"):
        assert "cannot listen on" in one_sentence(serve(config, "--host", host))


def test_an_open_gateway_listens_on_loopback_only(tmp_path: Path) -> None:
    config = write_config(tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:2/v1")
    assert "keys" in one_sentence(serve(config, "--host", "0.0.0.0"))


def test_a_missing_file_and_a_broken_keys_file_are_one_sentence(tmp_path: Path) -> None:
    assert "none.yaml" in one_sentence(serve(tmp_path / "none.yaml"))
    config = write_config(
        tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:2/v1", extra="clients: {keys_file: k.yaml}"
    )
    (tmp_path / "k.yaml").write_text("keys: [oops]\n")
    assert "k.yaml" in one_sentence(serve(config))


@pytest.mark.parametrize("url", ["sqlite:///{folder}/spillgate.yaml/ledger.db", "nosuchdb://host/x"])
def test_a_ledger_that_cannot_be_had_is_one_sentence(tmp_path: Path, url: str) -> None:
    config = write_config(tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:2/v1")
    text = config.read_text().replace(f"sqlite:///{tmp_path}/ledger.db", url.format(folder=tmp_path))
    config.write_text(text)
    one_sentence(serve(config))
