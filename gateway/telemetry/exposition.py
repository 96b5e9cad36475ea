"""Counters and gauges as a Prometheus page, made when it is asked for.

prometheus_client writes the format; the figures are read from live state, so nothing is kept twice. The table
of metric names here is the only one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.routing.budgets import DAY, HOUR
from gateway.routing.fleet_view import FleetView
from gateway.routing.rules import foreign_blocks
from gateway.routing.view import EngineSnapshot, EngineState
from gateway.telemetry.counters import Counters, Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "spillgate_"
_PICO = 1e12
# Mappings are invariant in their keys: each family has its own length of tuple.
Labels = TypeVar("Labels", bound=tuple[str, ...])


class Described(NamedTuple):
    """One metric: labels in order, and the help text."""

    labels: tuple[str, ...]
    help: str


METRICS: dict[str, Described] = {
    "requests": Described(
        ("model", "route", "reason", "outcome"), "Requests by where they went, why, and how they ended."
    ),
    "attempts": Described(("target", "outcome"), "Tries at targets."),
    "rejected": Described(("reason",), "Requests refused before anything was dispatched."),
    "inflight": Described(("target",), "Attempts in flight."),
    "reserved_blocks": Described(("engine",), "KV blocks promised to requests in flight."),
    "headroom_blocks": Described(
        ("engine",), "KV blocks that could still be promised, before any policy limit."
    ),
    "signal_age_seconds": Described(("engine",), "Age of the last good scrape."),
    "engine_state": Described(("engine", "state"), "1 for the state that the engine is in."),
    "engine_preemptions": Described(("engine",), "Preemptions seen since the gateway started."),
    "overhead_seconds": Described((), "Time from a request's arrival to its first dispatch."),
    "ttft_seconds": Described(("route",), "Time from a request's arrival to its first content."),
    "cost_usd": Described(
        ("model", "route", "basis"), "Cost by basis; requests of unknown cost are not in it."
    ),
    "alternative_cost_usd": Described(
        ("model", "route"), "What the route not taken would have cost in cash."
    ),
    "budget_spent_usd": Described(("endpoint", "window"), "Spent in the sliding window."),
    "usage_estimated": Described(("target", "why"), "Answers whose tokens were estimated."),
    "bad_events": Described(("target",), "Malformed events left out of streams."),
    "journal_pending": Described((), "Records written to the journal and not yet in the store."),
    "config_reload_success": Described((), "1 if the configuration in force is the last one read."),
    "loop_lag_seconds": Described((), "How late the event loop last ran a timer."),
}


@dataclass(frozen=True, slots=True)
class Sources:
    """Where figures are read from. `clock` is monotonic, `wall` UTC epoch seconds."""

    counters: Counters
    view: FleetView
    endpoints: tuple[str, ...]
    journal_pending: Callable[[], int]
    clock: Callable[[], float]
    wall: Callable[[], float]


class Exposition(Collector):
    """The page of one gateway."""

    def __init__(self, sources: Sources) -> None:
        self._from = sources
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def page(self) -> bytes:
        """The whole page in text format 0.0.4."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        """Every family, in the table's order of kinds."""
        counters = self._from.counters
        yield _counter("requests", counters.requests)
        yield _counter("attempts", counters.attempts)
        yield _counter("rejected", _single(counters.rejected))
        yield _counter("usage_estimated", counters.usage_estimated)
        yield _counter("bad_events", _single(counters.bad_events))
        yield _counter("cost_usd", {key: amount / _PICO for key, amount in counters.cost.items()})
        yield _counter(
            "alternative_cost_usd", {key: amount / _PICO for key, amount in counters.alternative_cost.items()}
        )
        yield _gauge("inflight", _single(counters.inflight))
        yield _gauge("config_reload_success", {(): counters.config_reload_success})
        yield _gauge("loop_lag_seconds", {(): counters.loop_lag})
        yield _gauge("journal_pending", {(): self._from.journal_pending()})
        yield _histogram("overhead_seconds", {(): counters.overhead})
        yield _histogram("ttft_seconds", {(route,): histogram for route, histogram in counters.ttft.items()})
        yield from self._engines()
        yield _gauge("budget_spent_usd", self._budgets())

    def _engines(self) -> Iterable[Metric]:
        view = self._from.view
        snapshots = view.snapshots
        now = self._from.clock()
        yield _gauge("reserved_blocks", {(name,): book.promised_blocks for name, book in view.books.items()})
        yield _gauge("headroom_blocks", _known({(n,): self._headroom(s) for n, s in snapshots.items()}))
        ages = {(n,): None if s.scraped_at is None else now - s.scraped_at for n, s in snapshots.items()}
        yield _gauge("signal_age_seconds", _known(ages))
        states = {
            (n, state.value): float(s.state is state) for n, s in snapshots.items() for state in EngineState
        }
        yield _gauge("engine_state", states)
        yield _counter("engine_preemptions", {(n,): s.preemptions_total for n, s in snapshots.items()})

    def _headroom(self, snapshot: EngineSnapshot) -> float | None:
        if snapshot.usable_blocks is None:
            return None
        promised = self._from.view.books[snapshot.name].promised_blocks
        return max(0, snapshot.usable_blocks - promised - foreign_blocks(snapshot))

    def _budgets(self) -> dict[tuple[str, ...], float]:
        budgets, wall = self._from.view.budgets, self._from.wall()
        return {
            (endpoint, name): budgets.spent(endpoint, seconds, wall) / _PICO
            for endpoint in self._from.endpoints
            for name, seconds in (("hour", HOUR), ("day", DAY))
        }


def _single(values: Mapping[str, int]) -> dict[tuple[str, ...], float]:
    return {(key,): value for key, value in values.items()}


def _known(values: Mapping[Labels, float | None]) -> dict[Labels, float]:
    """An unknown figure has no series: a gauge cannot say null, and 0 would be a lie."""
    return {key: value for key, value in values.items() if value is not None}


def _counter(name: str, values: Mapping[Labels, float]) -> Metric:
    return _family(CounterMetricFamily, name, values)


def _gauge(name: str, values: Mapping[Labels, float]) -> Metric:
    return _family(GaugeMetricFamily, name, values)


def _family(
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily], name: str, values: Mapping[Labels, float]
) -> Metric:
    described = METRICS[name]
    family = kind(_PREFIX + name, described.help, labels=described.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _histogram(name: str, values: Mapping[Labels, Histogram]) -> Metric:
    described = METRICS[name]
    family = HistogramMetricFamily(_PREFIX + name, described.help, labels=described.labels)
    for labels, histogram in values.items():
        family.add_metric(labels, _buckets(histogram), histogram.total)
    return family


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    cumulative = 0
    buckets: list[tuple[str, float]] = []
    for bound, count in zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True):
        cumulative += count
        buckets.append((bound, cumulative))
    return buckets
