"""Names, aliases, addresses and doors: what must hold between the parts, all found in one go."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.check import Draft, is_loopback, open_listen, problems
from gateway.config.check_routes import route_problems
from gateway.config.findings import CODES
from gateway.config.shipped import SHIPPED

Find = Callable[..., list[str]]


def test_a_sound_configuration_has_no_findings(good: str, found: Find) -> None:
    assert found(good) == []


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("engines: [a]", "engines: [aa]", "9:15 unknown_name"),
        ("engines: [a]", "engines: [a, a]", "9:18 duplicate_name"),
        ("endpoint: e,", "endpoint: f,", "10:27 unknown_name"),
        ("engines: [a]", "engines: [a]\n    policy: balancd", "10:13 unknown_name"),
        ("engines: [a]", "engines: [a]\n    aliases: [m]", "10:15 alias_taken"),
        ("engines: [a]", "engines: [a]\n    aliases: [n, n]", "10:18 alias_taken"),
        ("- name: e", "- name: a", "5:11 duplicate_name"),
        ("    base_url: https://api.example.com/v1\n", "", "5:5 missing_key"),
        ("model: remote}", "model: remote, price: {}}", "10:52 missing_key"),
        ("models:", "listen: {host: 0.0.0.0}\nmodels:", "7:16 open_listen"),
        (
            "models:",
            '  - {name: f, kind: openai, base_url: "http://f", budget: {}}\nmodels:',
            "7:59 missing_key",
        ),
    ],
)
def test_what_does_not_fit_is_found_at_its_place(
    good: str, found: Find, old: str, new: str, finding: str
) -> None:
    assert old in good
    assert finding in found(good.replace(old, new))


def test_unknown_names_come_with_the_nearest_known_one(good: str, examined: Callable[..., Any]) -> None:
    messages = [f.message for f in examined(good.replace("endpoint: e", "endpoint: ee")).findings]
    assert "no endpoint is named 'ee'; nearest known name: 'e'" in messages


def test_an_alias_may_not_be_any_model_s_name_or_alias(found: Find) -> None:
    text = """\
        engines: [{name: a, url: "http://a"}]
        models:
          - {name: m, engines: [a], aliases: [n, x]}
          - {name: n, engines: [a], aliases: [x]}
        """
    assert found(text) == ["3:39 alias_taken", "4:39 alias_taken"]


def test_two_engines_at_one_address_would_promise_its_blocks_twice(found: Find) -> None:
    text = """\
        engines: [{name: a, url: "http://a"}, {name: b, url: "http://a/"}]
        models: [{name: m, engines: [a, b]}]
        """
    assert found(text) == ["1:54 duplicate_name"]


def test_tensor_parallel_engines_need_as_many_cards(found: Find) -> None:
    text = """\
        engines: [{name: a, url: "http://a", gpu: {type: L40S}, launch: {tensor_parallel_size: 2}}]
        models: [{name: m, engines: [a]}]
        """
    assert found(text) == ["1:88 contradiction"]


def test_what_no_model_uses_is_a_warning(good: str, examined: Callable[..., Any]) -> None:
    result = examined(good.replace("engines: [a]", "engines: []"))
    assert [(f.code, f.level) for f in result.findings] == [("unused", "warning")]
    assert result.config is not None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1", "[::1]"])
def test_loopback_addresses_may_be_open(host: str) -> None:
    assert is_loopback(host)
    assert open_listen(host, has_clients=False) is None


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "gateway", "", "127.0.0.1.example.com", "2130706433"]
)
def test_any_other_address_needs_client_keys(host: str) -> None:
    assert "clients.keys_file" in (open_listen(host, has_clients=False) or "")
    assert open_listen(host, has_clients=True) is None


WORDS = st.sampled_from(["a", "e", "m", "balanced", "0.0.0.0", ""])
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-1, 3), WORDS)
KEYS = st.sampled_from(
    [
        "name",
        "url",
        "engines",
        "endpoints",
        "models",
        "aliases",
        "overflow",
        "endpoint",
        "policy",
        "listen",
        "host",
        "kind",
        "budget",
        "price",
        "gpu",
        "count",
        "launch",
        "tensor_parallel_size",
        "clients",
        "region",
    ]
)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5)
)


@given(st.dictionaries(KEYS, TREES, max_size=6))
def test_any_tree_is_checked_without_raising(tree: dict[str, Any]) -> None:
    draft = Draft(tree, dict(SHIPPED), frozenset(SHIPPED))
    for problem in [*problems(draft), *route_problems(draft)]:
        assert problem.code in CODES
        assert problem.loc
