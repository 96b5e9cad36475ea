"""JSON: the keys that scripts rely on, exact money, and null for unknown."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ledger_rows import FOUR_HOURS, MIXED, local, overflow

from gateway.reports.render.json_ import render
from gateway.reports.report import Report

Reported = Callable[..., Report]


def read(report: Report) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(render(report))
    return value


def test_the_promised_keys_are_there(reported: Reported) -> None:
    value = read(reported(*MIXED))
    assert value["schema"] == "spillgate.report/1"
    assert {"period", "basis", "coverage", "unpriced", "totals", "rows"} <= value.keys()
    assert value["period"] == {"since": "2026-12-01T08:00:00Z", "until": "2026-12-01T12:00:00Z"}
    assert set(value["unpriced"]) == {"requests", "tokens"}
    assert set(value["totals"]["tokens"]) == {"prompt", "cached", "completion"}
    assert {
        "requests", "engine_bill", "idle", "overflow", "cash_marginal", "standard", "attributed", "loaded",
        "alternative", "net_position",
    } <= value["totals"].keys()  # fmt: skip
    for row in value["rows"]:
        assert list(row["key"]) == ["model", "route", "reason"]


def test_money_is_exact_text_and_unknown_is_null(reported: Reported) -> None:
    totals = read(reported(*FOUR_HOURS, local("l"), overflow("o", 700_000_001)))["totals"]
    assert totals["overflow"] == "0.000700000001"
    assert totals["engine_bill"] == "11.2"
    assert totals["net_position"] == "-11.19936"
    assert totals["attributed"] is totals["loaded"] is None


def test_the_rows_add_up_to_the_totals(reported: Reported) -> None:
    value = read(reported(*MIXED))
    for key in ("overflow", "cash_marginal", "standard", "alternative", "all_overflow"):
        added = sum(Decimal(row[key]) for row in value["rows"] if row[key] is not None)
        assert added == Decimal(value["totals"][key]), key


def test_what_amounts_rest_on_is_listed(reported: Reported) -> None:
    value = read(reported(*MIXED))
    assert [(p["price_id"], p["input"], p["output"]) for p in value["prices"]] == [("p1", "0.2", "0.6")]
    assert value["engines"][0]["engine_bill"] == "11.2"
    assert value["engines"][0]["seconds"] == {"serving_busy": 10800.0, "serving_idle": 3600.0}
    assert value["compared_with"] == ["serverless"]
