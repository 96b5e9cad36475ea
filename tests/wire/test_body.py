"""Bodies keep every byte that no edit names."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.body import BadBody, JsonObject

SPACE = st.text(" \t\r\n", max_size=3)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.text(max_size=5) | st.sampled_from(["model", "stream", "stream_options", "usage", "a", "b", "c"])


@st.composite
def key_sources(draw: st.DrawFn, key: str) -> str:
    """One of the ways to write a key: each character as it is, or escaped."""
    plain = json.dumps(key, ensure_ascii=False)[1:-1]
    escaped = "".join(f"\\u{unit:04x}" for unit in _utf16(key))
    return '"' + draw(st.sampled_from([plain, escaped, json.dumps(key)[1:-1]])) + '"'


def _utf16(text: str) -> list[int]:
    encoded = text.encode("utf-16-be")
    return [int.from_bytes(encoded[i : i + 2]) for i in range(0, len(encoded), 2)]


@dataclass
class Written:
    """An object together with the pieces of text that it was written as."""

    value: dict[str, Any]
    members: dict[str, tuple[str, str]]  # key -> (text up to the value, value)
    before: str
    after: str
    source: bytes


@st.composite
def written_objects(draw: st.DrawFn) -> Written:
    value = draw(st.dictionaries(KEYS, VALUES, max_size=6))
    before = draw(SPACE) + "{"
    after = "}" + draw(SPACE)
    members: dict[str, tuple[str, str]] = {}
    parts = []
    for key, item in value.items():
        text = json.dumps(item, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
        members[key] = (f"{draw(key_sources(key))}{draw(SPACE)}:{draw(SPACE)}", text)
        parts.append(draw(SPACE) + "".join(members[key]) + draw(SPACE))
    source = before + (",".join(parts) or draw(SPACE)) + after
    return Written(value, members, before, after, source.encode())


@given(written_objects())
def test_it_reads_what_json_reads(written: Written) -> None:
    body = JsonObject.parse(written.source)
    assert {key: body.get(key) for key in body.members} == written.value
    assert list(body.members) == list(written.value)
    assert all(body.source(body.members[key]).decode() == text for key, (_, text) in written.members.items())
    assert all(body.length_of(key) == len(text) for key, (_, text) in written.members.items())


@given(written_objects(), st.data())
def test_replacing_values_leaves_every_other_byte(written: Written, data: st.DataObject) -> None:
    new = {key: json.dumps(data.draw(VALUES)) for key in written.value if data.draw(st.booleans())}
    expected = written.source.decode()
    body = JsonObject.parse(written.source)
    for key, member in reversed(body.members.items()):
        if key in new:
            expected = expected[: member.value_start] + new[key] + expected[member.end :]
    assert body.edited(new).decode() == expected


@given(written_objects(), st.data())
def test_any_edit_parses_to_what_was_asked_for(written: Written, data: st.DataObject) -> None:
    drop = {key for key in [*written.value, "not there"] if data.draw(st.booleans())}
    new = data.draw(st.dictionaries(KEYS, VALUES, max_size=3))
    edits: dict[str, bytes | str] = {key: json.dumps(value).encode() for key, value in new.items()}
    edited = JsonObject.parse(written.source).edited(edits, drop).decode()

    kept = {key: value for key, value in written.value.items() if key not in drop or key in new}
    assert json.loads(edited) == kept | new
    assert list(json.loads(edited)) == [*kept, *(key for key in new if key not in kept)]
    # What stays is there as it was written, in its order.
    assert edited.startswith(written.before)
    assert edited.endswith(written.after)
    at = len(written.before)
    for key in kept:
        head, text = written.members[key]
        at = edited.index(head if key in new else head + text, at) + len(head)
    # And the result can be edited again.
    assert JsonObject.parse(edited.encode()).edited({}, ()) == edited.encode()


@pytest.mark.parametrize(
    ("source", "drop", "expected"),
    [
        (b'{"a": 1, "b": 2, "c": 3}', "a", b'{"b": 2, "c": 3}'),
        (b'{"a": 1, "b": 2, "c": 3}', "b", b'{"a": 1, "c": 3}'),
        (b'{"a": 1, "b": 2, "c": 3}', "c", b'{"a": 1, "b": 2}'),
        (b'{"a": 1, "b": 2, "c": 3}', "bc", b'{"a": 1}'),
        (b'{"a": 1, "b": 2, "c": 3}', "ab", b'{"c": 3}'),
        (b'{"a": 1, "b": 2, "c": 3}', "ac", b'{"b": 2}'),
        (b'{ "a" : 1 }', "a", b"{  }"),
    ],
)
def test_a_dropped_member_takes_its_comma_along(source: bytes, drop: str, expected: bytes) -> None:
    assert JsonObject.parse(source).edited({}, set(drop)) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"{}", b'{"x":1}'),
        (b" { } ", b' {"x":1 } '),
        (b'{"a":1}', b'{"a":1,"x":1}'),
        (b'{"a":1 }\n', b'{"a":1,"x":1 }\n'),
    ],
)
def test_a_new_member_comes_last(source: bytes, expected: bytes) -> None:
    edited = JsonObject.parse(source).edited({"x": "1"})
    assert json.loads(edited) == json.loads(expected)
    assert edited.replace(b" ", b"") == expected.replace(b" ", b"")


def test_an_escaped_key_is_the_same_key() -> None:
    body = JsonObject.parse(b'{"mod\\u0065l": "a", "stream": true}')
    assert body.get("model") == "a"
    assert body.edited({"model": '"b"'}) == b'{"mod\\u0065l": "b", "stream": true}'


def test_without_a_change_the_very_same_bytes_come_back() -> None:
    source = '\ufeff{"a": "北京😀", "n": 1.0e2}'.encode()
    body = JsonObject.parse(source)
    assert body.edited({}) is source
    assert body.edited({}, ["not there"]) is source


def test_text_of_every_width_stays_in_place() -> None:
    source = '\ufeff{"t": "é北😀", "model": "a", "u": "\\ud83d"}'.encode()
    assert JsonObject.parse(source).edited({"model": '"b"'}) == source.replace(b'"a"', b'"b"')


def test_a_null_member_is_there() -> None:
    body = JsonObject.parse(b'{"a": null}')
    assert "a" in body
    assert "b" not in body
    assert body.get("a") is body.get("b") is None
    assert body.length_of("b") == 0


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (b"", "empty"),
        (b"  ", "Expecting '{' at character"),
        (b"[]", "Expecting '{' at character 0"),
        (b'"text"', "Expecting '{'"),
        (b'{"model": "tiny", "messages": [', "at character 31"),
        (b'{"a": 1} x', "Extra data"),
        (b'{"a": 1}{}', "Extra data"),
        (b'{"a": 1,}', "Expecting '\"'"),
        (b'{"a" 1}', "Expecting ':'"),
        (b'{"a": 1 "b": 2}', "Expecting '}'"),
        (b"{a: 1}", "Expecting '\"'"),
        (b"{'a': 1}", "Expecting '\"'"),
        (b'{"a": 01}', "Expecting '}'"),
        (b'{"a": "\x01"}', "control character"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
        (b'{"a": "\xed\xa0\x80"}', "not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": [{"b": -Infinity}]}', "-Infinity is not JSON"),
        (b'{"a": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"1" * 5_000 + b"}", "Exceeds the limit"),
    ],
)
def test_what_is_no_json_object_is_refused_with_its_place(source: bytes, says: str) -> None:
    with pytest.raises(BadBody) as caught:
        JsonObject.parse(source)
    assert says in caught.value.message
    assert caught.value.param is None


def test_a_repeated_key_is_refused_however_it_is_written() -> None:
    with pytest.raises(BadBody, match="'model' is there twice") as caught:
        JsonObject.parse(b'{"model": "a", "mod\\u0065l": "b"}')
    assert caught.value.param == "model"
    # Below the top level it is the engine's affair.
    assert JsonObject.parse(b'{"a": {"b": 1, "b": 2}}').get("a") == {"b": 2}


@given(st.binary(max_size=40) | st.text('{}[]":,\\ua0 \n', max_size=20).map(str.encode))
def test_it_takes_exactly_what_json_takes(source: bytes) -> None:
    try:
        body = JsonObject.parse(source)
    except BadBody:
        assert _strict_object(source) is None
    else:
        assert {key: body.get(key) for key in body.members} == _strict_object(source)


def _strict_object(source: bytes) -> dict[str, Any] | None:
    """What json makes of it, or None where that is no object, or has a key twice."""
    try:
        value = json.loads(source.decode("utf-8-sig"))
        pairs = json.loads(source.decode("utf-8-sig"), object_pairs_hook=list)
    except ValueError:
        return None
    return value if isinstance(value, dict) and len(value) == len(pairs) else None
