"""A limit on waiting that costs next to nothing per wait. Knows a loop's clock; knows nothing of connections.

A stream waits once per chunk. Arming and cancelling a loop timer each time costs more than the chunk itself,
so one timer is armed at the first wait and looks, when it fires, whether the wait it was armed for is still
the current one.
"""

import asyncio
from collections.abc import Callable

# After the limit the loop gets one more pass over its sockets: where the loop itself was blocked, the bytes
# may lie there unread, and libuv runs due timers between two looks at them. A silent peer is found out this
# much later.
_LAST_LOOK_SECONDS = 0.01


class Deadline:
    """Calls `on_expired` once when a wait lasts longer than `seconds` (of the loop's clock)."""

    __slots__ = ("_last_look", "_loop", "_on_expired", "_seconds", "_timer", "_until")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, on_expired: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._seconds = seconds
        self._on_expired = on_expired
        self._until: float | None = None
        self._last_look = False
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """A wait begins now."""
        self._until = self._loop.time() + self._seconds
        self._last_look = False
        if self._timer is None:
            self._timer = self._loop.call_at(self._until, self._fire)

    def end(self) -> None:
        """The wait is over; the timer stays armed for the next one."""
        self._until = None

    def cancel(self) -> None:
        """No wait will follow. Lets go of the callback, which mostly leads back to the owner."""
        self._until = None
        self._on_expired = _nothing
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        if self._until is None:
            return
        if self._loop.time() < self._until:
            self._timer = self._loop.call_at(self._until, self._fire)
        elif not self._last_look:
            self._last_look = True
            self._timer = self._loop.call_later(_LAST_LOOK_SECONDS, self._fire)
        else:
            self._until = None
            self._on_expired()


def _nothing() -> None:
    """What a cancelled deadline would call."""
