"""A fake as a process of its own: says where it listens, serves, and ends at a signal."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest


@contextmanager
def process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the address that it printed."""
    with subprocess.Popen([sys.executable, "-m", *arguments], stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            yield running, running.stdout.readline().removeprefix("listening on ").strip()
        finally:
            running.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_fake_engine_serves_until_a_signal(number: signal.Signals) -> None:
    with process("gateway.simulator.fake_vllm", "--port", "0", "--model", "a", "--model", "b") as (
        running,
        url,
    ):
        assert url.startswith("http://127.0.0.1:")
        models = httpx.get(f"{url}/v1/models").json()["data"]
        assert [card["id"] for card in models] == ["a", "b"]
        running.send_signal(number)
        assert running.wait(timeout=10) == 0


def test_a_fake_endpoint_serves_until_a_signal() -> None:
    with process("gateway.simulator.fake_endpoint", "--port", "0", "--api-key", "k") as (running, url):
        assert httpx.get(f"{url}/models").status_code == 401
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=10) == 0
