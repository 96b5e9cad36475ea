"""How a record becomes one line of the journal and back. Knows no file.

A line is `crc32 length payload`, the payload JSON in ASCII on one line, so a damaged stretch never hides the
lines after it. Values stand by position, because writing the names again with every record costs more than
everything else in an append; the first line of each segment says which name stands where, so that another
version can read it. A segment whose first line is damaged is read by this version's own names.
"""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from operator import attrgetter
from typing import Any

from gateway.ledger.records import (
    AttemptRecord,
    EngineSpan,
    OpenRecord,
    PriceRow,
    RateRow,
    Record,
    RequestRecord,
)

_TYPES: dict[str, type[Any]] = {
    "request": RequestRecord,
    "attempt": AttemptRecord,
    "open": OpenRecord,
    "span": EngineSpan,
    "price": PriceRow,
    "rate": RateRow,
}
_TAGS = {cls: tag for tag, cls in _TYPES.items()}
_NAMES: dict[str, tuple[str, ...]] = {tag: tuple(f.name for f in fields(cls)) for tag, cls in _TYPES.items()}
_SCHEMA = "schema"

# What a field that an older version did not write is read as: its default, else None (unknown).
_DEFAULTS: dict[str, dict[str, Any]] = {
    tag: {f.name: None if f.default is MISSING else f.default for f in fields(cls)}
    for tag, cls in _TYPES.items()
}

_values_of: dict[type[Any], Callable[[Any], tuple[Any, ...]]] = {
    cls: attrgetter(*_NAMES[tag]) for cls, tag in _TAGS.items()
}
_ATTEMPTS = _NAMES["request"].index("attempts")
_attempt_values = _values_of[AttemptRecord]
_to_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class BadFrame(ValueError):
    """A line that is not, or no longer, what was written."""


def frame(record: Record) -> bytes:
    """One record as one line, with its end."""
    cls = type(record)
    values: Sequence[Any] = _values_of[cls](record)
    if cls is RequestRecord:
        values = list(values)
        values[_ATTEMPTS] = [_attempt_values(attempt) for attempt in values[_ATTEMPTS]]
    return _line([_TAGS[cls], values])


def header() -> bytes:
    """The first line of a segment: the names of every type's values, in order."""
    return _line([_SCHEMA, _NAMES])


def _line(payload: Sequence[Any]) -> bytes:
    text = _to_json(payload).encode("ascii")
    return b"%08x %d %s\n" % (zlib.crc32(text), len(text), text)


class Decoder:
    """Reads lines of one segment in order; remembers the names that its first line gave."""

    def __init__(self) -> None:
        self._names: Mapping[str, Sequence[str]] = _NAMES

    def read(self, line: bytes) -> Record | None:
        """The record of one line (without its end); None for the line that gives the names. Raises
        BadFrame.
        """
        tag, values = _payload(line)
        if tag == _SCHEMA:
            self._names = values
            return None
        if tag == "attempt" or tag not in _TYPES:
            raise BadFrame(f"unknown kind of record {tag!r}")
        record: Record = self._build(tag, values)
        return record

    def _build(self, tag: str, values: Sequence[Any]) -> Any:
        known = _DEFAULTS[tag]
        named = {name: value for name, value in zip(self._names[tag], values, strict=True) if name in known}
        if tag == "request":
            named["attempts"] = tuple(self._build("attempt", attempt) for attempt in named["attempts"])
            named["flags"] = tuple(named.get("flags", ()))
        return _TYPES[tag](**{**known, **named})


def _payload(line: bytes) -> tuple[str, Any]:
    checksum, _, rest = line.partition(b" ")
    length, _, text = rest.partition(b" ")
    try:
        whole = int(length) == len(text) and int(checksum, 16) == zlib.crc32(text)
    except ValueError as error:
        raise BadFrame("not a line of a journal") from error
    if not whole:
        raise BadFrame("checksum or length differs")
    tag, values = json.loads(text)
    return tag, values
