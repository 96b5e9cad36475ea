"""Runs one fake as a process: serves until SIGINT or SIGTERM. Knows nothing of what the fake does."""

import asyncio
import signal
from typing import Protocol

import click
import uvloop


class Fake(Protocol):
    """What both fakes have."""

    @property
    def base_url(self) -> str: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...


def run_until_stopped(fake: Fake) -> None:
    """Start `fake`, say where it listens, stop it at the first signal."""
    uvloop.run(_serve(fake))


async def _serve(fake: Fake) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    await fake.start()
    click.echo(f"listening on {fake.base_url}")
    await stopped.wait()
    await fake.stop()
