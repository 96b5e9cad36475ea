"""What requests and engine time come to: sums that know what they lack."""

from typing import Any

import pytest

from gateway.reports.figures import (
    NOTHING_TO_BILL,
    Bill,
    Outcomes,
    answering_engines,
    bill_of,
    figures_of,
    outcome_class,
)
from gateway.reports.rows import AttemptGroup, RequestGroup, SpanGroup, Sum

BILL = Bill(5_000, 2_000)


def requests(count: int = 1, **changes: Any) -> RequestGroup:
    """Requests that an engine answered, alike in everything."""
    fields: dict[str, Any] = {
        "key": (),
        "route": "local",
        "outcome": "ok",
        "usage_source": "reported",
        "is_priced": True,
        "equivalent": True,
        "alternative_route": "overflow",
        "alternative_kind": "serverless",
        "alternative_target": "serverless",
        "requests": count,
        "prompt": Sum(100 * count, count),
        "cached": Sum(50 * count, count),
        "completion": Sum(10 * count, count),
        "cash_marginal": Sum(0, count),
        "standard": Sum(7 * count, count),
        "alternative_cash": Sum(640 * count, count),
    }
    return RequestGroup(**{**fields, **changes})


def attempts(route: str = "local", cash: int = 0, known: int = 1, **changes: Any) -> AttemptGroup:
    """Attempts that got an answer."""
    fields: dict[str, Any] = {
        "key": (),
        "request_route": route,
        "route": route,
        "target": "a" if route == "local" else "serverless",
        "answered": True,
        "price_id": None,
        "attempts": 1,
        "cash_marginal": Sum(cash, known),
    }
    return AttemptGroup(**{**fields, **changes})


OVERFLOW: dict[str, Any] = {
    "route": "overflow",
    "alternative_route": "local",
    "alternative_kind": "preempt",
    "alternative_target": "a",
    "alternative_cash": Sum(0, 1),
    "cash_marginal": Sum(900, 1),
}


def test_no_requests_are_an_exact_nothing() -> None:
    figures = figures_of([], [], NOTHING_TO_BILL)
    assert (figures.requests, figures.cash_marginal, figures.standard, figures.overflow) == (0, 0, 0, 0)
    assert (figures.alternative, figures.all_overflow, figures.net_position) == (0, 0, 0)
    assert figures.coverage is None


def test_the_net_position_is_everything_elsewhere_less_the_bill_and_what_was_spent() -> None:
    figures = figures_of([requests(3), requests(**OVERFLOW)], [attempts("overflow", 900)], BILL)
    assert figures.all_overflow == 3 * 640 + 900
    assert figures.net_position == 3 * 640 + 900 - (5_000 + 900)


@pytest.mark.parametrize(
    ("changes", "attempted"),
    [
        ({"alternative_cash": Sum()}, ()),
        ({**OVERFLOW, "is_priced": False, "cash_marginal": Sum()}, (attempts("overflow", 0, 0),)),
        ({"route": None, "is_priced": False, "cash_marginal": Sum(), "alternative_route": None}, ()),
    ],
    ids=["no price elsewhere", "unpriced at the endpoint", "cut off by a crash"],
)
def test_any_unknown_part_leaves_the_net_position_unknown(changes: dict[str, Any], attempted: Any) -> None:
    figures = figures_of([requests(), requests(**changes)], attempted, BILL)
    assert figures.net_position is None
    assert figures.net_position_of_known == 640 - 5_000


def test_without_a_bill_there_is_no_net_position_of_anything() -> None:
    figures = figures_of([requests()], [], Bill(None, None, ("a",)))
    assert figures.net_position is figures.net_position_of_known is None
    assert figures.all_overflow == 640


def test_where_everything_is_left_out_elsewhere_is_unknown_and_not_free() -> None:
    figures = figures_of([requests(4, equivalent=False)], [], BILL)
    assert figures.left_out.not_equivalent == 4
    assert figures.alternative is figures.all_overflow is figures.net_position is None


def test_an_alternative_of_nothing_is_known() -> None:
    figures = figures_of([requests(**OVERFLOW)], [attempts("overflow", 900)], BILL)
    assert figures.alternative == 0


def test_what_no_engine_could_serve_has_no_alternative() -> None:
    infeasible = {**OVERFLOW, "alternative_kind": "infeasible", "alternative_cash": Sum()}
    figures = figures_of([requests(**infeasible)], [attempts("overflow", 900)], BILL)
    assert (figures.left_out.infeasible, figures.missing.alternative) == (1, 0)
    assert figures.alternative is None
    assert figures.all_overflow == 900


def test_tokens_that_were_not_reported_are_counted_as_missing() -> None:
    figures = figures_of([requests(2), requests(1, cached=Sum())], [], BILL)
    assert figures.tokens == (300, 100, 30)
    assert (figures.missing.prompt, figures.missing.cached, figures.missing.completion) == (0, 1, 0)


def test_coverage_is_the_share_of_sent_requests_with_reported_usage() -> None:
    groups = [
        requests(6),
        requests(1, usage_source="estimated"),
        requests(1, usage_source="none", outcome="internal"),
        requests(5, outcome="shed", route="shed", usage_source="none"),
    ]
    assert figures_of(groups, [], BILL).coverage == 6 / 8


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        ("ok", "ok"),
        ("shed", "shed"),
        ("rejected", "rejected"),
        ("client_gone", "client_left"),
        ("client_slow", "client_left"),
        ("interrupted", "failed"),
        ("a newer word", "failed"),
    ],
)
def test_every_outcome_has_a_class(outcome: str, kind: str) -> None:
    assert outcome_class(outcome) == kind


def test_outcomes_add_up_to_all_requests() -> None:
    groups = [
        requests(n, outcome=word) for n, word in enumerate(("ok", "shed", "internal", "client_gone"), 1)
    ]
    figures = figures_of(groups, [], BILL)
    assert figures.outcomes == Outcomes(ok=1, shed=2, failed=3, client_left=4)
    assert sum(figures.outcomes) == figures.requests


def test_a_bill_is_known_only_where_every_engine_that_answered_has_time_on_record() -> None:
    spans = [
        SpanGroup("a", "serving_busy", "rate-a", "2026-12-01T08:00Z", 60.0, 700),
        SpanGroup("a", "booting", "rate-a", "2026-12-01T08:00Z", 60.0, 300),
    ]
    assert bill_of(spans, ["a"]) == Bill(1_000, 300)
    assert bill_of(spans, ["a", "c", "b"]) == Bill(None, None, ("b", "c"))
    assert bill_of([], []) == Bill(None, None)


def test_only_engines_that_said_something_are_answering() -> None:
    tries = [attempts(), attempts(target="b", answered=False), attempts("overflow")]
    assert answering_engines(tries) == {"a"}
