"""From the journal into the store: nothing lost, nothing repeated, whatever fails in between."""

import asyncio
import logging
import random
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import select

from gateway.ledger.errors import StoreUnavailable
from gateway.ledger.frames import frame
from gateway.ledger.journal import Journal
from gateway.ledger.records import OpenRecord, Record, RequestRecord
from gateway.ledger.schema import requests
from gateway.ledger.store import Store
from gateway.ledger.writer import Writer

LOCKED = "the ledger's database takes no rows: database is locked"
Killer = Callable[..., tuple[set[str], set[str]]]
Requests = Callable[..., RequestRecord]
Opens = Callable[..., OpenRecord]
pytestmark = pytest.mark.anyio

# As the appender of test_journal, with the writer at work beside it.
_GATEWAY = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from gateway.ledger.journal import Journal
from gateway.ledger.records import OpenRecord
from gateway.ledger.segments import interrupted
from gateway.ledger.store import Store
from gateway.ledger.writer import Writer

opening = OpenRecord("", "2026-12-01T00:00:00.000000Z", "team", "/v1/completions", "m", "m", False)
closing = replace(interrupted(opening), outcome="ok", status=200)

async def serve(journal):
    n = 0
    while True:
        name = f"{sys.argv[3]}-{n}"
        journal.append(replace(opening, request_id=name))
        if n % 7:
            journal.append(replace(closing, request_id=name))
            print("finished", name, flush=True)
        else:
            print("opened", name, flush=True)
        n += 1
        await asyncio.sleep(0)

async def main():
    journal = Journal(Path(sys.argv[1]), max_segment=20_000)
    store = Store(sys.argv[2])
    writer = Writer(journal, store, interval=0.005)
    print("ready", flush=True)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(writer.run())
        tasks.create_task(serve(journal))

asyncio.run(main())
"""


class BrokenStore(Store):
    """A store that fails as often as it is told to, and remembers the threads that came."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.failures_left = 0
        self.threads: set[int] = set()

    def write(self, records: Sequence[Record]) -> list[Record]:
        """Fail, or write."""
        self.threads.add(threading.get_ident())
        if self.failures_left:
            self.failures_left -= 1
            raise StoreUnavailable(LOCKED)
        return super().write(records)


@pytest.fixture
def broken(store: Store, store_url: str) -> Iterator[BrokenStore]:
    """On the migrated database."""
    broken = BrokenStore(store_url)
    yield broken
    broken.close()


@asynccontextmanager
async def running(writer: Writer) -> AsyncIterator[None]:
    """The writer at work, as app runs it."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(writer.run())
        yield
        task.cancel()


async def until(happened: Callable[[], bool]) -> None:
    """Wait for something that the writer does in its thread."""
    async with asyncio.timeout(10):
        while not happened():
            await asyncio.sleep(0.005)


def stored(store: Store) -> dict[str, str]:
    with store.engine.connect() as connection:
        rows = connection.execute(select(requests.c.request_id, requests.c.outcome)).all()
    return {row.request_id: row.outcome for row in rows}


async def test_records_reach_the_store_while_the_gateway_runs(
    journal: Journal, store: Store, open_record: Opens, request_record: Requests
) -> None:
    writer = Writer(journal, store, interval=0.01)
    async with running(writer):
        journal.append(open_record("a"))
        journal.append(request_record("a"))
        journal.append(open_record("b"))
        assert writer.pending == 3
        await until(lambda: writer.pending == 0)
        assert stored(store) == {"a": "ok"}
        journal.append(request_record("b"))
        await until(lambda: writer.pending == 0)
    assert stored(store) == {"a": "ok", "b": "ok"}


async def test_the_store_is_never_touched_on_the_loop(
    journal: Journal, broken: BrokenStore, request_record: Requests
) -> None:
    writer = Writer(journal, broken, interval=0.01)
    async with running(writer):
        journal.append(request_record("a"))
        await until(lambda: writer.pending == 0)
    assert await writer.drain()
    assert broken.threads
    assert threading.get_ident() not in broken.threads


async def test_draining_stores_everything_and_empties_the_journal(
    tmp_path: Path, store: Store, open_record: Opens, request_record: Requests
) -> None:
    journal = Journal(tmp_path / "journal", max_segment=2000)
    for i in range(100):
        journal.append(open_record(f"r{i}"))
        journal.append(request_record(f"r{i}"))
    writer = Writer(journal, store)
    assert await writer.drain()
    journal.close()
    assert len(stored(store)) == 100
    assert (writer.pending, writer.failures, writer.refused, journal.segments()) == (0, 0, 0, [])


async def test_segments_are_removed_while_a_long_request_stays_open(
    tmp_path: Path, store: Store, open_record: Opens, request_record: Requests
) -> None:
    journal = Journal(tmp_path / "journal", max_segment=4 * len(frame(request_record())))
    writer = Writer(journal, store, interval=0.001)
    async with running(writer):
        journal.append(open_record("long"))
        for i in range(40):
            journal.append(open_record(f"r{i}"))
            journal.append(request_record(f"r{i}"))
        await until(lambda: writer.pending == 0 and len(journal.segments()) == 2)
    assert await writer.drain()
    assert (writer.pending, len(journal.segments())) == (0, 2)
    journal.close()
    # As after a kill: the next process finds the long one open.
    again = Journal(tmp_path / "journal")
    assert await Writer(again, store).drain()
    again.close()
    assert stored(store) == {"long": "interrupted", **{f"r{i}": "ok" for i in range(40)}}
    assert again.segments() == []


async def test_a_segment_begun_while_a_round_looks_waits_for_the_next(
    journal: Journal,
    store: Store,
    open_record: Opens,
    request_record: Requests,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listing, more = journal.segments, [request_record("a"), request_record("b")]

    def racing() -> list[Path]:
        if more:
            journal.append(more.pop(0))
            journal.seal()
            journal.append(open_record(f"open{len(more)}"))
        return listing()

    journal.append(open_record("a"))
    monkeypatch.setattr(journal, "segments", racing)
    writer = Writer(journal, store, interval=0.001)
    async with running(writer):
        await until(lambda: not more and writer.pending == 0)
    assert await writer.drain()
    assert (writer.pending, writer.stored) == (0, 5)
    assert stored(store) == {"a": "ok", "b": "ok"}


async def test_what_an_earlier_process_left_is_stored_and_then_removed(
    journal: Journal, store: Store, open_record: Opens, request_record: Requests
) -> None:
    for record in (open_record("a"), open_record("b"), request_record("a")):
        journal.append(record)
    journal.close()
    again = Journal(journal.folder)
    again.append(request_record("new"))
    writer = Writer(again, store)
    assert not writer.recovered
    assert await writer.drain()
    assert writer.recovered
    again.close()
    assert stored(store) == {"a": "ok", "b": "interrupted", "new": "ok"}
    assert again.segments() == []


async def test_a_crash_between_storing_and_removing_repeats_nothing(
    journal: Journal, store: Store, open_record: Opens, request_record: Requests
) -> None:
    for record in (open_record("a"), request_record("a"), open_record("b")):
        journal.append(record)
    journal.close()
    again = Journal(journal.folder)
    store.write(again.recover().records)
    assert await Writer(again, store).drain()
    again.close()
    assert stored(store) == {"a": "ok", "b": "interrupted"}


async def test_a_failing_store_loses_nothing_and_is_tried_again(
    journal: Journal, broken: BrokenStore, request_record: Requests, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gateway.ledger.writer")
    broken.failures_left = 3
    writer = Writer(journal, broken, interval=0.001)
    journal.append(request_record("a"))
    async with running(writer):
        await until(lambda: writer.failures == 2)
        assert writer.pending == 1
        journal.append(request_record("b"))
        await until(lambda: writer.pending == 0)
    assert stored(broken) == {"a": "ok", "b": "ok"}
    assert writer.failures == 3
    assert [record.getMessage() for record in caplog.records] == [
        f"ledger: records stay in the journal for now: {LOCKED}",
        "ledger: the store takes records again",
    ]


async def test_a_store_that_stays_away_leaves_everything_to_the_next_start(
    journal: Journal, broken: BrokenStore, request_record: Requests
) -> None:
    broken.failures_left = 1000
    ticks = iter(range(1000))
    writer = Writer(journal, broken, interval=0.001, clock=lambda: float(next(ticks)))
    journal.append(request_record("a"))
    assert not await writer.drain(timeout=5.0)
    assert writer.pending == 1
    journal.close()
    broken.failures_left = 0
    again = Journal(journal.folder)
    assert await Writer(again, broken).drain()
    again.close()
    assert stored(broken) == {"a": "ok"}


async def test_a_database_locked_by_another_process_is_waited_for(
    journal: Journal, store: Store, sqlite_path: str, request_record: Requests
) -> None:
    other = sqlite3.connect(sqlite_path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    writer = Writer(journal, store, interval=0.01)
    journal.append(request_record("a"))
    async with running(writer):
        await asyncio.sleep(0.05)
        assert writer.pending == 1
        other.execute("ROLLBACK")
        await until(lambda: writer.pending == 0)
    other.close()
    assert stored(store) == {"a": "ok"}


async def test_damage_in_the_journal_is_counted_and_set_aside(
    journal: Journal, store: Store, request_record: Requests, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "abc":
        journal.append(request_record(name))
    damaged = journal.active
    journal.close()
    content = damaged.read_bytes().replace(b'"request",["b"', b'"request",["x"')
    damaged.write_bytes(content)
    again = Journal(journal.folder)
    writer = Writer(again, store)
    assert await writer.drain()
    again.close()
    assert stored(store) == {"a": "ok", "c": "ok"}
    assert writer.unreadable == 1
    assert damaged.with_suffix(".damaged").read_bytes() == content
    assert "1 damaged places" in caplog.text


async def test_damage_in_our_own_segment_is_set_aside_too(
    journal: Journal, store: Store, request_record: Requests
) -> None:
    journal.append(request_record("a"))
    segment = journal.active
    with segment.open("ab") as file:
        file.write(bytes(100) + b"\n")
    journal.append(request_record("b"))
    writer = Writer(journal, store)
    assert await writer.drain()
    assert stored(store) == {"a": "ok", "b": "ok"}
    assert writer.unreadable == 1
    assert segment.with_suffix(".damaged").exists()


async def test_a_record_refused_for_good_is_logged_and_let_go(
    journal: Journal, store: Store, request_record: Requests, caplog: pytest.LogCaptureFixture
) -> None:
    journal.append(request_record("bad", path=None))
    journal.append(request_record("good"))
    writer = Writer(journal, store)
    assert await writer.drain()
    assert (writer.refused, writer.stored) == (1, 1)
    assert "request_id='bad'" in caplog.text
    assert stored(store) == {"good": "ok"}


async def test_what_the_full_disk_never_took_goes_to_the_store_at_the_end(
    journal: Journal, store: Store, request_record: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(line: bytes) -> None:
        raise OSError(28, "No space left on device")

    journal.append(request_record("a"))
    with monkeypatch.context() as patch:
        patch.setattr(journal, "_write", full)
        journal.append(request_record("b"))
        writer = Writer(journal, store)
        assert writer.pending == 2
        assert await writer.drain()
    assert stored(store) == {"a": "ok", "b": "ok"}
    assert writer.pending == 0


async def test_a_writer_cancelled_in_the_middle_of_a_round_can_be_drained(
    journal: Journal, store: Store, sqlite_path: str, request_record: Requests
) -> None:
    other = sqlite3.connect(sqlite_path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    writer = Writer(journal, store, interval=0.001)
    for i in range(50):
        journal.append(request_record(f"r{i}"))
    async with running(writer):
        await asyncio.sleep(0.02)
    other.execute("ROLLBACK")
    other.close()
    assert await writer.drain()
    assert len(stored(store)) == 50
    assert (writer.stored, writer.pending) == (50, 0)


async def test_a_kill_under_load_loses_no_finished_request_on_its_way_to_the_store(
    tmp_path: Path, store: Store, store_url: str, kill_at_random: Killer
) -> None:
    seed = random.randrange(2**32)
    delays, folder = random.Random(seed), tmp_path / "journal"
    opened: set[str] = set()
    finished: set[str] = set()
    for number in range(3):
        more_opened, more_finished = kill_at_random(
            _GATEWAY,
            [str(folder), store_url, str(number)],
            tmp_path / f"said-{number}",
            delays.uniform(0.05, 0.4),
        )
        opened |= more_opened
        finished |= more_finished
    journal = Journal(folder)
    writer = Writer(journal, store)
    assert await writer.drain()
    journal.close()
    found = stored(store)
    assert len(finished) > 100
    assert {name for name in finished if found.get(name) != "ok"} == set(), f"seed {seed}"
    assert {found.get(name) for name in opened} == {"interrupted"}
    assert len([name for name, outcome in found.items() if outcome == "ok" and name not in finished]) <= 3
    assert (writer.unreadable, journal.segments()) == (0, [])
