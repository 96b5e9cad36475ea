"""Under pressure, which requests leave first: those worth the fewest serverless dollars per block-second
(cost-model §5).

What counts as low is relative to what has been arriving: a sliding sample of values and, the closer an engine
is to its limit, a higher quantile of it below which requests are sent out.
"""

from bisect import bisect_left, insort
from collections import deque

_SAMPLE = 256
_ENOUGH = 32
# Nothing is spilled below this share of the limit; at the limit the lower half leaves.
_PRESSURE_FROM = 0.8
_SHARE_AT_LIMIT = 0.5


class ValueSample:
    """Values (pico-USD per block and output token, which stands for time) of recent requests."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque()
        self._ordered: list[float] = []

    def add(self, value: float) -> None:
        """One more arrival."""
        if len(self._recent) == _SAMPLE:
            del self._ordered[bisect_left(self._ordered, self._recent.popleft())]
        self._recent.append(value)
        insort(self._ordered, value)

    def is_low(self, value: float, pressure: float) -> bool:
        """Should a request of this value leave an engine of which `pressure` (0..1) of the limit is
        promised?"""
        if pressure <= _PRESSURE_FROM or len(self._ordered) < _ENOUGH:
            return False
        share = _SHARE_AT_LIMIT * min(1.0, (pressure - _PRESSURE_FROM) / (1.0 - _PRESSURE_FROM))
        return value < self._ordered[int(share * (len(self._ordered) - 1))]


def value_of(cost: int | None, blocks: int, output_tokens: int) -> float | None:
    """Serverless pico-USD per block and output token; None where the price is unknown."""
    if cost is None or blocks <= 0:
        return None
    return cost / (blocks * max(1, output_tokens))
