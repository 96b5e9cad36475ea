"""A limit on each of many waits, with a loop whose clock the test turns."""

import asyncio
import heapq
from collections.abc import Callable
from typing import Any, cast

import pytest

from gateway.upstreams.deadline import Deadline


class Handle:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """As much of a loop as a deadline needs; `armed` counts timers."""

    def __init__(self) -> None:
        self.now = 100.0
        self.armed = 0
        self._timers: list[tuple[float, int, Handle, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> Handle:
        self.armed += 1
        handle = Handle()
        heapq.heappush(self._timers, (when, self.armed, handle, callback))
        return handle

    def call_later(self, delay: float, callback: Callable[[], None]) -> Handle:
        return self.call_at(self.now + delay, callback)

    def advance(self, seconds: float) -> None:
        until = self.now + seconds
        while self._timers and self._timers[0][0] <= until:
            when, _, handle, callback = heapq.heappop(self._timers)
            self.now = max(self.now, when)
            if not handle.cancelled:
                callback()
        self.now = until


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def expired() -> list[float]:
    return []


@pytest.fixture
def deadline(loop: Loop, expired: list[float]) -> Deadline:
    return Deadline(cast("asyncio.AbstractEventLoop", loop), 1.0, lambda: expired.append(loop.now))


def test_a_wait_that_is_too_long_expires_once(loop: Loop, deadline: Deadline, expired: list[float]) -> None:
    deadline.begin()
    loop.advance(0.999)
    assert expired == []
    loop.advance(10)
    assert len(expired) == 1
    assert expired[0] == pytest.approx(101.0, abs=0.05)


def test_a_wait_that_ends_in_time_does_not(loop: Loop, deadline: Deadline, expired: list[float]) -> None:
    deadline.begin()
    loop.advance(0.9)
    deadline.end()
    loop.advance(10)
    assert expired == []


def test_each_wait_has_the_whole_limit(loop: Loop, deadline: Deadline, expired: list[float]) -> None:
    for _ in range(20):
        deadline.begin()
        loop.advance(0.9)
        deadline.end()
    assert expired == []
    deadline.begin()
    loop.advance(1.1)
    assert len(expired) == 1


def test_a_thousand_short_waits_arm_a_handful_of_timers(
    loop: Loop, deadline: Deadline, expired: list[float]
) -> None:
    for _ in range(1000):
        deadline.begin()
        loop.advance(0.01)
        deadline.end()
    assert expired == []
    assert loop.armed <= 25


def test_a_wait_that_ends_at_the_last_look_has_not_expired(
    loop: Loop, deadline: Deadline, expired: list[float]
) -> None:
    """The loop was blocked past the limit; the bytes are read between the timer and the verdict."""
    deadline.begin()
    loop.advance(1.0)
    assert expired == []
    deadline.end()
    loop.advance(1.0)
    assert expired == []


def test_the_last_look_is_given_to_each_wait(loop: Loop, deadline: Deadline, expired: list[float]) -> None:
    deadline.begin()
    loop.advance(1.0)
    deadline.end()
    deadline.begin()
    loop.advance(1.0)
    assert expired == []
    loop.advance(0.1)
    assert len(expired) == 1


def test_after_cancel_nothing_is_held(loop: Loop, deadline: Deadline, expired: list[float]) -> None:
    deadline.begin()
    deadline.cancel()
    deadline.cancel()
    loop.advance(10)
    assert expired == []
    assert "append" not in repr(vars_of(deadline))


def vars_of(deadline: Deadline) -> dict[str, Any]:
    return {name: getattr(deadline, name) for name in Deadline.__slots__}
