"""Records as lines."""

import json
import zlib
from collections.abc import Callable
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ledger.frames import BadFrame, Decoder, frame, header
from gateway.ledger.records import (
    AttemptRecord,
    EngineSpan,
    OpenRecord,
    PriceRow,
    RateRow,
    Record,
    RequestRecord,
)

RECORDS: list[type[Any]] = [RequestRecord, AttemptRecord, OpenRecord, EngineSpan, PriceRow, RateRow]


def line_of(payload: object) -> bytes:
    text = json.dumps(payload).encode()
    return b"%08x %d %s" % (zlib.crc32(text), len(text), text)


def records() -> st.SearchStrategy[Record]:
    return st.one_of(
        st.builds(RequestRecord, flags=st.lists(st.text()).map(tuple)),
        st.builds(OpenRecord),
        st.builds(EngineSpan),
        st.builds(PriceRow),
        st.builds(RateRow),
    )


@given(records().filter(lambda record: record == record))
def test_a_record_survives_its_line(record: Record) -> None:
    line = frame(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    # NaN is the one value that differs from itself; what comes back of it is NaN again.
    assert repr(Decoder().read(line[:-1])) == repr(record)


def test_a_lone_surrogate_from_a_client_is_written_and_read(open_record: Callable[..., OpenRecord]) -> None:
    record = open_record(requested_model="\ud800\nline two")
    assert Decoder().read(frame(record)[:-1]) == record


@given(st.data())
def test_a_changed_byte_is_always_found(data: st.DataObject) -> None:
    line = frame(OpenRecord("r1", "t", None, "/v1/completions", "m", "m", False))[:-1]
    place = data.draw(st.integers(0, len(line) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != line[place]))
    changed = line[:place] + bytes([other]) + line[place + 1 :]
    try:
        read = Decoder().read(changed)
    except BadFrame:
        return
    # A hexadecimal digit of the checksum in capitals, a blank that int() takes: still the same record.
    assert read == Decoder().read(line)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_line_are_refused(noise: bytes) -> None:
    with pytest.raises(BadFrame):
        Decoder().read(noise)


@pytest.mark.parametrize("cut", [1, 8, 9, 12, 40])
def test_a_cut_line_is_refused(open_record: Callable[..., OpenRecord], cut: int) -> None:
    with pytest.raises(BadFrame):
        Decoder().read(frame(open_record())[:-1][:-cut])


def test_a_kind_that_this_version_does_not_know_is_refused() -> None:
    with pytest.raises(BadFrame, match="settlement"):
        Decoder().read(line_of(["settlement", [1]]))


def with_names(tag: str, change: Callable[[list[str]], list[str]]) -> tuple[Decoder, list[str]]:
    names: dict[str, Any] = json.loads(header().split(b" ", 2)[2])[1]
    names[tag] = change(names[tag])
    decoder = Decoder()
    assert decoder.read(line_of(["schema", names])) is None
    return decoder, names[tag]


def test_a_line_of_an_older_version_is_read_by_its_own_names(open_record: Callable[..., OpenRecord]) -> None:
    record = open_record(policy="balanced")
    decoder, names = with_names("open", lambda names: [n for n in reversed(names) if n != "policy"])
    line = line_of(["open", [getattr(record, name) for name in names]])
    assert decoder.read(line) == replace(record, policy=None)


def test_a_field_of_a_newer_version_is_passed_over(open_record: Callable[..., OpenRecord]) -> None:
    record = open_record()
    decoder, names = with_names("open", lambda names: ["new", *names])
    values = ["whatever", *(getattr(record, name) for name in names[1:])]
    assert decoder.read(line_of(["open", values])) == record


def test_a_missing_field_is_its_default_else_unknown(request_record: Callable[..., RequestRecord]) -> None:
    decoder, names = with_names(
        "request", lambda names: [n for n in names if n not in ("currency", "standard")]
    )
    record = request_record(attempts=())
    read = decoder.read(line_of(["request", [getattr(record, name) for name in names]]))
    assert read == replace(record, standard=None, currency="USD")


def test_the_first_line_names_every_field() -> None:
    names = json.loads(header().split(b" ", 2)[2])[1]
    assert sorted(len(fields) for fields in names.values()) == sorted(
        len(dataclass_fields(cls)) for cls in RECORDS
    )
