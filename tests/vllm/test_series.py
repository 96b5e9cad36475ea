"""The table of series holds together."""

from dataclasses import fields

from gateway.vllm.metrics import EngineMetrics, RankMetrics
from gateway.vllm.series import SERIES


def test_every_series_fills_a_field_and_every_field_has_a_series() -> None:
    filled = {series.field for series in SERIES if series.per_rank}
    assert filled == {field.name for field in fields(RankMetrics)} - {"rank"}
    assert {series.field for series in SERIES if not series.per_rank} <= {
        field.name for field in fields(EngineMetrics)
    }


def test_units_are_those_of_the_fields() -> None:
    kinds = {"share": "float | None", "count": "int | None", "flag": "bool | None", "labels": "CacheFacts"}
    types = RankMetrics.__annotations__ | EngineMetrics.__annotations__
    for series in SERIES:
        declared = types[series.field]
        assert kinds[series.unit] == (declared.__name__ if isinstance(declared, type) else str(declared))


def test_counters_and_only_counters_end_in_total() -> None:
    for series in SERIES:
        assert series.name.startswith("vllm:")
        assert series.name.endswith("_total") == (series.type == "counter")


def test_a_fallback_stands_below_what_it_stands_in_for() -> None:
    seen: set[str] = set()
    for series in SERIES:
        assert series.fallback == (series.field in seen), series.name
        seen.add(series.field)
