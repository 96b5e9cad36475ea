"""One HTTP/1.1 connection: requests out, answers in. Knows bytes and framing; knows no pool and no target.

Strict on purpose: what is not plainly framed is refused, since a lenient reader is how two answers get mixed
up (RFC 9112 §6, §11). Limits are the caller's. Nothing is decompressed, nothing is followed.
"""

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from gateway.upstreams.base import Header, UpstreamLimits
from gateway.upstreams.deadline import Deadline
from gateway.upstreams.errors import Cut, ProtocolBroken, TimedOut, TooLarge, UpstreamError
from gateway.upstreams.response import Response

# A body up to this is copied behind its head: one system call and one packet in place of two.
_ONE_WRITE = 64 * 1024


class Connection(asyncio.Protocol):
    """One connection: one exchange at a time, then free again or gone."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_free: Callable[["Connection"], None],
        on_gone: Callable[["Connection"], None],
    ) -> None:  # fmt: skip
        self.loop = loop
        self.exchanges = 0
        self.free_since = 0.0
        # True once any byte of the current answer came: from then on the request must not be repeated.
        self.answered = False
        self._on_free = on_free
        self._on_gone: Callable[[Connection], None] | None = on_gone
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._limits = UpstreamLimits()
        self._waiter: asyncio.Future[Response | UpstreamError] | None = None
        self._response: Response | None = None
        self._deadline: Deadline | None = None
        self._headers: list[Header] = []
        self._head_size = 0
        # Bytes since the last byte of a body: head, chunk sizes, trailers.
        self._barren = 0
        self._body_came = False
        self._complete = False
        self._excess = False
        self._keep_alive = False

    @property
    def usable(self) -> bool:
        """Connected, with nothing in progress."""
        return self._transport is not None and not self._transport.is_closing() and self._waiter is None

    async def exchange(self, head: bytes, body: bytes, limits: UpstreamLimits) -> Response:
        """Send one request, wait for status and headers. Raises UpstreamError with `sent` true.

        A connection is not reusable until the answer's body has ended. HEAD is not spoken.
        """
        self._limits = limits
        self.exchanges += 1
        self.answered = self._complete = self._excess = False
        self._head_size = self._barren = 0
        self._headers = []
        waiter: asyncio.Future[Response | UpstreamError] = self.loop.create_future()
        self._waiter = waiter
        self._deadline = Deadline(self.loop, limits.first_byte, self._never_answered)
        self._deadline.begin()
        self._write(head, body)
        try:
            outcome = await waiter
        except asyncio.CancelledError:
            self._forget(waiter)
            raise
        if isinstance(outcome, UpstreamError):
            raise outcome
        return outcome

    def fail(self, error: UpstreamError, cause: BaseException | None = None) -> None:
        """End the exchange, if there is one, with this error; the connection is gone. May be called twice."""
        error.__cause__ = cause
        self._settle(error)
        response, self._response = self._response, None
        if response is not None:
            response.end(error)
        self._leave()

    def discard(self) -> None:
        """Close a connection that is free."""
        self._leave()

    def pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._parser is None:
            # Bytes that nobody asked for: this peer is out of step and must not get another request.
            self._leave()
            return
        self.answered = True
        self._body_came = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.fail(ProtocolBroken("the peer switched protocols", sent=True))
        except httptools.HttpParserError as error:
            self._parser_stopped(error)
        if self._waiter is not None:
            self._after_feed(len(data))

    def eof_received(self) -> None:
        if self._waiter is None:
            return
        if self._response is not None and self._response.close_delimited:
            self._finish()
        else:
            self.fail(Cut(f"the connection ended {self._where()}", sent=True))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiter is not None:
            self.fail(Cut(f"the connection broke {self._where()}", sent=True), exc)
        self._leave()
        self._transport = None
        # The parser holds our bound methods: without this, each connection is a cycle left to the collector.
        self._parser = None

    # httptools callbacks: an error raised here stops the parser and comes out of `feed_data`.

    def on_message_begin(self) -> None:
        if self._complete:
            raise ProtocolBroken("bytes after the end of the answer", sent=True)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._response is not None:
            return  # a trailer: nothing that we relay comes in one
        self._head_size += len(name) + len(value)
        if self._head_size > self._limits.max_header_bytes:
            raise TooLarge("the header block is too long", sent=True)
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        parser = cast("httptools.HttpResponseParser", self._parser)
        status = parser.get_status_code()
        if status < 200:
            self._headers = []
            return
        self._keep_alive = parser.should_keep_alive()
        headers = tuple(self._headers)
        content_length, close_delimited = _framing(status, headers)
        compressed = _is_compressed(headers)
        if compressed and status < 400:
            raise ProtocolBroken("a compressed body, though none was asked for", sent=True)
        response = Response(
            self,
            status,
            headers,
            self._limits,
            content_length=content_length,
            close_delimited=close_delimited,
        )
        self._body_came = True
        self._response = response
        self._settle(response)
        if compressed:
            # An error's status is worth more than its text, and the text is not decompressed: the body is
            # taken as empty.
            self._complete = True
            raise _BodyWithheld

    def on_body(self, data: bytes) -> None:
        self._body_came = True
        cast("Response", self._response).feed(data)

    def on_message_complete(self) -> None:
        # Also called after an interim (1xx) answer.
        self._complete = self._response is not None

    # Private steps

    def _write(self, head: bytes, body: bytes) -> None:
        transport = cast("asyncio.Transport", self._transport)
        if len(body) <= _ONE_WRITE:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)

    def _forget(self, waiter: "asyncio.Future[Response | UpstreamError]") -> None:
        # Cancelled: the answer may have come in the same pass of the loop, and the connection may serve
        # another by now.
        outcome = waiter.result() if waiter.done() and not waiter.cancelled() else None
        if isinstance(outcome, Response):
            outcome.close()
        elif outcome is None:
            self.fail(Cut("given up before an answer", sent=True))

    def _never_answered(self) -> None:
        if self._response is None:
            self.fail(TimedOut(f"no answer within {self._limits.first_byte:g} s", sent=True))

    def _settle(self, outcome: Response | UpstreamError) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(outcome)

    def _parser_stopped(self, error: httptools.HttpParserError) -> None:
        reason = error.__context__
        if self._complete:
            self._excess = not isinstance(reason, _BodyWithheld)
            self._keep_alive = False
        elif isinstance(reason, UpstreamError):
            self.fail(reason)
        else:
            self.fail(ProtocolBroken(f"not HTTP: {error}", sent=True), error)

    def _after_feed(self, size: int) -> None:
        if self._complete:
            self._finish()
        elif self._body_came:
            self._barren = 0
        else:
            self._barren += size
            if self._barren > self._limits.max_header_bytes:
                self.fail(TooLarge("the header block, a chunk's head or the trailer is too long", sent=True))

    def _finish(self) -> None:
        """The answer is whole. No await in here: the connection is free for the next exchange at once."""
        response = cast("Response", self._response)
        transport = cast("asyncio.Transport", self._transport)
        if self._excess and response.content_length is not None:
            self.fail(ProtocolBroken("the body is longer than its content-length", sent=True))
            return
        self._response = self._waiter = None
        response.end()
        if self._keep_alive and not transport.is_closing() and transport.get_write_buffer_size() == 0:
            self.resume()
            self._on_free(self)
        else:
            self._leave()

    def _leave(self) -> None:
        self._waiter = None
        on_gone, self._on_gone = self._on_gone, None
        if on_gone is not None:
            on_gone(self)
        if self._transport is not None:
            self._transport.abort()

    def _where(self) -> str:
        return "inside the body" if self._response is not None else "before an answer"


class _BodyWithheld(Exception):  # noqa: N818 - it is a signal to the parser's caller, not an error
    """Stops the parser: this body is not wanted."""


def _is_compressed(headers: tuple[Header, ...]) -> bool:
    return any(
        name == b"content-encoding" and value.strip().lower() not in (b"", b"identity")
        for name, value in headers
    )


def _framing(status: int, headers: tuple[Header, ...]) -> tuple[int | None, bool]:
    """(content length or None, does the body end with the connection): RFC 9112 §6.3 without leniencies.

    llhttp already refuses a repeated length, and a length beside a transfer coding.
    """
    if status > 599:
        raise ProtocolBroken("a status outside 100 to 599", sent=True)
    if status in (204, 304):
        return None, False
    for name, value in headers:
        if name == b"transfer-encoding":
            if value.strip().lower() != b"chunked":
                raise ProtocolBroken("a transfer coding other than chunked", sent=True)
            return None, False
        if name == b"content-length":
            return int(value), False
    return None, True
