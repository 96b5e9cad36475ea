"""Looking at candidates."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gateway.routing.choose import best_engine, expected_output, judge_endpoints, judge_engine
from gateway.routing.policy import Admit, Choose, OverflowRules, Policy
from gateway.routing.reasons import Reason
from gateway.routing.rules import HeadroomRule
from gateway.routing.view import EndpointFacts

Make = Callable[..., Any]


def test_a_request_that_generates_nothing_needs_no_blocks(
    fleet: Make, snapshot: Make, facts: Make, policy: Policy
) -> None:
    view = fleet(snapshot(used_blocks=63))
    judged = judge_engine("a", facts(generates=False), view, policy, 100.0)
    assert judged.verdict is None
    assert judged.view.need.blocks == 0


def test_an_ejected_engine_is_refused_but_servable(
    fleet: Make, snapshot: Make, facts: Make, policy: Policy
) -> None:
    view = fleet(snapshot())
    for _ in range(3):
        view.breakers.failed("a", 100.0)
    judged = judge_engine("a", facts(), view, policy, 100.0)
    assert (judged.verdict, judged.servable) == (Reason.ENGINE_UNREACHABLE, True)


def test_reserving_max_tokens_reserves_what_the_caller_said(
    fleet: Make, snapshot: Make, facts: Make, policy: Policy
) -> None:
    view = fleet(snapshot())
    for _ in range(20):
        view.lengths.learn_output("m", 10)
    strict = replace(policy, admit=Admit(headroom=HeadroomRule(reserve="max_tokens")))
    assert expected_output(facts(max_tokens=500), view, policy) == 10
    assert expected_output(facts(max_tokens=500), view, strict) == 500
    assert expected_output(facts(max_tokens=500, min_tokens=40), view, policy) == 40


def test_fewest_waiting_may_be_preferred(fleet: Make, snapshot: Make, facts: Make, policy: Policy) -> None:
    view = fleet(snapshot("a", waiting=1), snapshot("b", used_blocks=40, waiting=0))
    chosen = replace(policy, choose=Choose(then="fewest_waiting"))
    judged = [judge_engine(n, facts(), view, policy, 100.0) for n in ("a", "b")]
    assert best_engine(judged, facts(), view, chosen)[0].name == "b"
    assert best_engine(judged, facts(), view, policy)[0].name == "a"


def test_the_cheapest_endpoint_comes_first_unless_the_listed_order_is_wanted(
    fleet: Make, snapshot: Make, facts: Make, policy: Policy, price: Any
) -> None:
    view = fleet(snapshot(), endpoints=(EndpointFacts("dear", "m"), EndpointFacts("cheap", "m")))
    view.prices["cheap", "m"] = replace(price, output=price.output / 2)
    listed = replace(policy, overflow=OverflowRules(prefer="listed"))
    targets = view.models["m"]
    assert [e.facts.name for e in judge_endpoints(targets, facts(), view, policy, 0.0, 0.0)] == [
        "cheap",
        "dear",
    ]
    assert [e.facts.name for e in judge_endpoints(targets, facts(), view, listed, 0.0, 0.0)] == [
        "dear",
        "cheap",
    ]


def test_a_budget_cannot_be_kept_with_an_unknown_price(
    fleet: Make, snapshot: Make, facts: Make, policy: Policy
) -> None:
    view = fleet(snapshot(), budgets={"serverless": (10**12, None)}, priced=False)
    judged = judge_endpoints(view.models["m"], facts(), view, policy, 0.0, 0.0)
    assert judged[0].verdict is Reason.BUDGET_SPENT
