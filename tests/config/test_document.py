"""YAML 1.2 text to values with their places; what does not belong is one clear finding."""

import os
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.document import parse, read

BYTES_EVERY_FILE_MAY_HOLD = "a: [x, {b: 0.40}] # é\n'q': \"z\"\n- |\n\t&*!%@"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("12:30:45", "12:30:45"),
        ("2026-12-01", "2026-12-01"),
        ("0.32.0", "0.32.0"),
        ("0o10", 8),
        ("010", 10),
        ("0x1F", 31),
        ("-5", -5),
        ("0.40", Decimal("0.40")),
        ("1e3", Decimal(1000)),
        ("true", True),
        ("null", None),
        ("'5'", "5"),
        ("!!str 1e3", "1e3"),
        ("${PORT}", "${PORT}"),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    document = parse(f"k: {text}\n", "f")
    assert document.findings == []
    assert isinstance(document.tree, dict)
    assert document.tree["k"] == value
    assert type(document.tree["k"]) is type(value)


def test_a_decimal_keeps_every_digit_of_its_text() -> None:
    document = parse("k: 0.1000000000000000055511151231257827\n", "f")
    assert document.tree == {"k": Decimal("0.1000000000000000055511151231257827")}


def test_places_are_those_of_the_text() -> None:
    places = parse("engines:\n  - name: a\n    url: 'x'\n", "f").places
    assert places.of_key(("engines", 0, "url")) == (3, 5)
    assert places.of_value(("engines", 0, "url")) == (3, 10)
    assert places.spelling(("engines", 0, "url")) == "x"


def test_a_repeated_key_names_both_lines_and_the_first_one_counts() -> None:
    document = parse("a:\n  url: 1\n  x: 2\n  url: 3\n", "f")
    assert [str(f) for f in document.findings] == [
        "f:4:3: error: 'url' is here twice: first on line 2 [duplicate_key]"
    ]
    assert document.tree == {"a": {"url": 1, "x": 2}}


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("", "1:1", "empty"),
        ("# only a comment\n", "1:1", "empty"),
        ("a:\n\tb: 1\n", "2:1", "tab"),
        ("a: [1, 2\n", "1:9", "not YAML"),
        ("engines:\n  - name: a\n    ur", "3:7", "not YAML"),
        ("a: 'x\n", "1:6", "quoted scalar from line 1"),
        ("a: b: c\n", "1:5", "not YAML"),
        ("a: 1\n---\nb: 2\n", "2:1", "second document"),
        ("%YAML 1.1\n---\na: no\n", "1:1", "directives"),
        ("# x\n\n%TAG ! y\n---\na: no\n", "3:1", "directives"),
        ("a: \0\n", "1:4", "character"),
        ("a: *x\n", "1:4", "alias"),
        ("a: &x [*x]\n", "1:4", "alias repeats"),
        ("a: !env X\n", "1:4", "tags"),
        ("a: !!python/object:os.system x\n", "1:4", "tags"),
        ("a: !m {b: 1}\n", "1:4", "tags"),
        ("1: x\n", "1:1", "quote it"),
        ("? [a]\n: b\n", "1:3", "quote it"),
        ("<<: {a: 1}\n", "1:1", "merge"),
        ("a: 1\nb:\n", "2:1", "'b' has no value"),
        ("a:\n  - \n", "2:4", "this entry has no value"),
        ("a: " + "9" * 6000, "1:4", "number"),
        ("a: 1e99999999999999999999", "1:4", "number"),
    ],
)
def test_what_is_wrong_is_one_finding_at_its_place(text: str, place: str, says: str) -> None:
    findings = parse(text, "f").findings
    assert [f"{f.line}:{f.column}" for f in findings] == [place]
    assert says in findings[0].message
    assert "\n" not in findings[0].message


def test_depth_and_growth_are_bounded() -> None:
    doubling = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 30))
    for text in ("a: " + "[" * 3000, "[" * 60 + "]" * 60, doubling):
        document = parse(text, "f")
        assert document.tree is None
        assert "deep" in document.findings[0].message


@pytest.mark.parametrize(
    "quote", ["*CANARY", "&CANARY x: y: z", "!CANARY!x y", "'CANARY\n\n", '"CANARY\\q"', "[CANARY", "@CANARY"]
)
def test_no_syntax_message_repeats_a_value(quote: str) -> None:
    document = parse(f"api_key: {quote}\n", "f")
    assert document.findings
    assert "CANARY" not in "".join(map(str, document.findings))


def test_aliases_work_and_an_anchor_may_be_used_again() -> None:
    document = parse("a: &x {p: 1}\nb: *x\nc: &x 2\nd: *x\n", "f")
    assert document.tree == {"a": {"p": 1}, "b": {"p": 1}, "c": 2, "d": 2}


def test_files_that_cannot_be_read_are_findings(tmp_path: Path) -> None:
    latin, large, marked = tmp_path / "latin", tmp_path / "large", tmp_path / "marked"
    latin.write_bytes(b"a: 1\nb: \xe9\n")
    large.write_bytes(b"#" * (1024 * 1024 + 1))
    marked.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert (
        str(read(latin).findings[0])
        == f"{latin}:2:4: error: the file is not UTF-8 text from here on [syntax]"
    )
    assert [f.code for f in read(large).findings] == ["unreadable"]
    assert [f.code for f in read(tmp_path / "none").findings] == ["unreadable"]
    assert [f.code for f in read(tmp_path).findings] == ["unreadable"]
    assert read(marked).tree == {"a": 1}
    assert os.fspath(latin) in read(latin).places.file


@given(st.text(alphabet=BYTES_EVERY_FILE_MAY_HOLD, max_size=60))
def test_any_text_gives_values_or_findings_and_never_raises(text: str) -> None:
    document = parse(text, "f")
    assert document.tree is not None or document.findings
    lines = text.splitlines() or [""]
    for finding in document.findings:
        assert 1 <= finding.line <= len(lines) + 1
