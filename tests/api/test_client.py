"""A client that leaves or stops reading ends the task that serves it; one that finishes does not."""

import asyncio
from typing import Any

import anyio
import pytest

from gateway.api.client import AsgiClient, Interest

pytestmark = pytest.mark.anyio


class Server:
    """An ASGI server's side: what was sent, and when it takes more."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.left = asyncio.Event()
        self.takes = asyncio.Event()
        self.takes.set()

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.takes.wait()
        self.sent.append(dict(message))


def interest(server: Server) -> Interest:
    return Interest(server.receive, asyncio.get_running_loop().time)


async def test_an_answer_is_sent_in_order_and_ended_once() -> None:
    server = Server()
    async with interest(server) as watch:
        client = AsgiClient(server.send, watch)
        assert (client.started, client.ended) == (False, False)
        await client.start(200, iter([(b"a", b"b")]))
        await client.write(b"1")
        await client.finish(b"2")
    assert (client.started, client.ended, client.broken, client.lost) == (True, True, False, None)
    assert [m.get("body", m.get("headers")) for m in server.sent] == [[(b"a", b"b")], b"1", b"2"]
    assert [m.get("more_body") for m in server.sent] == [None, True, False]


async def test_breaking_off_sends_nothing_and_is_the_end() -> None:
    server = Server()
    async with interest(server) as watch:
        client = AsgiClient(server.send, watch)
        client.break_off()
    assert (server.sent, client.broken, client.ended) == ([], True, True)


async def test_a_client_that_leaves_cancels_what_serves_it_and_nothing_after() -> None:
    server = Server()
    reached: list[str] = []
    with anyio.fail_after(2):
        async with interest(server) as watch:
            server.left.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                reached.append("told")
                raise
    assert (watch.lost, reached) == ("client_gone", ["told"])
    await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_write_that_is_not_taken_is_a_slow_client() -> None:
    server = Server()
    server.takes.clear()
    with anyio.fail_after(2):
        async with interest(server) as watch:
            watch.limit_stalls(0.05)
            await AsgiClient(server.send, watch).write(b"x")
    assert watch.lost == "client_slow"
    assert server.sent == []


async def test_silence_between_writes_is_no_stall() -> None:
    server = Server()
    async with interest(server) as watch:
        watch.limit_stalls(0.03)
        client = AsgiClient(server.send, watch)
        for _ in range(3):
            await client.write(b"x")
            await asyncio.sleep(0.05)
    assert watch.lost is None


async def test_a_cancellation_from_elsewhere_is_not_taken_for_the_clients() -> None:
    server = Server()
    seen: list[Any] = []

    async def serve() -> None:
        async with interest(server) as watch:
            try:
                await asyncio.sleep(60)
            finally:
                seen.append(watch.lost)

    async with anyio.create_task_group() as group:
        group.start_soon(serve)
        await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    assert seen == [None]


async def test_an_error_inside_passes_as_it_is() -> None:
    with pytest.raises(KeyError):
        async with interest(Server()):
            raise KeyError("x")
