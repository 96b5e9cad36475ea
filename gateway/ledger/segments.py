"""Reading a journal's files back: chunk by chunk, past damage, and which requests were still open. Writes
nothing.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from gateway.ledger.frames import BadFrame, Decoder
from gateway.ledger.records import OpenRecord, Record, RequestRecord

# Small enough that one transaction of these records never holds the interpreter for long.
CHUNK_BYTES = 256 * 1024


class Chunk(NamedTuple):
    """Records of one stretch of a file that ends at offset `end`, and how many damaged stretches lay in
    it.
    """

    records: list[Record]
    unreadable: int
    end: int


class Part(NamedTuple):
    """What is to be stored of one stretch of an earlier process's journal; no path for what it left open."""

    path: Path | None
    records: list[Record]
    unreadable: int


class SegmentReader:
    """Reads one segment from where it was last told it may go on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self._decoder = Decoder()

    def next_chunk(self, *, final: bool) -> Chunk | None:
        """The next complete lines; None where there are none. Set `offset` to the chunk's end to go past it.

        `final`: nothing more will be appended, so an unfinished last line is damage; else it is still being
        written.
        """
        stretch, at_end = self._stretch()
        whole = stretch.rfind(b"\n") + 1
        torn = len(stretch) - whole if final and at_end else 0
        if not whole and not torn:
            return None
        records, unreadable = self._decode(stretch[:whole])
        return Chunk(records, unreadable + bool(torn), self.offset + whole + torn)

    def _stretch(self) -> tuple[bytes, bool]:
        """Bytes from the offset on, as many as hold a line end, and whether they reach the file's end."""
        wanted = CHUNK_BYTES
        with self.path.open("rb") as file:
            file.seek(self.offset)
            stretch = file.read(wanted)
            while len(stretch) == wanted and b"\n" not in stretch:
                stretch += file.read(wanted)
                wanted *= 2
        return stretch, len(stretch) < wanted

    def _decode(self, lines: bytes) -> tuple[list[Record], int]:
        records: list[Record] = []
        unreadable = 0
        for line in lines.split(b"\n")[:-1]:
            try:
                record = self._decoder.read(line)
            except (BadFrame, ValueError, KeyError, TypeError):
                # ValueError, KeyError, TypeError: whole lines of a version whose names or values this one
                # cannot place.
                unreadable += 1
            else:
                if record is not None:
                    records.append(record)
        return records, unreadable


class OpenRequests:
    """Requests whose opening has been read and whose close has not."""

    def __init__(self) -> None:
        self._open: dict[str, OpenRecord] = {}

    def __len__(self) -> int:
        return len(self._open)

    def see(self, records: Iterable[Record]) -> None:
        """Records in the order in which they were written."""
        for record in records:
            if isinstance(record, OpenRecord):
                self._open[record.request_id] = record
            elif isinstance(record, RequestRecord):
                self._open.pop(record.request_id, None)

    def records(self) -> list[OpenRecord]:
        """Those still open, oldest first."""
        return list(self._open.values())

    def interrupted(self) -> list[Record]:
        """Their closing records, if the process that had them open is gone."""
        return [interrupted(record) for record in self._open.values()]


def recovering(paths: Iterable[Path]) -> Iterator[Part]:
    """All records of these segments (oldest first) chunk by chunk; last, the close of every request left
    open.
    """
    opened = OpenRequests()
    for path in paths:
        reader = SegmentReader(path)
        while (chunk := reader.next_chunk(final=True)) is not None:
            reader.offset = chunk.end
            opened.see(chunk.records)
            yield Part(path, [r for r in chunk.records if not isinstance(r, OpenRecord)], chunk.unreadable)
    yield Part(None, opened.interrupted(), 0)


def interrupted(record: OpenRecord) -> RequestRecord:
    """The close of a request whose gateway died: everything that only its end could have told is unknown."""
    return RequestRecord(
        request_id=record.request_id,
        t_in=record.t_in,
        key=record.key,
        tags=record.tags,
        path=record.path,
        requested_model=record.requested_model,
        model=record.model,
        policy=record.policy,
        stream=record.stream,
        route=None,
        target=None,
        reason=None,
        outcome="interrupted",
        status=None,
        attempts=(),
        prompt_tokens=None,
        cached_tokens=None,
        completion_tokens=None,
        reasoning_tokens=None,
        usage_source="none",
        cash_marginal=None,
        standard=None,
        work_units_milli=None,
        weight_set=None,
        price_id=None,
        price_source=None,
        alternative_route=None,
        alternative_target=None,
        alternative_kind=None,
        alternative_cash=None,
        alternative_standard=None,
        alternative_low=None,
        equivalent=None,
        ttft_ms=None,
        duration_ms=None,
        overhead_ms=None,
    )
