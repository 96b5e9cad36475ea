"""Histograms count every value once, under the bound that Prometheus would."""

from gateway.telemetry.counters import OVERHEAD_BOUNDS, TTFT_BOUNDS, Counters, Histogram


def test_a_value_falls_under_the_first_bound_that_holds_it() -> None:
    histogram = Histogram((0.1, 1.0))
    for value in (0.0, 0.1, 0.100001, 1.0, 7.0):
        histogram.observe(value)
    assert histogram.counts == [2, 2, 1]
    assert histogram.total == 8.200001


def test_bounds_are_in_order_and_end_above_what_is_normal() -> None:
    for bounds in (OVERHEAD_BOUNDS, TTFT_BOUNDS):
        assert list(bounds) == sorted(set(bounds))


def test_counters_of_two_gateways_are_apart() -> None:
    one, two = Counters(), Counters()
    one.requests["m", "local", "headroom", "ok"] += 1
    one.ttft["local"].observe(0.2)
    assert not two.requests
    assert not two.ttft
