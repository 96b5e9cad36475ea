"""The journal: where a record becomes durable before its request goes on. Knows files; knows no database.

One record is one `write` of one line to a file opened for appending. What the kernel has taken outlives a
kill of this process; `sync=True` also makes it outlive the machine, for the price of a disk flush per record.
Files are segments that are read, stored and removed from the oldest on (see writer.py). A process never
appends to a segment of an earlier one, whose last line may be torn.

Writing belongs to one thread, the event loop's. The writer's thread only reads, and removes what is complete
(`segments`, `compact`, `set_aside`).
"""

import errno
import fcntl
import os
import shutil
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from gateway.ledger.errors import JournalFull, JournalInUse
from gateway.ledger.frames import Decoder, frame, header
from gateway.ledger.records import OpenRecord, Record, Recovered
from gateway.ledger.segments import recovering

_LOCK = "lock"
_SEGMENT = "segment-*.log"
_NEW = ".new"
_MODE = 0o600


class Journal:
    """Appends records to a folder that it alone writes to.

    When the disk takes no more, records wait in memory (`spilled`, at most `max_spilled`; beyond that they
    are counted as `lost`) and are written, in order, before the next one that fits. `required=True` refuses
    instead to open a request whose opening record is not durable: `append` then raises JournalFull for
    OpenRecords, and for them only, since what a request has already cost must not be forgotten.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_segment: int = 8 * 1024 * 1024,
        sync: bool = False,
        required: bool = False,
        max_spilled: int = 10_000,
    ) -> None:
        """Create the folder and take it. Raises JournalInUse while another process has it, OSError on no
        access.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._lock = _take(folder)
        self._max_segment, self._max_spilled = max_segment, max_spilled
        self._sync, self._required = sync, required
        self._spilled: deque[bytes] = deque()
        self.appended = 0
        self.lost = 0
        for unfinished in folder.glob(f"*{_NEW}"):
            unfinished.unlink()
        self.leftovers = tuple(self.segments())
        self._number = _number(self.leftovers[-1]) if self.leftovers else 0
        self._fd = -1
        self._size = 0
        self._empty, self._torn = True, False
        self._open_next()

    @property
    def spilled(self) -> int:
        """Records that wait in memory for the disk."""
        return len(self._spilled)

    @property
    def active(self) -> Path:
        """The segment that is being appended to; all others are complete."""
        return self._path(self._number)

    def append(self, record: Record) -> None:
        """Make one record durable. On a full disk: see the class."""
        line = frame(record)
        try:
            if self._spilled:
                self._write_spilled()
            self._write(line)
        except OSError as error:
            if self._required and isinstance(record, OpenRecord):
                raise JournalFull(f"the journal in {self.folder} takes no more: {error.strerror}") from error
            self._spill(line)

    def flush(self) -> bool:
        """Try again to write what waits in memory; True where nothing waits any more."""
        try:
            self._write_spilled()
        except OSError:
            return False
        return True

    def seal(self) -> None:
        """Begin a new segment, so that the one so far is complete and can be removed once stored."""
        if not self._empty:
            self._rotate()

    def spilled_records(self) -> list[Record]:
        """The records that wait in memory, oldest first."""
        decoder = Decoder()
        return [record for line in self._spilled if (record := decoder.read(line.rstrip(b"\n"))) is not None]

    def forget_spilled(self) -> None:
        """They are durable elsewhere."""
        self._spilled.clear()

    def recover(self) -> Recovered:
        """Everything that earlier processes left, read in order; requests left open are closed as
        `interrupted`.

        Reads only, and may be repeated. The writer does the same in pieces.
        """
        recovered = Recovered()
        for part in recovering(self.leftovers):
            recovered.records.extend(part.records)
            recovered.unreadable += part.unreadable
        return recovered

    def segments(self) -> list[Path]:
        """All segments there are, oldest first."""
        return sorted(self.folder.glob(_SEGMENT), key=_number)

    def compact(self, path: Path, still_open: Iterable[Record]) -> None:
        """Forget all up to and including this complete segment, but for the requests still open at its end.

        Their opening records take the segment's place in one rename: a process killed at any point leaves
        either all or only what has been stored.
        """
        lines = [frame(record) for record in still_open]
        if lines:
            _replace(path, header() + b"".join(lines))
        for older in self.segments():
            if _number(older) < _number(path) or (older == path and not lines):
                older.unlink()

    def set_aside(self, path: Path) -> None:
        """Keep a damaged segment for a person to look at, where nothing reads it again."""
        shutil.copyfile(path, path.with_suffix(".damaged"))

    def close(self) -> None:
        """Give the folder back. An empty segment goes; anything else waits for the next process."""
        if self._fd < 0:
            return
        self.flush()
        os.close(self._fd)
        self._fd = -1
        if self._empty:
            self.active.unlink(missing_ok=True)
        os.close(self._lock)

    def _write(self, line: bytes) -> None:
        if self._size + len(line) > self._max_segment and not self._empty:
            self._rotate()
        whole = b"\n" + line if self._torn else line
        if os.write(self._fd, whole) != len(whole):
            self._undo()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size += len(whole)
        self._empty = self._torn = False
        self.appended += 1
        if self._sync:
            os.fdatasync(self._fd)

    def _undo(self) -> None:
        """Take back a line of which only a part was written; where that fails too, the next one starts a new
        line.
        """
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            self._torn = True

    def _rotate(self) -> None:
        """Go on in a new segment, or in this one where no file can be opened (no descriptors left)."""
        try:
            self._open_next()
        except OSError:
            return

    def _open_next(self) -> None:
        number = self._number + 1
        fd = os.open(self._path(number), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, _MODE)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._number, self._size = fd, number, _begin(fd)
        self._empty, self._torn = True, False

    def _write_spilled(self) -> None:
        while self._spilled:
            self._write(self._spilled[0])
            self._spilled.popleft()

    def _spill(self, line: bytes) -> None:
        if len(self._spilled) < self._max_spilled:
            self._spilled.append(line)
        else:
            self.lost += 1

    def _path(self, number: int) -> Path:
        return self.folder / f"segment-{number:012d}.log"


def _number(path: Path) -> int:
    return int(path.stem.partition("-")[2])


def _begin(fd: int) -> int:
    """Write a segment's first line; the size it has then. On a full disk it goes without: see frames.py."""
    first = header()
    try:
        if os.write(fd, first) == len(first):
            return len(first)
        os.ftruncate(fd, 0)
    except OSError:
        pass
    return os.fstat(fd).st_size


def _replace(path: Path, content: bytes) -> None:
    """Put content in a file's place at once. Flushed first: the rename must not outlive what it names."""
    new = path.with_suffix(_NEW)
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fdatasync(file.fileno())
    new.replace(path)


def _take(folder: Path) -> int:
    """Lock the folder for as long as this process lives; the kernel gives it back when it dies."""
    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, _MODE)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(fd, 32).decode("ascii", "replace").strip()
        os.close(fd)
        raise JournalInUse(
            f"another gateway (process {holder or 'unknown'}) writes to the journal in {folder}: "
            "stop it, or give this one a ledger of its own"
        ) from error
    os.ftruncate(fd, 0)
    os.write(fd, b"%d\n" % os.getpid())
    return fd
