"""Which targets are left alone for a while after failing, and when one trial request may go.

A cool-down ends at the latest of all computed ends and grows with every failure in a row. Saturation is no
failure: callers report connects, resets, first-byte timeouts and 5xx only, and a Retry-After as its own
cool-down.
"""

from dataclasses import dataclass
from zlib import crc32

_FAILURES_TO_OPEN = 3
_FIRST_COOLDOWN = 2.0
_LONGEST_COOLDOWN = 60.0
_LONGEST_RETRY_AFTER = 300.0


@dataclass(slots=True)
class _Breaker:
    failures: int = 0
    open_until: float = 0.0
    trial_running: bool = False


class BreakerBoard:
    """One breaker per target name."""

    def __init__(self) -> None:
        self._breakers: dict[str, _Breaker] = {}

    def allows(self, target: str, now: float) -> bool:
        """May a request go there? After a cool-down one at a time may, until one has succeeded."""
        breaker = self._breakers.get(target)
        if breaker is None or breaker.open_until == 0.0:
            return True
        return now >= breaker.open_until and not breaker.trial_running

    def dispatched(self, target: str, now: float) -> None:
        """A request goes there now: with the breaker half-open it is the trial."""
        breaker = self._breakers.get(target)
        if breaker is not None and breaker.open_until and now >= breaker.open_until:
            breaker.trial_running = True

    def failed(self, target: str, now: float) -> None:
        """A counted failure; the third in a row, or a failed trial, opens for a growing, jittered time."""
        breaker = self._breakers.setdefault(target, _Breaker())
        breaker.failures += 1
        breaker.trial_running = False
        if breaker.failures >= _FAILURES_TO_OPEN:
            over = breaker.failures - _FAILURES_TO_OPEN
            cooldown = min(_LONGEST_COOLDOWN, _FIRST_COOLDOWN * 2.0 ** min(over, 10))
            self._close_off(breaker, now + cooldown * _jitter(target, breaker.failures))

    def asked_to_wait(self, target: str, now: float, seconds: float) -> None:
        """The target itself named a time (Retry-After): honoured, capped, never shortened by a later, smaller
        one."""
        breaker = self._breakers.setdefault(target, _Breaker())
        breaker.trial_running = False
        self._close_off(breaker, now + min(max(seconds, 0.0), _LONGEST_RETRY_AFTER))

    def succeeded(self, target: str) -> None:
        """An answer came: all is forgotten."""
        self._breakers.pop(target, None)

    def abandoned(self, target: str) -> None:
        """A trial ended without telling anything (the client left): another may try."""
        if breaker := self._breakers.get(target):
            breaker.trial_running = False

    def open_until(self, target: str) -> float | None:
        """When the cool-down ends, or None where there is none."""
        breaker = self._breakers.get(target)
        return breaker.open_until if breaker and breaker.open_until else None

    def _close_off(self, breaker: _Breaker, until: float) -> None:
        breaker.open_until = max(breaker.open_until, until)


def _jitter(target: str, failures: int) -> float:
    """0.8 to 1.2, the same for the same target and count: replayable, and no two targets return together."""
    return 0.8 + 0.4 * (crc32(f"{target}:{failures}".encode()) / 0xFFFFFFFF)
