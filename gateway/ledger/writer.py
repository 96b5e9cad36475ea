"""Moves records from the journal into the store, off the event loop, and forgets them only when the store has
them.

Each round reads what the journal's segments have gained, writes it in small transactions, and compacts the
segments that are complete. Whatever happens in between (a kill, a locked or full database), the records are
still in the journal and are written again: writing twice is harmless, see store.py.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from gateway.ledger.errors import StoreUnavailable
from gateway.ledger.journal import Journal
from gateway.ledger.records import Record
from gateway.ledger.segments import OpenRequests, SegmentReader, recovering
from gateway.ledger.store import Store

_log = logging.getLogger(__name__)

_LONGEST_WAIT = 10.0


class Writer:
    """Counters: `stored` records, `failures` of the store, `refused` by it for good, `unreadable` stretches
    of journal.
    """

    def __init__(
        self,
        journal: Journal,
        store: Store,
        interval: float = 0.25,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`interval`: seconds between rounds; after a failure the wait doubles, up to 10 s."""
        self._journal, self._store, self._interval, self._clock = journal, store, interval, clock
        self._round = threading.Lock()
        self._open = OpenRequests()
        self._reader: SegmentReader | None = None
        # The last segment that is stored and compacted; only later ones have anything new.
        self._done: Path | None = None
        self._damage = 0
        self._recovered = False
        self._failing = 0
        self._read = 0
        self.stored = self.failures = self.refused = self.unreadable = 0

    @property
    def pending(self) -> int:
        """Records of this process that the store does not have yet, those waiting for the journal's disk
        included.
        """
        return self._journal.appended - self._read + self._journal.spilled

    @property
    def recovered(self) -> bool:
        """Has everything that earlier processes left been stored?"""
        return self._recovered

    async def run(self) -> None:
        """Round after round until cancelled. Call `drain` afterwards."""
        while True:
            self._journal.flush()
            await asyncio.to_thread(self.move_now)
            await asyncio.sleep(min(self._interval * 2**self._failing, _LONGEST_WAIT))

    async def drain(self, timeout: float = 10.0) -> bool:
        """Store everything now and empty the journal; at most `timeout` seconds plus the database's own time
        limit.

        False where the store would not take it: it stays in the journal for the next start. No record may be
        appended any more.
        """
        deadline = self._clock() + timeout
        self._journal.flush()
        self._journal.seal()
        while not await asyncio.to_thread(self._store_all):
            if self._clock() >= deadline:
                _log.warning(
                    "ledger: stopped with %d records not in the store: %d stay in the journal, %d are lost",
                    self.pending, self.pending - self._journal.spilled, self._journal.spilled,
                )  # fmt: skip
                return False
            await asyncio.sleep(self._interval)
        return True

    def _store_all(self) -> bool:
        """The last round: what the journal's full disk never took goes to the store directly."""
        if not self.move_now():
            return False
        with self._round:
            try:
                self._write(self._journal.spilled_records())
            except StoreUnavailable:
                return False
            self._journal.forget_spilled()
        return True

    def move_now(self) -> bool:
        """One round in a worker thread; False where the store failed. A round left over from a cancelled
        `run` ends first.
        """
        with self._round:
            try:
                self._move()
            except (StoreUnavailable, OSError) as error:
                self.failures += 1
                if not self._failing:
                    _log.warning("ledger: records stay in the journal for now: %s", error)
                self._failing = min(self._failing + 1, 16)
                return False
        if self._failing:
            _log.info("ledger: the store takes records again")
            self._failing = 0
        return True

    def _move(self) -> None:
        if not self._recovered:
            self._recover()
        # Asked before the list is read: a segment that is complete now gets no more records.
        active = self._journal.active
        for path in self._journal.segments():
            if path in self._journal.leftovers or (self._done is not None and path <= self._done):
                continue
            self._move_segment(path, final=path < active)
            if path >= active:
                # A segment begun since then waits for the next round, when this one is complete.
                return

    def _recover(self) -> None:
        rows = unreadable = interrupted = 0
        leftovers = [path for path in self._journal.leftovers if path.exists()]
        damaged = set()
        for part in recovering(leftovers):
            rows += len(part.records)
            unreadable += part.unreadable
            interrupted += sum(getattr(record, "outcome", None) == "interrupted" for record in part.records)
            if part.path is not None and part.unreadable:
                damaged.add(part.path)
            self._write(part.records)
        for path in damaged:
            self._journal.set_aside(path)
        for path in leftovers:
            path.unlink()
        self._recovered = True
        self.unreadable += unreadable
        if rows or unreadable:
            _log.log(
                logging.WARNING if unreadable else logging.INFO,
                "ledger: recovered %d records of an earlier run, %d interrupted; %d damaged places skipped",
                rows, interrupted, unreadable,
            )  # fmt: skip

    def _move_segment(self, path: Path, *, final: bool) -> None:
        if self._reader is None or self._reader.path != path:
            self._reader, self._damage = SegmentReader(path), 0
        reader = self._reader
        while (chunk := reader.next_chunk(final=final)) is not None:
            self._write(chunk.records)
            # Only now: had the store failed, the next round would read this chunk again.
            reader.offset = chunk.end
            self._open.see(chunk.records)
            self._read += len(chunk.records)
            self._damage += chunk.unreadable
            self.unreadable += chunk.unreadable
        if final:
            if self._damage:
                self._journal.set_aside(path)
            self._journal.compact(path, self._open.records())
            self._done = path

    def _write(self, records: list[Record]) -> None:
        refused = self._store.write(records) if records else []
        for record in refused:
            _log.error("ledger: the store refuses this record for good: %s", record)
        self.refused += len(refused)
        self.stored += len(records) - len(refused)
