"""Follows the boot logs of engines, as far as needed to say: starting, failed, serving. Knows files; reads no
meaning.

A log is read from at most a megabyte before its end, then what is added; one that shrank or was replaced is a
new start."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gateway.fleet.health import BootSign
from gateway.fleet.registry import Registry
from gateway.vllm.bootlog import BootLogReader

_INTERVAL = 1.0
_MOST_BYTES = 1024 * 1024
# Loading weights over a network is the longest silence of a start; after a quarter of an hour it has died.
_LONGEST_SILENCE = 900.0


@dataclass(slots=True)
class _Followed:
    path: Path
    reader: BootLogReader = field(default_factory=BootLogReader)
    inode: int | None = None
    offset: int = 0
    rest: bytes = b""
    # Monotonic seconds; None where nothing is to be expected of it.
    grown_at: float | None = None


class BootWatcher:
    """All boot logs of a gateway's engines."""

    def __init__(
        self,
        registry: Registry,
        logs: Mapping[str, Path],
        clock: Callable[[], float],
        interval: float = _INTERVAL,
    ) -> None:
        """`interval`: seconds between looks."""
        self._registry, self._clock, self._interval = registry, clock, interval
        self._followed = {name: _Followed(path) for name, path in logs.items()}

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self._interval)

    async def look(self) -> None:
        """Read what was added to each log, off the event loop, and tell the registry what it means."""
        for name, followed in self._followed.items():
            if self._registry.is_up(name):
                # It serves: whatever its log said of an earlier start is over.
                followed.reader = BootLogReader()
            if await asyncio.to_thread(_read_added, followed):
                followed.grown_at = self._clock()
            elif followed.grown_at is None or self._clock() - followed.grown_at < _LONGEST_SILENCE:
                continue
            else:
                # A start that has written nothing for so long is no start any more.
                followed.reader, followed.grown_at = BootLogReader(), None
            reader = followed.reader
            cause = reader.failure.text if reader.failure else None
            self._registry.on_boot_sign(name, _sign(reader), cause)


def _sign(reader: BootLogReader) -> BootSign:
    if reader.failure is not None:
        return BootSign.FAILED
    if reader.serving:
        return BootSign.SERVING
    return BootSign.STARTING if reader.started else BootSign.NONE


def _read_added(followed: _Followed) -> bool:
    """True where there was something new. A log that cannot be read says nothing."""
    try:
        return _read(followed)
    except OSError:
        return False


def _read(followed: _Followed) -> bool:
    found = followed.path.stat()
    if followed.inode != found.st_ino or found.st_size < followed.offset:
        followed.reader, followed.rest = BootLogReader(), b""
        followed.inode, followed.offset = found.st_ino, max(0, found.st_size - _MOST_BYTES)
    if found.st_size == followed.offset:
        return False
    with followed.path.open("rb") as log:
        log.seek(followed.offset)
        data = followed.rest + log.read(_MOST_BYTES)
        followed.offset = log.tell()
    *lines, followed.rest = data.split(b"\n")
    followed.reader.feed([line.decode("utf-8", "replace") for line in lines])
    return bool(lines)
