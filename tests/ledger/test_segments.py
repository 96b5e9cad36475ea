"""Reading a journal's files back, damaged or not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.ledger.frames import frame, header
from gateway.ledger.records import OpenRecord, Record, RequestRecord
from gateway.ledger.segments import CHUNK_BYTES, OpenRequests, SegmentReader, interrupted, recovering

Opens = Callable[..., OpenRecord]
Requests = Callable[..., RequestRecord]


@pytest.fixture
def segment(tmp_path: Path) -> Callable[[bytes], Path]:
    """A file of these bytes."""

    def make(content: bytes) -> Path:
        path = tmp_path / "segment-000000000001.log"
        path.write_bytes(content)
        return path

    return make


def read_all(path: Path, *, final: bool = True) -> tuple[list[Record], int]:
    reader, records, unreadable = SegmentReader(path), [], 0
    while (chunk := reader.next_chunk(final=final)) is not None:
        reader.offset = chunk.end
        records += chunk.records
        unreadable += chunk.unreadable
    return records, unreadable


def lines(make: Opens, count: int) -> list[bytes]:
    return [frame(make(f"r{i}")) for i in range(count)]


def ids(records: list[Record]) -> list[str]:
    return [record.request_id for record in records if isinstance(record, OpenRecord | RequestRecord)]


def test_a_segment_larger_than_a_chunk_is_read_whole(
    segment: Callable[[bytes], Path], open_record: Opens
) -> None:
    count = 2 * CHUNK_BYTES // len(frame(open_record("r0")))
    records, unreadable = read_all(segment(header() + b"".join(lines(open_record, count))))
    assert (ids(records), unreadable) == ([f"r{i}" for i in range(count)], 0)


def test_a_line_longer_than_a_chunk_is_read(segment: Callable[[bytes], Path], open_record: Opens) -> None:
    long = open_record("long", tags="x" * (3 * CHUNK_BYTES))
    records, unreadable = read_all(segment(header() + frame(long) + frame(open_record("r1"))))
    assert (records, unreadable) == ([long, open_record("r1")], 0)


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_a_torn_last_record_costs_only_itself(
    segment: Callable[[bytes], Path], open_record: Opens, kept: int
) -> None:
    first, last = lines(open_record, 2)
    records, unreadable = read_all(segment(header() + first + last[:kept]))
    assert (ids(records), unreadable) == (["r0"], 1)


def test_an_unfinished_line_of_a_growing_segment_is_waited_for(
    segment: Callable[[bytes], Path], open_record: Opens
) -> None:
    first, last = lines(open_record, 2)
    path = segment(header() + first + last[:30])
    reader = SegmentReader(path)
    chunk = reader.next_chunk(final=False)
    assert chunk is not None
    assert (ids(chunk.records), chunk.unreadable) == (["r0"], 0)
    reader.offset = chunk.end
    assert reader.next_chunk(final=False) is None
    path.write_bytes(header() + first + last)
    chunk = reader.next_chunk(final=False)
    assert chunk is not None
    assert (ids(chunk.records), chunk.unreadable) == (["r1"], 0)


def test_a_chunk_is_read_again_until_the_reader_is_told_to_go_on(
    segment: Callable[[bytes], Path], open_record: Opens
) -> None:
    reader = SegmentReader(segment(header() + b"".join(lines(open_record, 3))))
    assert reader.next_chunk(final=True) == reader.next_chunk(final=True)


def test_a_zeroed_page_costs_only_the_records_in_it(
    segment: Callable[[bytes], Path], open_record: Opens
) -> None:
    content, touched = bytearray(header()), []
    for name, line in ((f"r{i}", frame(open_record(f"r{i}"))) for i in range(200)):
        if len(content) < 8192 and len(content) + len(line) > 4096:
            touched.append(name)
        content += line
    content[4096:8192] = bytes(4096)
    records, unreadable = read_all(segment(bytes(content)))
    assert len(touched) > 10
    assert ids(records) == [f"r{i}" for i in range(200) if f"r{i}" not in touched]
    assert unreadable == 1


def test_a_zeroed_tail_is_one_damaged_place(segment: Callable[[bytes], Path], open_record: Opens) -> None:
    records, unreadable = read_all(segment(header() + lines(open_record, 1)[0] + bytes(5000)))
    assert (ids(records), unreadable) == (["r0"], 1)


@pytest.mark.parametrize("content", [b"", bytes(10), b"\n", b"not a journal\n"])
def test_a_file_of_nothing_readable_is_no_error(segment: Callable[[bytes], Path], content: bytes) -> None:
    records, unreadable = read_all(segment(content))
    assert (records, unreadable) == ([], 1 if content else 0)


def test_a_damaged_first_line_costs_no_record(segment: Callable[[bytes], Path], open_record: Opens) -> None:
    records, unreadable = read_all(segment(b"x" + header()[1:] + lines(open_record, 1)[0]))
    assert (ids(records), unreadable) == (["r0"], 1)


def test_what_was_opened_and_not_closed_is_closed_as_interrupted(
    segment: Callable[[bytes], Path], open_record: Opens, request_record: Requests
) -> None:
    closed = request_record("a")
    path = segment(header() + frame(open_record("a")) + frame(open_record("b")) + frame(closed))
    parts = list(recovering([path]))
    records = [record for part in parts for record in part.records]
    assert records == [closed, interrupted(open_record("b"))]
    assert parts[-1].path is None


def test_an_interrupted_request_knows_nothing_but_its_opening(open_record: Opens) -> None:
    record = interrupted(open_record("a", tags="t", policy="p"))
    assert (record.request_id, record.outcome, record.tags, record.policy) == ("a", "interrupted", "t", "p")
    amounts = (record.cash_marginal, record.standard, record.alternative_cash, record.prompt_tokens)
    assert amounts == (None, None, None, None)
    assert record.attempts == ()


def test_open_requests_are_those_opened_and_not_closed(open_record: Opens, request_record: Requests) -> None:
    opened = OpenRequests()
    opened.see([open_record("a"), open_record("b"), request_record("a"), request_record("never opened")])
    assert (len(opened), opened.records()) == (1, [open_record("b")])
    assert [record.outcome for record in opened.interrupted() if isinstance(record, RequestRecord)] == [
        "interrupted"
    ]
