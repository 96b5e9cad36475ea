"""A real vLLM for the tests of this folder.

`SPILLGATE_VLLM_URL` names one that runs (its model must be called `tiny`, 64 blocks of 32 tokens, window
1024). `SPILLGATE_VLLM` names a command that starts and stops one, as these tests call it:

    COMMAND start --port P --kv-blocks N --max-model-len N --max-num-seqs N [--env K=V] -- [vllm serve flags]
        prints one JSON object with `base_url` and `pid` (of its process group), exits 0 when healthy;
        with `error` and `log`, and exits 1, when it died before
    COMMAND stop --port P

Without either, every test here is skipped.
"""

import json
import os
import shlex
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

NO_ENGINE = "no real vLLM: set SPILLGATE_VLLM to a command that starts one, or SPILLGATE_VLLM_URL"
TOOLS = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.engine)
            # Starting an engine takes half a minute on a quiet machine, and these share two cores with it.
            item.add_marker(pytest.mark.timeout(420))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class RealEngine:
    """One engine, running or not, on a port of its own."""

    command: tuple[str, ...]
    port: int
    url: str = ""
    pid: int = 0
    log: str = ""

    def start(
        self, *flags: str, kv_blocks: int = 64, max_model_len: int = 1024, env: tuple[str, ...] = ()
    ) -> bool:
        """True when it is healthy, False when it died while starting."""
        options = [
            "--port",
            str(self.port),
            "--kv-blocks",
            str(kv_blocks),
            "--max-model-len",
            str(max_model_len),
        ]
        options += ["--max-num-seqs", "16", *(part for pair in env for part in ("--env", pair))]
        done = subprocess.run(
            [*self.command, "start", *options, "--", *flags],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        self.log = told.get("log", "")
        if done.returncode != 0:
            return False
        self.url, self.pid = told["base_url"].removesuffix("/v1"), told["pid"]
        self._warm()
        return True

    def _warm(self) -> None:
        """One request with a prompt of some length: where AMX is there, the CPU build's attention runs
        into an illegal instruction when the first prompt after a start is too short for the matrix library
        to have asked for AMX."""
        ask = {"model": "tiny", "prompt": "hello world " * 30, "max_tokens": 2}
        httpx.post(f"{self.url}/v1/completions", json=ask, timeout=60).raise_for_status()

    def stop(self) -> None:
        subprocess.run(
            [*self.command, "stop", "--port", str(self.port)], capture_output=True, timeout=60, check=False
        )

    def core(self) -> int:
        """The pid of the engine core: the child that vLLM names so."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and self._is_core(entry):
                return int(entry.name)
        raise AssertionError("no engine core among the server's processes")

    def _is_core(self, entry: Path) -> bool:
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            return int(fields[2]) == self.pid and (entry / "comm").read_text().startswith("VLLM::EngineCor")
        except OSError:
            return False


@pytest.fixture(scope="session")
def engines() -> Iterator[Callable[[], RealEngine]]:
    """Makes engines (not yet started) and stops them all at the end."""
    command = os.environ.get("SPILLGATE_VLLM")
    if not command:
        pytest.skip(
            NO_ENGINE
            if "SPILLGATE_VLLM_URL" not in os.environ
            else "needs SPILLGATE_VLLM: it stops the engine"
        )
    made: list[RealEngine] = []

    def make() -> RealEngine:
        made.append(RealEngine(tuple(shlex.split(command)), free_port()))
        return made[-1]

    yield make
    for engine in made:
        engine.stop()


@pytest.fixture(scope="session")
def vllm(request: pytest.FixtureRequest) -> str:
    """The address of a healthy engine that no test harms."""
    if url := os.environ.get("SPILLGATE_VLLM_URL"):
        return url.rstrip("/").removesuffix("/v1")
    engine: RealEngine = request.getfixturevalue("engines")()
    assert engine.start(*TOOLS), f"the engine did not start, see {engine.log}"
    return engine.url
