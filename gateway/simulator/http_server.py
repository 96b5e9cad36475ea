"""A small HTTP/1.1 server for the fakes: whole requests in, whole or chunked answers out, cut off whenever a
test wants.

Knows nothing of what is served. A handler is a plain function called once for each request; it may answer at
once or keep the `Exchange` and write later, so that an open stream costs no task. There is no flow control:
answers of the fakes are bounded by a model's length. Not for use in front of anything but tests and demos.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from email.utils import formatdate
from http import HTTPStatus
from typing import cast

import httptools

_MAX_BODY = 32 * 1024 * 1024
_JSON = "application/json"


class Exchange:
    """One request and the means to answer it. Header names are lower-case.

    After the peer has gone (`closed`) every write is ignored; `on_disconnect` is called once if it goes
    before the end.
    """

    __slots__ = ("_connection", "body", "closed", "headers", "keep_alive", "method", "on_disconnect", "path")

    def __init__(
        self,
        connection: "_Connection",
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes,
        keep_alive: bool,
    ) -> None:
        self._connection = connection
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.keep_alive = keep_alive
        self.closed = False
        self.on_disconnect: Callable[[], None] | None = None

    def respond(
        self, status: int, body: bytes = b"", content_type: str = _JSON, headers: dict[str, str] | None = None
    ) -> None:
        """Send a whole answer."""
        if self.closed:
            return
        lines = {
            "content-length": str(len(body)),
            **({"content-type": content_type} if body else {}),
            **(headers or {}),
        }
        self._write(self._head(status, lines) + (b"" if self.method == "HEAD" else body))
        self._end()

    def start_stream(self, content_type: str = "text/event-stream; charset=utf-8") -> None:
        """Send status 200 and headers of a chunked answer."""
        if not self.closed:
            self._write(self._head(200, {"content-type": content_type, "transfer-encoding": "chunked"}))

    def write(self, data: bytes) -> None:
        """Send one chunk; an empty one would end the body and is ignored."""
        if data and not self.closed:
            self._write(b"%x\r\n%b\r\n" % (len(data), data))

    def finish(self, data: bytes = b"") -> None:
        """Send `data` as a last chunk and the proper end of the body."""
        if self.closed:
            return
        last = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        self._write(last + b"0\r\n\r\n")
        self._end()

    def cut(self) -> None:
        """Drop the connection as a killed process would: whatever was said so far stays half said."""
        self.on_disconnect = None
        self.closed = True
        self._connection.abort()

    def _head(self, status: int, lines: dict[str, str]) -> bytes:
        try:
            phrase = HTTPStatus(status).phrase
        except ValueError:
            phrase = "Unknown"
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        closing = "" if self.keep_alive else "connection: close\r\n"
        common = self._connection.server.common_lines()
        return f"HTTP/1.1 {status} {phrase}\r\n{common}{text}{closing}\r\n".encode("latin-1")

    def _write(self, data: bytes) -> None:
        self._connection.transport.write(data)

    def _end(self) -> None:
        self.closed = True
        self.on_disconnect = None
        self._connection.on_answered(self)


Handler = Callable[[Exchange], None]


class HttpServer:
    """Listens on one address while `listening`; `port` 0 is replaced by the port the system gave and then
    kept.
    """

    def __init__(
        self, handler: Handler, host: str = "127.0.0.1", port: int = 0, name: str = "uvicorn"
    ) -> None:
        self.handler = handler
        self.name = name
        self.host = host
        self.port = port
        self.connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._lines = ""
        self._lines_second = -1

    @property
    def listening(self) -> bool:
        """Whether new connections are accepted."""
        return self._server is not None

    @property
    def base_url(self) -> str:
        """`http://host:port`, without a path."""
        return f"http://{self.host}:{self.port}"

    def common_lines(self) -> str:
        """Header lines of every answer.

        Made once a second: formatting a date costs more than the rest of the head.
        """
        second = int(time.time())
        if second != self._lines_second:
            self._lines_second = second
            self._lines = f"date: {formatdate(second, usegmt=True)}\r\nserver: {self.name}\r\n"
        return self._lines

    async def start(self) -> None:
        """Listen; raises OSError if the port is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), self.host, self.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    def refuse(self) -> None:
        """Stop listening; open connections stay."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def drop(self) -> None:
        """Stop listening and drop every connection where it stands."""
        self.refuse()
        for connection in list(self.connections):
            connection.abort()

    async def stop(self) -> None:
        """Drop everything and wait until the system has it."""
        self.drop()
        # Transports tell of their end in the next turns of the loop.
        for _ in range(3):
            await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    """Reads requests one after another; a pipelined one waits until the one before is answered."""

    transport: asyncio.Transport

    def __init__(self, server: HttpServer) -> None:
        self.server = server
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[Exchange] = deque()
        self._current: Exchange | None = None
        self._begin()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.server.connections.add(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.write(
                b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
            self.transport.close()
            return
        # Not from within the parser, which would take a fault of the handler for one of the peer.
        self._serve_next()

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.connections.discard(self)
        self._queue.clear()
        exchange, self._current = self._current, None
        if exchange is not None and not exchange.closed:
            exchange.closed = True
            if exchange.on_disconnect is not None:
                exchange.on_disconnect()

    def abort(self) -> None:
        """Close at once, dropping unsent bytes."""
        self.server.connections.discard(self)
        self.transport.abort()

    def on_answered(self, exchange: Exchange) -> None:
        """The current exchange is done: serve the next, or close."""
        self._current = None
        if not exchange.keep_alive:
            self.transport.close()
        elif self._queue:
            # Not from within the handler of the one before: a client that pipelines would deepen the stack.
            asyncio.get_running_loop().call_soon(self._serve_next)

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > _MAX_BODY:
            raise ValueError("body too large for a fake")
        self._body.append(body)

    def on_message_complete(self) -> None:
        method = self._parser.get_method().decode("latin-1")
        path = self._url.decode("latin-1").partition("?")[0]
        exchange = Exchange(
            self, method, path, self._headers, b"".join(self._body), self._parser.should_keep_alive()
        )
        self._queue.append(exchange)
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0

    def _serve_next(self) -> None:
        if self._current is None and self._queue and not self.transport.is_closing():
            exchange = self._current = self._queue.popleft()
            self.server.handler(exchange)
