"""Sockets and signals around a gateway: what is bound, and how a stop treats what is in flight."""

import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from scripted import LAST_CHUNK
from stack import ENVIRON, events, write_config
from streams import FULL, ROLE, Act, Exchanged, delta, hangs, request_bytes, says, target

from gateway.app import build
from gateway.config.load import load
from gateway.config.schema import Shutdown
from gateway.running import Gateway
from gateway.server import ListenRefused, listening_socket, run, server_of, serving


class Stopping:
    """A gateway that serves until told to stop, in a task of its own."""

    def __init__(self, folder: Path, engine: str, drain: float) -> None:
        config = load(write_config(folder, engine, "http://127.0.0.1:9/v1"), ENVIRON)
        self.gateway: Gateway = build(replace(config, shutdown=Shutdown(drain=drain)))
        self.url = ""
        self.up, self.stop, self.ended = anyio.Event(), anyio.Event(), anyio.Event()

    async def run(self) -> None:
        async with serving(self.gateway) as self.url:
            self.up.set()
            await self.stop.wait()
        self.ended.set()

    async def stream(self, **fields: Any) -> Exchanged:
        url = urlsplit(self.url)
        stream = await anyio.connect_tcp(url.hostname or "", url.port or 0)
        async with stream:
            await stream.send(request_bytes(headers=("x-spillgate-overflow: never",), **fields))
            got = b""
            try:
                while True:
                    got += await stream.receive()
            except anyio.EndOfStream:
                head, _, wire = got.partition(b"\r\n\r\n")
                return Exchanged(head, wire)


async def stopped_while_streaming(
    folder: Path, act: Act, drain: float
) -> tuple[Exchanged, list[Any], list[int]]:
    """What the client of an open stream got, the ledger's outcomes, and the statuses of requests that came
    later."""
    answers: list[Exchanged] = []
    later: list[int] = []
    async with target(act) as engine:
        with anyio.fail_after(20):
            stopping = Stopping(folder, engine.url, drain)
            async with anyio.create_task_group() as group:
                group.start_soon(stopping.run)
                await stopping.up.wait()

                async def ask() -> None:
                    answers.append(await stopping.stream())

                group.start_soon(ask)
                await engine.post_peer()
                stopping.stop.set()
                async with httpx.AsyncClient(base_url=stopping.url, timeout=5, verify=False) as client:
                    body = {"model": "tiny", "messages": []}
                    later.append((await client.get("/readyz")).status_code)
                    later.append((await client.post("/v1/chat/completions", json=body)).status_code)
                await stopping.ended.wait()
    return answers[0], _outcomes(folder), later


def _outcomes(folder: Path) -> list[Any]:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(folder / "ledger.db")) as ledger:
        return [row[0] for row in ledger.execute("SELECT outcome FROM requests ORDER BY t_in")]


@pytest.mark.anyio
async def test_an_open_stream_ends_normally_while_new_work_is_refused(tmp_path: Path) -> None:
    answer, outcomes, later = await stopped_while_streaming(tmp_path, says(*FULL, pause=0.1), drain=5.0)
    assert answer.is_whole
    assert answer.body.endswith(b"data: [DONE]\n\n")
    assert (outcomes, later) == (["ok", "shed"], [503, 503])


@pytest.mark.anyio
async def test_what_outlasts_the_drain_ends_with_an_error_in_the_stream(tmp_path: Path) -> None:
    answer, outcomes, _ = await stopped_while_streaming(tmp_path, hangs(ROLE, delta("a")), drain=0.5)
    assert not answer.wire.endswith(LAST_CHUNK)
    error = events(answer.body.decode())[-1]["error"]
    assert error["code"] == "shutdown"
    assert b"[DONE]" not in answer.body
    assert outcomes[0] == "shutdown"


@pytest.mark.anyio
async def test_what_has_no_answer_yet_at_the_end_of_the_drain_gets_a_503(tmp_path: Path) -> None:
    answer, outcomes, _ = await stopped_while_streaming(tmp_path, hangs(head=False), drain=0.5)
    assert answer.status == 503
    assert json.loads(answer.body)["error"]["code"] == "shutdown"
    assert outcomes[0] == "shutdown"


def test_a_taken_port_names_itself(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ListenRefused, match=rf"cannot listen on 127\.0\.0\.1:{port}: .*--port"):
            listening_socket("127.0.0.1", port)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_both_loopbacks_can_be_bound(host: str) -> None:
    with listening_socket(host, 0) as bound:
        assert bound.getsockname()[1] > 0


def test_a_signal_stops_new_work_at_once(tmp_path: Path) -> None:
    import signal

    gateway = build(load(write_config(tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:2/v1"), ENVIRON))
    server = server_of(gateway)
    server.handle_exit(signal.SIGTERM, None)
    assert (gateway.gate.draining, server.should_exit, server.force_exit) == (True, True, False)
    server.handle_exit(signal.SIGINT, None)
    assert server.force_exit
    gateway.journal.close()
    gateway.store.close()


def test_run_refuses_an_open_gateway_on_a_public_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_logging: None
) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    path = write_config(tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:2/v1")
    with pytest.raises(ListenRefused):
        run(path, host="0.0.0.0", port=0, log_level="info")
    assert not (tmp_path / "ledger.db.journal").exists()
