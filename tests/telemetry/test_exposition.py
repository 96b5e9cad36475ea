"""The Prometheus page: the names of the interface, labels from closed sets, unknown without a series."""

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.routing.affinity import AffinityBook
from gateway.routing.breakers import BreakerBoard
from gateway.routing.budgets import BudgetWindows
from gateway.routing.fleet_view import FleetView
from gateway.routing.lengths import LengthLearner
from gateway.routing.reservations import ReservationBook
from gateway.routing.value import ValueSample
from gateway.routing.view import EngineSnapshot, EngineState
from gateway.routing.wait import PrefillRate
from gateway.telemetry.counters import Counters
from gateway.telemetry.exposition import METRICS, Exposition, Sources

PROMISED = {
    *(
        "requests_total",
        "attempts_total",
        "inflight",
        "reserved_blocks",
        "headroom_blocks",
        "signal_age_seconds",
    ),
    *("engine_state", "engine_preemptions_total", "overhead_seconds_bucket", "ttft_seconds_bucket"),
    *("cost_usd_total", "alternative_cost_usd_total", "budget_spent_usd", "usage_estimated_total"),
    *("config_reload_success", "loop_lag_seconds"),
}
KNOWN = replace(
    EngineSnapshot("a"),
    state=EngineState.READY,
    usable_blocks=100,
    block_size=16,
    used_blocks=10,
    scraped_at=98.0,
)


def page(snapshot: EngineSnapshot, counters: Counters) -> dict[str, dict[tuple[str, ...], float]]:
    """Series name -> label values in the order of their names -> value, as a scraper reads them."""
    view = FleetView(
        models={}, snapshots={"a": snapshot}, books={"a": ReservationBook()}, rates={"a": PrefillRate()},
        lengths=LengthLearner(), breakers=BreakerBoard(), budgets=BudgetWindows({"e": (None, None)}),
        affinity=AffinityBook(), values=ValueSample(), prices={},
    )  # fmt: skip
    view.budgets.charge("e", 1_500_000_000_000, 1000.0)
    sources = Sources(counters, view, ("e",), lambda: 3, lambda: 100.0, lambda: 1000.0)
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(Exposition(sources).page().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(v for _, v in sorted(sample.labels.items()))] = (
                sample.value
            )
    return found


@pytest.fixture
def counters() -> Counters:
    counters = Counters()
    counters.requests["m", "overflow", "kv_full", "ok"] += 2
    counters.attempts["e", "ok"] += 2
    counters.inflight["a"] += 1
    counters.cost["m", "overflow", "cash_marginal"] += 2_500_000
    counters.alternative_cost["m", "overflow"] += 1
    counters.usage_estimated["a", "missing"] += 1
    counters.bad_events["a"] += 1
    counters.rejected["invalid_json"] += 1
    counters.overhead.observe(0.0004)
    counters.ttft["local"].observe(0.02)
    return counters


def test_every_promised_name_is_on_the_page(counters: Counters) -> None:
    assert {f"spillgate_{name}" for name in PROMISED} <= page(KNOWN, counters).keys()


def test_every_series_is_described_and_every_description_has_its_series(counters: Counters) -> None:
    stems = set()
    for name in page(KNOWN, counters):
        stem = name.removeprefix("spillgate_")
        for suffix in ("_total", "_created", "_bucket", "_sum", "_count"):
            stem = stem.removesuffix(suffix)
        stems.add(stem)
    assert stems == set(METRICS)


def test_money_is_in_dollars_and_histograms_add_up(counters: Counters) -> None:
    found = page(KNOWN, counters)
    assert found["spillgate_cost_usd_total"]["cash_marginal", "m", "overflow"] == 0.0000025
    assert found["spillgate_budget_spent_usd"] == {("e", "hour"): 1.5, ("e", "day"): 1.5}
    buckets = list(found["spillgate_overhead_seconds_bucket"].values())
    assert buckets == sorted(buckets)
    assert buckets[-1] == found["spillgate_overhead_seconds_count"][()] == 1
    assert found["spillgate_requests_total"]["m", "ok", "kv_full", "overflow"] == 2


def test_an_unknown_pool_has_no_series_and_no_0(counters: Counters) -> None:
    found = page(EngineSnapshot("a"), counters)
    assert "spillgate_headroom_blocks" not in found
    assert "spillgate_signal_age_seconds" not in found
    assert found["spillgate_engine_state"]["a", "unknown"] == 1
    known = page(KNOWN, counters)
    assert known["spillgate_headroom_blocks"] == {("a",): 90}
    assert known["spillgate_signal_age_seconds"] == {("a",): 2}


def test_an_engine_is_in_one_state(counters: Counters) -> None:
    states = page(KNOWN, counters)["spillgate_engine_state"]
    assert len(states) == len(EngineState)
    assert [labels for labels, value in states.items() if value] == [("a", "ready")]
