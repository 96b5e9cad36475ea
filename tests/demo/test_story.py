"""The demo's last words: the object of the interface, and sentences that claim no more than was seen."""

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal

from gateway.demo.story import Figures, as_object, paragraph

SEEN = Figures(
    seconds=30.2,
    sent=120,
    by_route=Counter(local=100, overflow=20),
    by_reason=Counter(headroom=100, kv_full=20),
    engine_bill=14_000_000_000_000,
    overflow=2_000_000_000_000,
    cash_marginal=2_000_000_000_000,
    standard=9_000_000_000_000,
    all_overflow=20_000_000_000_000,
    net_position=4_000_000_000_000,
    ledger="l.db",
)


def test_the_object_has_the_promised_keys_and_exact_decimals() -> None:
    shown = json.loads(json.dumps(as_object(SEEN)))
    assert {"requests", "preemptions", "cost_usd", "net_position_usd", "ledger", "report"} <= shown.keys()
    assert set(shown["requests"]) == {"total", "failed", "by_route", "by_reason"}
    assert set(shown["cost_usd"]) == {"engine_bill", "overflow", "cash_marginal", "standard", "all_overflow"}
    assert Decimal(shown["net_position_usd"]) == 4
    assert shown["requests"]["by_route"] == {"local": 100, "overflow": 20}


def test_what_is_unknown_is_null_and_never_0() -> None:
    shown = as_object(Figures(seconds=1.0))
    assert set(shown["cost_usd"].values()) == {None}
    assert shown["net_position_usd"] is None
    assert "there is no net" in paragraph(Figures(seconds=1.0))


def test_the_paragraph_tells_routes_reasons_and_the_verdict() -> None:
    text = paragraph(SEEN)
    assert "120 requests; none failed" in text
    assert "100 were served by the engines, 20 by the serverless endpoint (kv_full 20)" in text
    assert "4.000000 USD cheaper than none" in text
    assert "4.000000 USD dearer than none" in paragraph(replace(SEEN, net_position=-4_000_000_000_000))


def test_failures_are_counted_and_not_explained_away() -> None:
    text = paragraph(replace(SEEN, failed=3, errors=["APIError: something else"]))
    assert "3 failed (APIError: something else)" in text
    assert "their engine died" not in text


def test_preemptions_are_said_in_english() -> None:
    assert "preempted nothing" in paragraph(SEEN)
    assert "preempted once" in paragraph(replace(SEEN, preemptions=1))
    assert "preempted 7 times" in paragraph(replace(SEEN, preemptions=7))


def test_an_engine_that_could_not_boot_is_named_with_its_cause() -> None:
    assert "could not boot (no memory)" in paragraph(replace(SEEN, unbootable_cause="no memory"))
    assert "could not boot" not in paragraph(SEEN)
