"""Keeps connections to one target and hands them out. Knows who waits and what is free; knows no OpenAI.

One pool per target, so that a target that hangs holds up nobody else's requests. State changes in synchronous
steps only: a connection or a right to dial passes from hand to hand without an await between.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Iterable
from urllib.parse import urlsplit

from gateway.upstreams.base import Exchange, Header, UpstreamLimits
from gateway.upstreams.dial import Dialer
from gateway.upstreams.errors import Cut, PoolFull, ProtocolBroken, Refused, TimedOut
from gateway.upstreams.http1 import Connection
from gateway.upstreams.response import Response

# uvicorn, and so vLLM, closes a connection that was idle for 5 s (uvicorn `timeout_keep_alive`): one that is
# nearly so old may be closing while we write to it.
ENGINE_KEEP_ALIVE = 4.0
_CLOSING = "the gateway is closing"


class Pool:
    """Connections to the origin of `base_url`; paths are appended to its path, its query (if any) goes with
    every request.
    """

    def __init__(
        self, base_url: str, *, max_connections: int = 1024, keep_alive: float = ENGINE_KEEP_ALIVE,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:  # fmt: skip
        url = urlsplit(base_url)
        self._dialer = Dialer(base_url, ssl_context)
        self._prefix = url.path.rstrip("/")
        self._query = f"?{url.query}" if url.query else ""
        self._common = (
            b"host: %b\r\nuser-agent: spillgate\r\naccept-encoding: identity\r\n" % self._dialer.host_header
        )
        self._max_connections = max_connections
        self._keep_alive = keep_alive
        self._connections: set[Connection] = set()
        self._free: deque[Connection] = deque()
        # Rights to dial that were given out and not yet turned into a connection.
        self._dialling = 0
        # Who waits is handed a free connection, or None: a right to dial.
        self._waiters: deque[asyncio.Future[Connection | None]] = deque()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def open_connections(self) -> int:
        """Connections that are open or being opened, busy and free."""
        return len(self._connections) + self._dialling

    @property
    def free_connections(self) -> int:
        """Open connections that serve nobody now."""
        return len(self._free)

    async def send(
        self,
        method: str,
        path: str,
        headers: Iterable[Header],
        body: bytes,
        limits: UpstreamLimits,
        times: Exchange,
    ) -> Response:
        """Status and headers of one request's answer, with the body still to come. Raises UpstreamError.

        Sets `dialed_at`, `sent_at`, `headers_at` and `redials` of `times`. A connection that had served
        before and broke with no byte of an answer was closing while we wrote (seen with vLLM 0.20.2): that
        one case is repeated, once. A redirect is never followed: it raises ProtocolBroken.
        """
        loop = asyncio.get_running_loop()
        head = self._head(method, path, headers, len(body))
        times.dialed_at = loop.time()
        connection = await self._connection(limits.connect)
        reused = connection.exchanges > 0
        times.sent_at = loop.time()
        try:
            response = await connection.exchange(head, body, limits)
        except Cut:
            if not reused or connection.answered:
                raise
            times.redials += 1
            times.sent_at = None
            connection = await self._connection(limits.connect, fresh=True)
            times.sent_at = loop.time()
            response = await connection.exchange(head, body, limits)
        times.headers_at = loop.time()
        if 300 <= response.status < 400:
            response.close()
            raise ProtocolBroken(f"a redirect ({response.status}), which is not followed", sent=True)
        return response

    async def get(
        self, path: str, timeout: float, max_bytes: int, headers: Iterable[Header] = ()
    ) -> tuple[int, bytes]:
        """Status and whole body of a GET, all within `timeout` seconds. Raises UpstreamError."""
        limits = UpstreamLimits(
            connect=timeout, first_byte=timeout, between_reads=timeout, max_body=max_bytes
        )
        exchange = Exchange("GET", path, b"", (), limits)
        try:
            async with asyncio.timeout(timeout):
                response = await self.send("GET", path, headers, b"", limits, exchange)
                try:
                    return response.status, await response.read(max_bytes)
                finally:
                    response.close()
        except TimeoutError as error:
            raise TimedOut(
                f"no whole answer within {timeout:g} s", sent=exchange.sent_at is not None
            ) from error

    async def aclose(self) -> None:
        """Close every connection, busy ones too, and turn away who waits. The pool is of no use
        afterwards.
        """
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._hand_on()
        for connection in tuple(self._connections):
            connection.fail(Cut(_CLOSING, sent=True))
        # Sockets are closed by callbacks of the loop, in its next pass.
        await asyncio.sleep(0)

    # The request as bytes.

    def _head(self, method: str, path: str, headers: Iterable[Header], length: int) -> bytes:
        lines = [f"{method} {self._prefix}{path}{self._query} HTTP/1.1\r\n".encode("ascii"), self._common]
        lines.extend(b"%b: %b\r\n" % header for header in headers)
        if length or method != "GET":
            lines.append(b"content-length: %d\r\n" % length)
        head = b"".join(lines)
        # Three of the lines are in `_common`. Headers come from clients: a line break in one would be a
        # second header.
        if head.count(b"\n") != len(lines) + 2 or head.count(b"\r") != len(lines) + 2:
            raise ValueError("a header holds a line break")
        return head + b"\r\n"

    # Who gets which connection.

    async def _connection(self, seconds: float, *, fresh: bool = False) -> Connection:
        """A connection ready for one exchange; a fresh one has served nobody. Raises Refused, TimedOut,
        PoolFull.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not self._closed:
            if not fresh and (connection := self._take_free(loop.time())) is not None:
                return connection
            if self._may_dial(fresh):
                self._dialling += 1
            elif (handed := await self._wait_turn(deadline)) is not None:
                if handed.usable and not fresh:
                    return handed
                handed.discard()
                continue
            return await self._dial(loop, deadline)
        raise Refused(_CLOSING)

    def _take_free(self, now: float) -> Connection | None:
        while self._free:
            connection = self._free.pop()
            if connection.usable and now - connection.free_since < self._keep_alive:
                return connection
            connection.discard()
        return None

    def _may_dial(self, fresh: bool) -> bool:
        if fresh and self._free and self.open_connections >= self._max_connections:
            self._free.popleft().discard()
        return self.open_connections < self._max_connections

    async def _dial(self, loop: asyncio.AbstractEventLoop, deadline: float) -> Connection:
        """Turns a right to dial into a connection, or gives it back."""
        try:
            if self._closed:
                raise Refused(_CLOSING)
            seconds = max(deadline - loop.time(), 0.0)
            connection = await self._dialer.dial(
                lambda: Connection(loop, self._on_free, self._on_gone), seconds
            )
            self._connections.add(connection)
        finally:
            self._dialling -= 1
            self._hand_on()
        if self._closed:
            connection.discard()
            raise Refused(_CLOSING)
        return connection

    async def _wait_turn(self, deadline: float) -> Connection | None:
        waiter: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout_at(deadline):
                return await waiter
        except BaseException as error:
            self._give_back(waiter)
            if isinstance(error, TimeoutError):
                raise PoolFull("every connection was in use") from error
            raise

    def _give_back(self, waiter: "asyncio.Future[Connection | None]") -> None:
        # What was handed over in the same pass of the loop in which the wait was given up must go to the
        # next.
        if waiter.cancelled() or not waiter.done():
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        elif (connection := waiter.result()) is not None:
            if connection.usable:
                self._on_free(connection)
        else:
            self._dialling -= 1
            self._hand_on()

    def _hand_on(self) -> None:
        """A place may have come free: pass the right to dial to who waits longest."""
        while self._waiters and (self._closed or self.open_connections < self._max_connections):
            waiter = self._waiters.popleft()
            if not waiter.done():
                self._dialling += 1
                waiter.set_result(None)

    # Called by connections.

    def _on_free(self, connection: Connection) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        loop = connection.loop
        connection.free_since = loop.time()
        self._free.append(connection)
        if self._sweeper is None:
            self._sweeper = loop.call_later(self._keep_alive, self._sweep, loop)

    def _on_gone(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if connection in self._free:
            self._free.remove(connection)
        self._hand_on()

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close what nobody may reuse any more; the longest free is first."""
        self._sweeper = None
        oldest = loop.time() - self._keep_alive
        while self._free and self._free[0].free_since <= oldest:
            self._free.popleft().discard()
        if self._free:
            self._sweeper = loop.call_at(self._free[0].free_since + self._keep_alive, self._sweep, loop)
