"""References to the environment: replaced, defaulted, escaped, and reported all at once when missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.env import FromEnv, substitute

ENV = {"A": "1", "B": "two", "EMPTY": "", "TRICKY": "${B} os.environ/B \\1"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${A}", "1"),
        ("x${A}y${B}z", "x1ytwoz"),
        ("os.environ/B", "two"),
        ("${NONE:-d}", "d"),
        ("${EMPTY:-d}", "d"),
        ("${A:-d}", "1"),
        ("${NONE:-}", ""),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("${TRICKY}", ENV["TRICKY"]),
        ("a os.environ/B", "a os.environ/B"),
        ("$A", "$A"),
    ],
)
def test_references_are_replaced_once(text: str, value: str) -> None:
    done = substitute({"k": [text]}, ENV)
    assert done.problems == []
    assert done.tree == {"k": [value]}


def test_only_text_values_are_touched() -> None:
    tree = {"${A}": 1, "b": [True, None, 2.5]}
    assert substitute(tree, ENV).tree == tree


def test_every_missing_variable_is_reported_with_its_place_and_empty_counts_as_missing() -> None:
    done = substitute({"a": "${X}", "b": [{"c": "${EMPTY}/${Y}"}], "d": "os.environ/Z"}, ENV)
    assert done.problems == [
        (("a",), "env_missing", "environment variable X is not set"),
        (("b", 0, "c"), "env_missing", "environment variable EMPTY is empty"),
        (("b", 0, "c"), "env_missing", "environment variable Y is not set"),
        (("d",), "env_missing", "environment variable Z is not set"),
    ]
    assert done.failed == {("a",), ("b", 0, "c"), ("d",)}


@pytest.mark.parametrize(
    "text", ["${A", "${}", "${A B}", "${1A}", "${A:+x}", "os.environ/", "os.environ/A B", "${${A}}"]
)
def test_a_reference_that_is_none_is_an_error_and_never_leaves_as_text(text: str) -> None:
    done = substitute(text, ENV)
    assert [code for _, code, _ in done.problems] == ["env_syntax"]
    assert done.tree == ""


@pytest.mark.parametrize(
    ("text", "sole"),
    [("${A}", True), ("os.environ/A", True), ("${A:-x}", False), ("x${A}", False), ("${A}${B}", False)],
)
def test_a_value_knows_whether_it_is_one_reference(text: str, sole: bool) -> None:
    value = substitute(text, ENV).tree
    assert isinstance(value, FromEnv)
    assert value.is_sole_reference is sole


def test_showing_a_replaced_text_shows_what_the_file_says() -> None:
    assert repr(substitute("${B}", ENV).tree) == "'${B}'"


PIECES = {
    "${A}": "1",
    "${B}": "two",
    "${NONE:-d}": "d",
    "$${": "${",
    "x": "x",
    " ": " ",
    "}": "}",
    "A:-": "A:-",
}


@given(st.lists(st.sampled_from(sorted(PIECES)), max_size=12))
def test_a_text_is_replaced_piece_by_piece(pieces: list[str]) -> None:
    done = substitute("".join(pieces), ENV)
    assert done.problems == []
    assert done.tree == "".join(PIECES[piece] for piece in pieces)
