"""Notes: each thing that a reader must know is said once, and nothing is said where there is nothing."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.reports.figures import NO_BILL, NOTHING_TO_BILL, Bill, LeftOut, Unpriced, figures_of
from gateway.reports.notes import notes_on
from gateway.reports.rows import RateUse

FINE = replace(figures_of([], [], Bill(10, 5)), requests=9)


def notes(totals: Any = FINE, **changes: Any) -> str:
    options: dict[str, Any] = {
        "bill_is_split": True,
        "without": (),
        "recorded": {"a": 3600.0},
        "rates": (),
        "period_seconds": 3600.0,
    }
    return "\n".join(notes_on(totals, **{**options, **changes}))


def test_a_sound_report_only_lacks_its_settlement() -> None:
    assert notes() == "attributed and loaded are unknown: the engines' bill is not yet shared out to requests"


@pytest.mark.parametrize(
    ("totals", "changes", "says"),
    [
        (figures_of([], [], NOTHING_TO_BILL), {}, "no request arrived"),
        (replace(FINE, unpriced=Unpriced(3, 1200)), {}, "3 requests (1,200 tokens) whose cost is unknown"),
        (replace(FINE, missing=FINE.missing._replace(standard=1)), {}, "standard lacks 1 request:"),
        (replace(FINE, missing=FINE.missing._replace(alternative=2)), {}, "alternative lacks 2 requests"),
        (replace(FINE, missing=FINE.missing._replace(cached=2)), {}, "cached tokens lack 2 requests"),
        (replace(FINE, left_out=LeftOut(4, 0, 0)), {}, "4 requests of engines left out"),
        (replace(FINE, left_out=LeftOut(0, 5, 0)), {}, "no tokens were counted"),
        (replace(FINE, left_out=LeftOut(0, 0, 6)), {}, "no engine could serve them"),
        (replace(FINE, engine_bill=None), {"without": ("b",)}, "b answered and has no engine time"),
        (replace(FINE, engine_bill=None), {}, "no engine time in this period"),
        (FINE, {"bill_is_split": False}, "groups have engine_bill by engine"),
        (FINE, {"recorded": {"a": 1800.0}}, "a: engine_bill counts 30.0 min of 1.00 h"),
    ],
)
def test_what_a_reader_must_know_is_said(totals: Any, changes: dict[str, Any], says: str) -> None:
    assert says in notes(totals, **changes)


def test_a_stretch_that_is_still_open_is_no_gap() -> None:
    assert "engine_bill counts" not in notes(recorded={"a": 3590.0})


def test_committed_engines_are_named() -> None:
    rate = RateUse("r", "a", "2026-12-01T00:00:00+00:00", "2", "0", "reserved", None)
    assert "the bill of a is committed" in notes(rates=[rate])
    assert "committed" not in notes(rates=[replace(rate, billing="on_demand")])


def test_no_bill_is_not_a_bill_of_nothing() -> None:
    assert figures_of([], [], NO_BILL).engine_bill is None
