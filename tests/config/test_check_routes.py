"""Every route that is written down can be taken, and every model can be served."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.config.check import Draft
from gateway.config.check_routes import key_problems, policy_problems, route_problems
from gateway.config.shipped import SHIPPED
from gateway.routing.policy import Forbid, OverflowRules, Policy

Find = Callable[..., list[str]]
OVERFLOW = [{"endpoint": "e", "model": "x"}]


def codes(model: dict[str, Any], policy: Policy, region: str | None = None) -> list[tuple[str, str]]:
    tree = {
        "endpoints": [{"name": "e", "region": region}],
        "models": [{"name": "m", "policy": policy.name, **model}],
    }
    draft = Draft(tree, {policy.name: policy}, frozenset({policy.name}))
    return [(problem.code, problem.level) for problem in route_problems(draft)]


ENGINE_AND_OVERFLOW = {"engines": ["a"], "overflow": OVERFLOW}
ONLY_QUEUE = Policy(name="p", overflow=OverflowRules(when=("queue",)))
NO_CAUSE = Policy(name="p", overflow=OverflowRules(when=()))


@pytest.mark.parametrize(
    ("model", "policy", "expected"),
    [
        ({}, SHIPPED["balanced"], [("no_target", "error")]),
        ({"engines": [], "overflow": []}, SHIPPED["balanced"], [("no_target", "error")]),
        ({"engines": ["a"]}, SHIPPED["handover"], [("dead_overflow", "error")]),
        ({"overflow": OVERFLOW}, SHIPPED["never-overflow"], [("no_target", "error")]),
        ({"overflow": OVERFLOW}, ONLY_QUEUE, [("no_target", "error")]),
        (ENGINE_AND_OVERFLOW, NO_CAUSE, [("dead_overflow", "warning")]),
        (ENGINE_AND_OVERFLOW, SHIPPED["never-overflow"], []),
        (ENGINE_AND_OVERFLOW, SHIPPED["handover"], []),
        (ENGINE_AND_OVERFLOW, SHIPPED["balanced"], []),
        ({"engines": ["a"]}, SHIPPED["balanced"], []),
        ({"overflow": OVERFLOW}, SHIPPED["balanced"], []),
        ({"overflow": OVERFLOW}, SHIPPED["handover"], []),
    ],
)
def test_a_model_and_its_policy_must_fit(
    model: dict[str, Any], policy: Policy, expected: list[tuple[str, str]]
) -> None:
    assert codes(model, policy) == expected


@pytest.mark.parametrize(
    ("region", "expected"), [("eu", []), ("us", ["dead_overflow"]), (None, ["dead_overflow"])]
)
def test_an_endpoint_outside_the_allowed_regions_is_a_warning(
    region: str | None, expected: list[str]
) -> None:
    policy = Policy(name="p", overflow=OverflowRules(forbid=Forbid(regions_allowed=("eu",))))
    assert [
        code for code, level in codes(ENGINE_AND_OVERFLOW, policy, region) if level == "warning"
    ] == expected


def test_a_model_without_a_policy_is_judged_under_balanced(found: Find) -> None:
    assert found("engines: []\nmodels: [{name: m}]\n") == ["2:17 no_target"]


@pytest.mark.parametrize(
    ("policy", "stem", "expected"),
    [
        (SHIPPED["balanced"], "balanced", []),
        (SHIPPED["balanced"], "other", ["name_differs"]),
        (replace(SHIPPED["handover"], shadow=True), "handover", ["contradiction"]),
        (Policy(name="p", overflow=OverflowRules(forbid=Forbid(header="x-local"))), "p", ["bad_value"]),
    ],
)
def test_a_policy_file_must_agree_with_itself(policy: Policy, stem: str, expected: list[str]) -> None:
    assert [problem.code for problem in policy_problems(policy, stem)] == expected


def test_a_client_key_that_nobody_has_is_a_warning() -> None:
    policy = Policy(name="p", overflow=OverflowRules(forbid=Forbid(keys=("hr", "lab"))))
    assert [p.loc for p in key_problems(policy, frozenset({"hr"}))] == [("overflow", "forbid", "keys", 1)]


def test_an_alias_with_no_target_never_loads(tmp_path: Path, found: Find) -> None:
    assert found("models: [{name: real, aliases: [fast]}]\n") == ["1:17 no_target"]
