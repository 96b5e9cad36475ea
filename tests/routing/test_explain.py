"""Decisions in words."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gateway.routing.decide import decide
from gateway.routing.explain import explain
from gateway.routing.policy import Policy
from gateway.routing.reasons import MEANING, Reason
from gateway.routing.view import EngineState

Make = Callable[..., Any]


def test_a_person_reads_choice_reason_and_every_candidate(
    fleet: Make, snapshot: Make, facts: Make, policy: Policy
) -> None:
    view = fleet(snapshot(used_blocks=60, waiting=2), snapshot("b", state=EngineState.UNREACHABLE))
    words = explain(decide(facts(), view, policy, 100.5, 0.0))
    assert words.startswith("Sent to endpoint 'serverless' as 'm': its KV blocks would not fit")
    assert "a: no, kv_full (needs 7 blocks, 60 promised or held, of 59.85 that may be, 2 waiting" in words
    assert "b: no, engine_unreachable" in words
    assert "serverless: admits it (expected cost 0.00011 USD" in words


def test_refusals_and_shadows_have_words_too(
    fleet: Make, snapshot: Make, facts: Make, policy: Policy
) -> None:
    nobody = fleet(snapshot(state=EngineState.BOOTING), endpoints=())
    assert explain(decide(facts(), nobody, policy, 100.5, 0.0)).startswith("Refused with 503")
    shadow = decide(facts(), fleet(snapshot(used_blocks=63)), replace(policy, shadow=True), 100.5, 0.0)
    assert "in force it would have left for kv_full" in explain(shadow)


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANING) == set(Reason)
