"""The small HTTP server: keep-alive, pipelining, chunked bodies, and connections cut on purpose."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from gateway.simulator.http_server import Exchange, HttpServer


class Peer:
    """A server whose handler is set by the test, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Exchange] = []
        self.was_asked = asyncio.Event()
        self.left: list[Exchange] = []
        self.was_left = asyncio.Event()
        self.answer: Callable[[Exchange], None] = lambda exchange: exchange.respond(200, b"ok", "text/plain")
        self.server = HttpServer(self.on_request)

    def on_request(self, exchange: Exchange) -> None:
        self.asked.append(exchange)
        self.was_asked.set()
        exchange.on_disconnect = lambda: self.on_disconnect(exchange)
        self.answer(exchange)

    def on_disconnect(self, exchange: Exchange) -> None:
        self.left.append(exchange)
        self.was_left.set()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.server.host, self.server.port)

    async def send(self, request: bytes) -> bytes:
        """One request on a connection of its own; everything that came until the end."""
        reader, writer = await self.connect()
        writer.write(request)
        async with asyncio.timeout(5):
            answer = await reader.read()
        writer.close()
        return answer


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    peer = Peer()
    await peer.server.start()
    yield peer
    await peer.server.stop()


async def read_until(reader: asyncio.StreamReader, end: bytes) -> bytes:
    async with asyncio.timeout(5):
        return await reader.readuntil(end)


@pytest.mark.anyio
async def test_a_request_reaches_the_handler_whole(peer: Peer) -> None:
    head = (
        b"POST /v1/x?y=1 HTTP/1.1\r\nHost: h\r\nX-Thing: A\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
    )
    answer = await peer.send(head + b"hello")
    asked = peer.asked[0]
    assert (asked.method, asked.path, asked.headers["x-thing"], asked.body) == (
        "POST",
        "/v1/x",
        "A",
        b"hello",
    )
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\ndate: ")
    assert b"content-length: 2\r\n" in head
    assert body == b"ok"


@pytest.mark.anyio
async def test_a_chunked_request_body_is_joined(peer: Peer) -> None:
    await peer.send(
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
    )
    assert peer.asked[0].body == b"hello"


@pytest.mark.anyio
async def test_one_connection_serves_many_requests(peer: Peer) -> None:
    reader, writer = await peer.connect()
    for _ in range(3):
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert (await read_until(reader, b"ok")).count(b"HTTP/1.1 200") == 1
    assert len(peer.server.connections) == 1
    writer.close()


@pytest.mark.anyio
async def test_pipelined_requests_are_answered_in_order(peer: Peer) -> None:
    peer.answer = lambda exchange: None
    reader, writer = await peer.connect()
    writer.write(
        b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n" * 1 + b"GET /2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    )
    async with asyncio.timeout(5):
        await peer.was_asked.wait()
    assert [exchange.path for exchange in peer.asked] == ["/1"]
    peer.answer = lambda exchange: exchange.respond(200, exchange.path.encode())
    peer.asked[0].respond(200, b"/1")
    async with asyncio.timeout(5):
        answer = await reader.read()
    assert answer.index(b"/1") < answer.index(b"/2")
    writer.close()


@pytest.mark.anyio
async def test_a_stream_is_chunked_and_ends_properly(peer: Peer) -> None:
    def stream(exchange: Exchange) -> None:
        exchange.start_stream()
        exchange.write(b"data: 1\n\n")
        exchange.write(b"")
        exchange.finish(b"data: [DONE]\n\n")

    peer.answer = stream
    answer = await peer.send(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    assert b"content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n" in answer
    assert answer.endswith(b"9\r\ndata: 1\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


@pytest.mark.anyio
async def test_a_cut_stream_has_no_end(peer: Peer) -> None:
    def stream(exchange: Exchange) -> None:
        exchange.start_stream()
        exchange.write(b"data: 1\n\n")
        asyncio.get_running_loop().call_later(0.01, exchange.cut)

    peer.answer = stream
    answer = await peer.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert answer.endswith(b"9\r\ndata: 1\n\n\r\n")
    assert not peer.left, "who cuts a stream need not be told"


@pytest.mark.anyio
async def test_a_client_that_leaves_is_noticed_once_and_writes_after_it_are_ignored(peer: Peer) -> None:
    peer.answer = lambda exchange: exchange.start_stream()
    reader, writer = await peer.connect()
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await read_until(reader, b"\r\n\r\n")
    writer.close()
    async with asyncio.timeout(5):
        await peer.was_left.wait()
    exchange = peer.left[0]
    assert exchange.closed
    exchange.write(b"late")
    exchange.finish(b"later")
    exchange.respond(500)
    assert (peer.left, peer.server.connections) == ([exchange], set())


@pytest.mark.anyio
async def test_a_client_that_leaves_after_the_end_is_not_reported(peer: Peer) -> None:
    await peer.send(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    await peer.send(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    assert (len(peer.asked), peer.left) == (2, [])


@pytest.mark.anyio
async def test_dropping_cuts_everybody_and_refuses_the_next(peer: Peer) -> None:
    peer.answer = lambda exchange: exchange.start_stream()
    reader, writer = await peer.connect()
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await read_until(reader, b"\r\n\r\n")
    peer.server.drop()
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    assert not peer.server.listening
    with pytest.raises(ConnectionRefusedError):
        await peer.connect()
    writer.close()


@pytest.mark.anyio
async def test_a_stopped_server_can_listen_on_its_port_again(peer: Peer) -> None:
    port = peer.server.port
    await peer.server.stop()
    await peer.server.start()
    assert peer.server.port == port
    assert (await peer.send(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")).endswith(b"ok")


@pytest.mark.anyio
async def test_a_head_request_gets_no_body(peer: Peer) -> None:
    answer = await peer.send(b"HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    assert answer.endswith(b"\r\n\r\n")
    assert b"content-length: 2" in answer


@pytest.mark.anyio
async def test_bytes_that_are_no_http_are_refused(peer: Peer) -> None:
    assert (await peer.send(b"\x16\x03\x01 hello\r\n\r\n")).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert peer.asked == []


@pytest.mark.anyio
async def test_a_client_that_asks_first_is_told_to_go_on(peer: Peer) -> None:
    reader, writer = await peer.connect()
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert await read_until(reader, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"hi")
    assert (await read_until(reader, b"ok")).startswith(b"HTTP/1.1 200 OK")
    writer.close()
