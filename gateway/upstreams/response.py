"""An answer whose body is still coming. Knows how a reader waits; knows no HTTP and no sockets."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol, cast

from gateway.upstreams.base import Header, UpstreamLimits
from gateway.upstreams.deadline import Deadline
from gateway.upstreams.errors import Cut, Stalled, TooLarge, UpstreamError

# Unread body above this stops reading from the socket: a slow client must hold its engine back and not fill
# our memory.
MAX_UNREAD = 256 * 1024
# What may still come after the reader had all it wanted, and for how long. vLLM's last chunk comes less than
# a millisecond after `[DONE]`, in a packet of its own (captures of 0.32.0): a connection aborted there is
# lost to the next request.
_TAIL_SECONDS = 0.25
_TAIL_BYTES = 64 * 1024


class Source(Protocol):
    """Where a body comes from: the connection, for as long as the body lasts."""

    loop: asyncio.AbstractEventLoop

    def fail(self, error: UpstreamError) -> None:
        """End the answer with this error, and the connection with it."""
        ...

    def pause(self) -> None:
        """Send no more for now."""
        ...

    def resume(self) -> None:
        """Go on."""
        ...


class Response:
    """An answer whose status and headers came. Implements `UpstreamResponse`."""

    __slots__ = (
        "_deadline", "_ended", "_error", "_limits", "_paused", "_pieces", "_source", "_tail", "_total",
        "_unread", "_waiter", "close_delimited", "content_length", "headers", "status", "usage_is_estimated",
    )  # fmt: skip

    def __init__(
        self, source: Source, status: int, headers: tuple[Header, ...], limits: UpstreamLimits, *,
        content_length: int | None, close_delimited: bool,
    ) -> None:  # fmt: skip
        self.status = status
        self.headers = headers
        self.usage_is_estimated = False
        self.content_length = content_length
        # The body ends where the connection does: its end proves nothing about its being whole.
        self.close_delimited = close_delimited
        self._source: Source | None = source
        self._limits = limits
        self._pieces: list[bytes] = []
        self._unread = 0
        self._total = 0
        self._paused = False
        self._ended = False
        self._error: UpstreamError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._tail: asyncio.TimerHandle | None = None
        self._deadline = Deadline(source.loop, limits.between_reads, self._stalled)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Body bytes as they come, joined if they came together. Raises UpstreamError if cut short."""
        while True:
            if self._pieces:
                yield self._take()
            elif self._error is not None:
                raise self._error
            elif self._ended:
                return
            else:
                await self._more()

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises TooLarge above `limit` bytes, and closes; otherwise as `chunks`."""
        pieces: list[bytes] = []
        size = self.content_length or 0
        if size <= limit:
            size = 0
            async with aclosing(self.chunks()) as chunks:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > limit:
                        break
                    pieces.append(chunk)
        if size > limit:
            self.close()
            raise TooLarge(f"the body is longer than {limit} bytes", sent=True)
        return b"".join(pieces)

    def close(self) -> None:
        """Drop the answer. Inside a body the connection is aborted; after it, it was given back already."""
        if self._source is not None and self._tail is None:
            self._source.fail(Cut("the answer was closed before its end", sent=True))
        self._pieces.clear()
        self._deadline.cancel()

    def finish(self) -> None:
        """The reader has seen its end marker: what still comes is dropped, and the connection is given back
        if the body ends within a moment, else aborted. Synchronous; `close` afterwards changes nothing.
        """
        if self._source is not None and self._tail is None:
            self._tail = self._source.loop.call_later(_TAIL_SECONDS, self._no_end)
            self._limits = replace(self._limits, max_body=self._total + _TAIL_BYTES)
            self._ended = True
            self._drop()
        self._deadline.cancel()

    # Called by the source.

    def feed(self, data: bytes) -> None:
        self._pieces.append(data)
        size = len(data)
        self._total += size
        if self._total > self._limits.max_body:
            raise TooLarge(f"the body is longer than {self._limits.max_body} bytes", sent=True)
        self._unread += size
        if self._unread > MAX_UNREAD and not self._paused:
            self._paused = True
            cast("Source", self._source).pause()
        self._wake()
        if self._tail is not None:
            self._drop()

    def end(self, error: UpstreamError | None = None) -> None:
        self._source = None
        self._ended = True
        self._error = error
        self._deadline.cancel()
        if self._tail is not None:
            self._tail.cancel()
        self._wake()

    # How a reader waits.

    def _take(self) -> bytes:
        pieces = self._pieces
        chunk = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._drop()
        return chunk

    def _drop(self) -> None:
        self._pieces.clear()
        self._unread = 0
        if self._paused:
            self._paused = False
            if self._source is not None:
                self._source.resume()

    async def _more(self) -> None:
        self._waiter = cast("Source", self._source).loop.create_future()
        self._deadline.begin()
        try:
            await self._waiter
        finally:
            self._waiter = None
            self._deadline.end()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _no_end(self) -> None:
        if self._source is not None:
            self._source.fail(Cut("no end after the end marker", sent=True))

    def _stalled(self) -> None:
        if self._source is not None and not (self._waiter is None or self._waiter.done()):
            self._source.fail(Stalled(f"no byte for {self._limits.between_reads:g} s", sent=True))
