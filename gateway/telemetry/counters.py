"""Counts of what happened, as plain integers that the data plane adds to. Knows no Prometheus and no labels'
meaning.

Keys are tuples of closed-set words, in the order of the metric's labels: nothing a caller sends becomes a
key.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, field

# Seconds. Overhead is fractions of a millisecond to tens of them; first tokens take tens of milliseconds to a
# minute.
OVERHEAD_BOUNDS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
TTFT_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


class Histogram:
    """Fixed bounds; one bisect and three adds per observation."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value; a value equal to a bound falls under it, as Prometheus' `le` says."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


def _ttft() -> defaultdict[str, Histogram]:
    return defaultdict(lambda: Histogram(TTFT_BOUNDS))


@dataclass(slots=True)
class Counters:
    """Everything counted since start. Money is pico-USD."""

    requests: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    attempts: Counter[tuple[str, str]] = field(default_factory=Counter)
    inflight: Counter[str] = field(default_factory=Counter)
    cost: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    alternative_cost: Counter[tuple[str, str]] = field(default_factory=Counter)
    usage_estimated: Counter[tuple[str, str]] = field(default_factory=Counter)
    bad_events: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    overhead: Histogram = field(default_factory=lambda: Histogram(OVERHEAD_BOUNDS))
    ttft: defaultdict[str, Histogram] = field(default_factory=_ttft)
    loop_lag: float = 0.0
    config_reload_success: int = 1
