"""A file as a dataclass: everything wrong with it in one reading."""

from collections.abc import Callable
from pathlib import Path

from gateway.config.check import Problem
from gateway.config.schema import SpillgateFile
from gateway.config.typed import read_as
from gateway.routing.policy import Policy

Write = Callable[[str, str], Path]


def test_a_sound_file_gives_a_value(write: Write) -> None:
    policy = read_as(Policy, write("p.yaml", "name: p\npin: ${PIN:-local}\n"), {})
    assert policy.findings == []
    assert policy.value == Policy(name="p", pin="local")


def test_problems_of_every_kind_are_found_together(write: Write) -> None:
    policy = read_as(
        Policy, write("p.yaml", "name: p\nname: q\npin: ${PIN}\nshadow: no\nretri: {}\nadmit:\n"), {}
    )
    assert policy.value is None
    assert {f.code for f in policy.findings} == {
        "duplicate_key", "env_missing", "wrong_type", "unknown_key", "empty_value",
    }  # fmt: skip
    assert len(policy.findings) == 5, "nothing is said twice"


def test_a_repeated_key_alone_refuses_the_file(write: Write) -> None:
    assert read_as(Policy, write("p.yaml", "name: p\nname: p\n"), {}).value is None


def test_without_an_environment_references_stay_text(write: Write) -> None:
    path = write("f.yaml", "models: [{name: '${X}', engines: [a]}]\n")
    file = read_as(SpillgateFile, path, None)
    assert file.value is not None
    assert file.value.models[0].name == "${X}"


def test_later_problems_are_placed_and_left_out_where_the_value_already_failed(write: Write) -> None:
    policy = read_as(Policy, write("p.yaml", "name: ${X}\npin: local\n"), {})
    policy.report(
        [Problem(("name",), "name_differs", "noise"), Problem(("pin",), "contradiction", "x", at_key=True)]
    )
    assert [(f.line, f.column, f.code) for f in policy.findings] == [
        (1, 7, "env_missing"),
        (2, 1, "contradiction"),
    ]


def test_a_file_that_is_no_mapping_has_an_empty_tree(write: Write) -> None:
    policy = read_as(Policy, write("p.yaml", "- x\n"), {})
    assert policy.tree == {}
    assert [f.code for f in policy.findings] == ["wrong_type"]
