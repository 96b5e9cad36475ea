"""Shapes: dataclasses out of plain values, all problems at once, and a JSON Schema that agrees."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.config.derive import InvalidError, build, json_schema, model_of
from gateway.config.schema import EndpointConfig, Listen, SpillgateFile
from gateway.config.secret import Secret
from gateway.routing.policy import Policy, Return
from gateway.routing.rules import HeadroomRule

HERE = Path()


@dataclass(frozen=True, slots=True)
class Inner:
    a: int = 1


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    inner: Inner = field(default_factory=lambda: Inner(7))
    maybe: Inner | None = None
    many: tuple[Inner, ...] = ()
    return_: int = 0


def test_the_result_is_the_plain_dataclass_all_the_way_down() -> None:
    built = build(Outer, {"name": "x", "maybe": {"a": 2}, "many": [{}, {"a": 3}], "return": 4}, HERE)
    assert built == Outer("x", Inner(7), Inner(2), (Inner(1), Inner(3)), 4)
    assert type(built.many[1]) is Inner


def test_every_problem_is_found_at_its_path() -> None:
    tree = {"inner": {"a": "x", "b": 1}, "many": [{}, 5, {"a": None}], "return_": 1, "maybe": []}
    with pytest.raises(InvalidError) as caught:
        build(Outer, tree, HERE)
    assert {(error["loc"], error["type"]) for error in caught.value.errors} == {
        (("name",), "missing"),
        (("inner", "a"), "int_type"),
        (("inner", "b"), "extra_forbidden"),
        (("many", 1), "model_type"),
        (("many", 2, "a"), "int_type"),
        (("maybe",), "model_type"),
        (("return_",), "extra_forbidden"),
    }


@pytest.mark.parametrize("tree", [None, [], "x", 5, True])
def test_a_file_that_is_no_mapping_is_refused(tree: object) -> None:
    with pytest.raises(InvalidError):
        build(Outer, tree, HERE)


def test_policies_are_derived_from_routing_s_own_types() -> None:
    policy = build(
        Policy,
        {"name": "p", "admit": {"headroom": {"limit": 1}, "queue": {}}, "return": {"ramp": "1m"}},
        HERE,
    )
    assert policy.admit.headroom == HeadroomRule(limit=1.0)
    assert policy.return_ == Return(ramp=60.0)
    assert policy.admit.ttft is None


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"admit": {"headroom": {"limit": 0}}}, "greater_than"),
        ({"retry": {"attempts": 6}}, "less_than_equal"),
        ({"deadlines": {"connect": "0s"}}, "greater_than"),
        ({"overflow": {"when": ["headrom"]}}, "literal_error"),
        ({"name": ""}, "string_too_short"),
    ],
)
def test_the_limits_of_routing_s_types_hold(part: dict[str, object], kind: str) -> None:
    with pytest.raises(InvalidError) as caught:
        build(Policy, {"name": "p", **part}, HERE)
    assert [error["type"] for error in caught.value.errors] == [kind]


def test_an_optional_rule_can_be_switched_off() -> None:
    assert build(Policy, {"name": "p", "admit": {"headroom": None}}, HERE).admit.headroom is None


def test_no_secret_is_in_a_dump_or_schema() -> None:
    model = model_of(EndpointConfig)(name="e", api_key=None)
    filled = model.model_copy(update={"api_key": Secret("CANARY")})
    assert "CANARY" not in repr(filled) + str(filled.model_dump()) + filled.model_dump_json()
    assert "***" in filled.model_dump_json()


def test_the_schema_shows_defaults_as_they_are_written() -> None:
    schema = json_schema(SpillgateFile)
    assert schema["required"] == ["models"]
    assert schema["$defs"]["Scrape"]["properties"]["interval"]["default"] == "1s"
    assert schema["$defs"]["Limits"]["properties"]["max_body"]["default"] == "20MiB"
    assert schema["$defs"]["Listen"]["additionalProperties"] is False
    assert "default" not in schema["properties"]["listen"]
    json.dumps(schema)
    assert build(Listen, {}, HERE) == Listen()
