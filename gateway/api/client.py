"""The client's side of a request over ASGI: writing to it, and noticing that it left or stopped reading."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from types import TracebackType
from typing import Any, Self

from gateway.relay.client import Lost
from gateway.upstreams.base import Header

# ASGI's own types are maps of anything; they are narrowed where they are read.
Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class AsgiClient:
    """Implements relay's Client. `ended`: nothing more is sent; `broken`: the body was left without its
    end."""

    def __init__(self, send: Send, interest: "Interest") -> None:
        self._send = send
        self._interest = interest
        self.started = False
        self.broken = False
        self.ended = False

    @property
    def lost(self) -> Lost | None:
        """Why the serving task was cancelled, where that was for the client's sake."""
        return self._interest.lost

    async def start(self, status: int, headers: Iterable[Header]) -> None:
        """Send status and headers."""
        self.started = True
        await self._send({"type": "http.response.start", "status": status, "headers": list(headers)})

    async def write(self, data: bytes) -> None:
        """Send body bytes; waits while the server holds too much for this client."""
        self._interest.writing()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        self._interest.written()

    async def finish(self, data: bytes = b"") -> None:
        """Send the last bytes and end the body."""
        self.ended = True
        self._interest.writing()
        await self._send({"type": "http.response.body", "body": data, "more_body": False})
        self._interest.written()

    def break_off(self) -> None:
        """Nothing more is sent. The server then closes the connection without ending the chunked body."""
        self.broken = self.ended = True


class Interest:
    """Cancels the task that serves a client once the client has left or takes no more bytes for `stall`
    seconds.

    Use as a context: inside it, `lost` says whether, and why, the cancellation is ours. Leaving it clears the
    cancellation, so that the caller can record what happened.
    """

    def __init__(self, receive: Receive, clock: Callable[[], float]) -> None:
        self._receive = receive
        self._clock = clock
        self._stall = 30.0
        self._writing_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._group = asyncio.TaskGroup()
        self._watcher: asyncio.Task[None] | None = None
        self._task: asyncio.Task[Any] | None = None
        self.lost: Lost | None = None

    def limit_stalls(self, seconds: float) -> None:
        """From now on a write may take this long."""
        self._stall = seconds

    def writing(self) -> None:
        """A write begins. One timer per stream looks now and then; a write costs two attribute stores."""
        self._writing_since = self._clock()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._stall, self._look)

    def written(self) -> None:
        """The write was taken."""
        self._writing_since = None

    def _look(self) -> None:
        waited = 0.0 if self._writing_since is None else self._clock() - self._writing_since
        if waited >= self._stall:
            self._lose("client_slow")
        else:
            self._timer = asyncio.get_running_loop().call_later(max(0.01, self._stall - waited), self._look)

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._lose("client_gone")

    def _lose(self, why: Lost) -> None:
        if self.lost is None and self._task is not None:
            self.lost = why
            self._task.cancel()

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        await self._group.__aenter__()
        self._watcher = self._group.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._timer is not None:
            self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        ours = self.lost is not None and isinstance(error, asyncio.CancelledError)
        if ours and self._task is not None:
            self._task.uncancel()
        self._task = None
        # The group only has to end the watcher; given the error it would wrap it into a group of one.
        await self._group.__aexit__(None, None, None)
        return ours
