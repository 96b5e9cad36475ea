"""What each endpoint may still spend in this hour and this day: spent, plus promised to requests in flight.

Windows slide in steps of a minute. `now` is UTC epoch seconds, since budgets must outlive a restart: what the
ledger knows of the last day is charged again at start.
"""

from collections import deque
from dataclasses import dataclass, field

HOUR = 3600
DAY = 86400
_MINUTE = 60


@dataclass(slots=True)
class _Spending:
    limits: tuple[tuple[int, int], ...]
    minutes: deque[list[int]] = field(default_factory=deque)
    promised: int = 0

    def spent(self, window: int, now: float) -> int:
        since = now - window
        return sum(amount for minute, amount in self.minutes if minute * _MINUTE > since)


class BudgetWindows:
    """Budgets of every endpoint in pico-USD; an endpoint without one may spend without end."""

    def __init__(self, limits: dict[str, tuple[int | None, int | None]]) -> None:
        """`limits`: endpoint -> (per hour, per day), None for no limit."""
        self._endpoints: dict[str, _Spending] = {
            name: _Spending(tuple((w, a) for w, a in ((HOUR, hour), (DAY, day)) if a is not None))
            for name, (hour, day) in limits.items()
        }

    def left(self, endpoint: str, now: float) -> int | None:
        """Pico-USD that may still be promised, the tightest window deciding; None where there is no limit."""
        spending = self._endpoints.get(endpoint)
        if spending is None or not spending.limits:
            return None
        return (
            min(limit - spending.spent(window, now) for window, limit in spending.limits) - spending.promised
        )

    def spent(self, endpoint: str, window: int, now: float) -> int:
        """Pico-USD spent in the last `window` seconds."""
        spending = self._endpoints.get(endpoint)
        return spending.spent(window, now) if spending else 0

    def promise(self, endpoint: str, amount: int) -> None:
        """Set aside the expected cost of a request that is about to be sent."""
        self._of(endpoint).promised += amount

    def settle(self, endpoint: str, promised: int, spent: int | None, now: float) -> None:
        """End a promise. An unknown cost is charged as promised: a budget must not leak through missing
        usage."""
        spending = self._of(endpoint)
        spending.promised -= promised
        self.charge(endpoint, promised if spent is None else spent, now)

    def charge(self, endpoint: str, amount: int, now: float) -> None:
        """Add spending at `now`."""
        if amount == 0:
            return
        minutes, minute = self._of(endpoint).minutes, int(now) // _MINUTE
        if minutes and minutes[-1][0] == minute:
            minutes[-1][1] += amount
        else:
            minutes.append([minute, amount])
        while minutes[0][0] * _MINUTE < now - DAY - _MINUTE:
            minutes.popleft()

    def _of(self, endpoint: str) -> _Spending:
        return self._endpoints.setdefault(endpoint, _Spending(()))
