"""Appending durably: kills, full disks, two processes, segments."""

import os
import random
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.ledger.errors import JournalFull, JournalInUse
from gateway.ledger.frames import frame
from gateway.ledger.journal import Journal
from gateway.ledger.records import OpenRecord, PriceRow, Record, RequestRecord

Killer = Callable[..., tuple[set[str], set[str]]]
Opens = Callable[..., OpenRecord]
Requests = Callable[..., RequestRecord]

# Opens a request, appends its close, and says so on stdout only then, as the gateway sends its last byte only
# then. Every 7th request stays open. Records are built once: the loop should spend its time in append.
_APPENDER = """
import sys
from dataclasses import replace
from pathlib import Path
from gateway.ledger.journal import Journal
from gateway.ledger.records import OpenRecord
from gateway.ledger.segments import interrupted
journal = Journal(Path(sys.argv[1]), max_segment=20_000)
opening = OpenRecord("", "2026-12-01T00:00:00.000000Z", "team", "/v1/completions", "m", "m", False)
closing = replace(interrupted(opening), outcome="ok", status=200)
print("ready", flush=True)
n = 0
while True:
    name = f"{sys.argv[2]}-{n}"
    journal.append(replace(opening, request_id=name))
    print("opened", name, flush=True)
    if n % 7:
        journal.append(replace(closing, request_id=name))
        print("finished", name, flush=True)
    n += 1
"""


def outcomes(records: list[Record]) -> dict[str, str]:
    named = [record for record in records if isinstance(record, RequestRecord)]
    assert max(Counter(record.request_id for record in named).values(), default=1) == 1, "a repeated row"
    return {record.request_id: record.outcome for record in named}


def reopened(folder: Path) -> tuple[dict[str, str], int]:
    journal = Journal(folder)
    recovered = journal.recover()
    journal.close()
    return outcomes(recovered.records), recovered.unreadable


@contextmanager
def full_disk(room: int, path: Path) -> Iterator[None]:
    """The kernel refuses to let any file of this process grow past this one's size plus `room` bytes.

    As on a full disk, the write that passes the limit is cut short before later ones fail.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_kill_loses_no_finished_request_and_leaves_open_ones_interrupted(
    tmp_path: Path, kill_at_random: Killer
) -> None:
    seed = random.randrange(2**32)
    delays = random.Random(seed)
    opened: set[str] = set()
    finished: set[str] = set()
    folder = tmp_path / "journal"
    for number in range(6):
        more_opened, more_finished = kill_at_random(
            _APPENDER, [str(folder), str(number)], tmp_path / f"said-{number}", delays.uniform(0.01, 0.15)
        )
        opened |= more_opened
        finished |= more_finished
    found, unreadable = reopened(folder)
    assert len(finished) > 100
    assert {name for name in finished if found.get(name) != "ok"} == set(), f"seed {seed}"
    assert opened <= set(found), f"seed {seed}"
    # One a round may have been killed between its append and saying so.
    assert len([name for name, outcome in found.items() if outcome == "ok" and name not in finished]) <= 6
    assert {found[name] for name in opened if int(name.split("-")[1]) % 7 == 0} == {"interrupted"}
    assert unreadable == 0


def test_what_was_appended_is_recovered_in_order(
    journal: Journal, request_record: Requests, price_version: PriceRow
) -> None:
    records: list[Record] = [price_version, request_record("a"), request_record("b", flags=("x",))]
    for record in records:
        journal.append(record)
    journal.close()
    again = Journal(journal.folder)
    assert again.recover().records == records
    assert again.recover().records == records
    again.close()


def test_a_request_left_open_is_recovered_as_interrupted(journal: Journal, open_record: Opens) -> None:
    journal.append(open_record("a"))
    journal.close()
    assert reopened(journal.folder) == ({"a": "interrupted"}, 0)


def test_a_close_in_a_later_segment_and_run_still_counts(
    tmp_path: Path, open_record: Opens, request_record: Requests
) -> None:
    first = Journal(tmp_path)
    first.append(open_record("a"))
    first.close()
    second = Journal(tmp_path)
    second.append(request_record("a"))
    second.close()
    assert reopened(tmp_path) == ({"a": "ok"}, 0)


def test_a_truncated_file_is_no_obstacle(journal: Journal, request_record: Requests) -> None:
    for name in "abc":
        journal.append(request_record(name))
    active = journal.active
    journal.close()
    active.write_bytes(active.read_bytes()[:-10])
    assert reopened(journal.folder) == ({"a": "ok", "b": "ok"}, 1)


def test_a_second_process_is_told_in_one_sentence(journal: Journal) -> None:
    code = "import sys, pathlib, gateway.ledger.journal as j; j.Journal(pathlib.Path(sys.argv[1]))"
    process = subprocess.run(
        [sys.executable, "-c", code, str(journal.folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=15,
    )
    said = process.stderr.strip().splitlines()[-1]
    assert process.returncode != 0
    assert said == (
        f"gateway.ledger.errors.JournalInUse: another gateway (process {os.getpid()}) writes to the "
        f"journal in {journal.folder}: stop it, or give this one a ledger of its own"
    )


def test_a_folder_given_back_can_be_taken_again(journal: Journal) -> None:
    with pytest.raises(JournalInUse):
        Journal(journal.folder)
    journal.close()
    Journal(journal.folder).close()


def test_segments_stay_below_their_limit_and_lose_nothing(tmp_path: Path, request_record: Requests) -> None:
    limit = 4 * len(frame(request_record("r00")))
    journal = Journal(tmp_path, max_segment=limit)
    for i in range(50):
        journal.append(request_record(f"r{i:02}"))
    journal.close()
    sizes = [path.stat().st_size for path in journal.segments()]
    assert len(sizes) > 10
    assert max(sizes) <= limit
    assert list(reopened(tmp_path)[0]) == [f"r{i:02}" for i in range(50)]


def test_a_record_larger_than_a_segment_is_kept(tmp_path: Path, request_record: Requests) -> None:
    journal = Journal(tmp_path, max_segment=100)
    journal.append(request_record("a"))
    journal.append(request_record("b"))
    journal.close()
    assert reopened(tmp_path) == ({"a": "ok", "b": "ok"}, 0)


@pytest.mark.parametrize("room", [0, 1, 100])
def test_a_full_disk_keeps_records_in_memory_until_there_is_room(
    journal: Journal, request_record: Requests, room: int
) -> None:
    journal.append(request_record("before"))
    with full_disk(room, journal.active):
        journal.append(request_record("first"))
        journal.append(request_record("second"))
        assert journal.spilled == 2
        assert not journal.flush()
        assert outcomes(journal.spilled_records()) == {"first": "ok", "second": "ok"}
    journal.append(request_record("after"))
    assert (journal.spilled, journal.lost) == (0, 0)
    journal.close()
    found, unreadable = reopened(journal.folder)
    assert list(found) == ["before", "first", "second", "after"]
    assert unreadable == 0


def test_a_part_of_a_line_on_a_full_disk_is_never_read_as_a_record(
    journal: Journal, request_record: Requests
) -> None:
    journal.append(request_record("before"))
    size = journal.active.stat().st_size
    with full_disk(100, journal.active):
        journal.append(request_record("cut"))
        assert journal.active.stat().st_size == size
    journal.forget_spilled()
    journal.close()
    assert reopened(journal.folder) == ({"before": "ok"}, 0)


def test_what_waits_for_the_disk_is_bounded_and_the_rest_is_counted(
    tmp_path: Path, request_record: Requests
) -> None:
    journal = Journal(tmp_path, max_spilled=3)
    with full_disk(0, journal.active):
        for i in range(5):
            journal.append(request_record(f"r{i}"))
    assert (journal.spilled, journal.lost) == (3, 2)
    assert journal.flush()
    journal.close()
    assert list(reopened(tmp_path)[0]) == ["r0", "r1", "r2"]


def test_a_required_ledger_refuses_to_open_a_request_and_never_to_close_one(
    tmp_path: Path, open_record: Opens, request_record: Requests
) -> None:
    journal = Journal(tmp_path, required=True)
    journal.append(open_record("a"))
    with full_disk(10, journal.active):
        with pytest.raises(JournalFull, match="takes no more"):
            journal.append(open_record("refused"))
        journal.append(request_record("a"))
        assert journal.spilled == 1
    journal.append(open_record("b"))
    journal.append(request_record("b"))
    journal.close()
    assert reopened(tmp_path) == ({"a": "ok", "b": "ok"}, 0)


def test_no_descriptors_left_does_not_stop_an_open_segment(tmp_path: Path, request_record: Requests) -> None:
    journal = Journal(tmp_path, max_segment=1000)
    journal.append(request_record("a"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        for i in range(5):
            journal.append(request_record(f"r{i}"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert journal.spilled == 0
    journal.close()
    assert len(reopened(tmp_path)[0]) == 6


def test_a_flushed_journal_writes_the_same(tmp_path: Path, request_record: Requests) -> None:
    journal = Journal(tmp_path, sync=True)
    journal.append(request_record("a"))
    journal.close()
    assert reopened(tmp_path) == ({"a": "ok"}, 0)


def test_compacting_forgets_what_is_closed_and_keeps_what_is_open(
    tmp_path: Path, open_record: Opens, request_record: Requests
) -> None:
    journal = Journal(tmp_path)
    for record in (open_record("a"), open_record("b"), request_record("a")):
        journal.append(record)
        journal.seal()
    complete = journal.segments()[2]
    journal.compact(complete, [open_record("b")])
    assert journal.segments() == [complete, journal.active]
    journal.append(request_record("c"))
    journal.close()
    assert reopened(tmp_path) == ({"b": "interrupted", "c": "ok"}, 0)


def test_compacting_with_nothing_open_removes_the_files(journal: Journal, request_record: Requests) -> None:
    journal.append(request_record("a"))
    first = journal.active
    journal.seal()
    journal.compact(first, [])
    assert journal.segments() == [journal.active]


def test_a_compaction_that_was_killed_halfway_leaves_the_segment(
    journal: Journal, request_record: Requests
) -> None:
    journal.append(request_record("a"))
    unfinished = journal.active.with_suffix(".new")
    unfinished.write_bytes(b"half")
    journal.close()
    assert reopened(journal.folder) == ({"a": "ok"}, 0)
    assert not unfinished.exists()


def test_sealing_an_empty_segment_does_nothing(journal: Journal) -> None:
    before = journal.active
    journal.seal()
    assert journal.active == before


def test_an_unused_journal_leaves_no_segment_behind(journal: Journal) -> None:
    journal.close()
    journal.close()
    assert journal.segments() == []


def test_an_append_is_cheap(journal: Journal, request_record: Requests) -> None:
    record = request_record()
    fastest = min(_seconds(lambda: journal.append(record)) for _ in range(2000))
    # Some 20 microseconds where it was measured: ten times that means something new is done per record.
    assert fastest < 0.0002


def _seconds(act: Callable[[], None]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def test_the_data_plane_loads_no_database_with_the_journal() -> None:
    code = (
        "import sys; import gateway.ledger.journal, gateway.ledger.records; "
        "print(sorted({'sqlalchemy', 'alembic', 'asyncio', 'litellm'} & set(sys.modules)))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=15
    )
    assert loaded.stdout.strip() == "[]"
