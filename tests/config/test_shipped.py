"""The policy files say what the built-in policies are, completely, and mean what their names say."""

from pathlib import Path

import pytest

from gateway.config.check_routes import policy_problems
from gateway.config.hints import keys_of
from gateway.config.shipped import SHIPPED
from gateway.config.typed import read_as
from gateway.routing.policy import Policy

POLICIES = Path(__file__).parents[2] / "policies"
FILES = sorted(POLICIES.glob("*.yaml"))


def test_every_built_in_policy_has_its_file() -> None:
    assert [path.stem for path in FILES] == sorted(SHIPPED)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_says_what_the_built_in_policy_of_its_name_is(path: Path) -> None:
    policy = read_as(Policy, path, {})
    assert policy.findings == []
    assert policy.value == SHIPPED[path.stem]
    assert list(policy_problems(SHIPPED[path.stem], path.stem)) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_commented(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("# ")
    assert text.count("#") >= 3


def test_the_balanced_file_shows_every_key_of_a_policy() -> None:
    tree = read_as(Policy, POLICIES / "balanced.yaml", {}).tree
    assert set(tree) == set(keys_of(Policy))


def test_names_mean_what_they_say() -> None:
    assert SHIPPED["never-overflow"].pin == "local"
    assert SHIPPED["handover"].pin == "overflow"
    assert SHIPPED["balanced"].overflow.spill_first == "lowest_value"
    assert {"queue", "ttft"}.isdisjoint(SHIPPED["local-first"].overflow.when)
    assert not any(policy.shadow for policy in SHIPPED.values())
