"""The process around a gateway: binds the socket, runs the server, drains on a signal. Knows no requests."""

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType

import uvicorn

from gateway.app import build
from gateway.config.check import open_listen
from gateway.config.load import load
from gateway.config.schema import Config
from gateway.running import Gateway
from gateway.telemetry.logs import configure, expect_broken_bodies

# The kernel's queue of connections not yet accepted: a burst of clients must not be refused before it is
# looked at.
_BACKLOG = 2048
_DRAIN_STEP = 0.05
# Seconds that the server waits for answers to be written out after the drain; what is left then is cancelled.
_LAST_WORDS = 1


class ListenRefused(Exception):  # noqa: N818 -- it names what happened
    """The address cannot, or must not, be bound. The text is a sentence for the user."""


class GatewayServer(uvicorn.Server):
    """uvicorn, but new work is refused the moment a stop is asked for, while open streams may finish."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway) -> None:
        super().__init__(config)
        self._gateway = gateway

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came: drain; a second one stops at once.

        Not `super()`, which would raise the signal again after the stop: a stop that was asked for is exit
        code 0.
        """
        self._gateway.gate.draining = True
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests in flight finish before the socket closes: until then new ones get a 503 that says
        why."""
        self._gateway.gate.draining = True
        until = time.monotonic() + self._gateway.config.shutdown.drain
        while self._gateway.in_flight and not self.force_exit and time.monotonic() < until:  # noqa: ASYNC110 -- requests end by themselves, one by one
            await asyncio.sleep(_DRAIN_STEP)
        if self.force_exit:
            # Stopped twice: whoever is still here is told now, and the records are closed all the same.
            self.force_exit = False
            for task in self.server_state.tasks:
                task.cancel()
        await super().shutdown(sockets)


def server_of(gateway: Gateway) -> GatewayServer:
    """A server that is not yet listening."""
    expect_broken_bodies()
    config = uvicorn.Config(
        gateway.asgi,
        loop="uvloop",
        http="httptools",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # Nothing here believes what X-Forwarded-* says, so nothing reads it.
        proxy_headers=False,
        timeout_graceful_shutdown=_LAST_WORDS,
    )
    return GatewayServer(config, gateway)


def listening_socket(host: str, port: int) -> socket.socket:
    """A bound socket. Raises ListenRefused."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise ListenRefused(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another with --port"
        ) from error
    bound.listen(_BACKLOG)
    return bound


@asynccontextmanager
async def serving(gateway: Gateway, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """The gateway served inside this event loop; yields its base URL. For the demo and for tests."""
    bound = listening_socket(host, port)
    await asyncio.to_thread(gateway.prepare)
    server = server_of(gateway)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_serve(server, bound))
        while not server.started and not running.done():  # noqa: ASYNC110 -- uvicorn tells it by a flag
            await asyncio.sleep(0.01)
        try:
            yield f"http://{host}:{bound.getsockname()[1]}"
        finally:
            gateway.gate.draining = True
            server.should_exit = True


async def _serve(server: uvicorn.Server, bound: socket.socket) -> None:
    # Not `serve`: that one takes over the process's signal handlers, which belong to whoever runs this loop.
    await server._serve([bound])


def run(path: Path, *, host: str | None, port: int | None, log_level: str) -> None:
    """Serve until SIGTERM or SIGINT. Raises ConfigErrors, ListenRefused, and what `build` raises."""
    config = load(path, os.environ)
    configure(log_level.upper())
    address, number = host or config.listen.host, config.listen.port if port is None else port
    _refuse_open_gateway(config, address)
    with listening_socket(address, number) as bound:
        gateway = build(config)
        gateway.prepare()
        sys.stderr.write(f"spillgate: listening on http://{address}:{bound.getsockname()[1]}\n")
        server_of(gateway).run(sockets=[bound])


def _refuse_open_gateway(config: Config, host: str) -> None:
    problem = open_listen(host, config.clients is not None)
    if problem is not None:
        raise ListenRefused(problem)
