"""Client keys: only their hashes are kept, and finding one takes the same time whichever it is.

Knows the keys file and nothing of requests; who may do what with a key is in its entry.
"""

import fcntl
import hashlib
import hmac
import os
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

from annotated_types import doc
from ruamel.yaml import YAML

from gateway.config.check import Problem
from gateway.config.findings import ConfigErrors
from gateway.config.schema import Matches, Name
from gateway.config.typed import Typed, read_as

_PREFIX = "sg-"
_HEADER = (
    "# Client keys, hashed. A lost key cannot be read back, only revoked: see `spillgate keys`.\nkeys: []\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEntry:
    """One client key."""

    name: Annotated[Name, doc("whose it is: shown in reports")]
    hash: Annotated[
        str,
        Matches(
            "sha256:[0-9a-f]{64}",
            "takes sha256: and 64 hex digits, as `spillgate keys add` writes it",
            hidden=True,
        ),
        doc("SHA-256 of the key"),
    ]
    created: Annotated[date | None, doc("day it was made")] = None
    expires: Annotated[date | None, doc("last day (UTC) on which it is accepted")] = None
    policy: Annotated[str | None, doc("policy for its requests, in place of the model's")] = None
    show_costs: Annotated[bool, doc("whether its answers carry cost headers")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysFile:
    """The top of a keys file."""

    keys: Annotated[tuple[KeyEntry, ...], doc("one entry per key")]


def today_utc() -> date:
    """The day by which keys expire."""
    return datetime.now(UTC).date()


class KeyRing:
    """Every key that may come in. `today` is asked at each look-up: keys expire while the gateway runs."""

    def __init__(self, entries: Iterable[KeyEntry], today: Callable[[], date] = today_utc) -> None:
        self.entries = tuple(entries)
        self._today = today
        self._digests = tuple((bytes.fromhex(e.hash.removeprefix("sha256:")), e) for e in self.entries)

    @classmethod
    def load(cls, path: Path, today: Callable[[], date] = today_utc) -> "KeyRing":
        """Read a keys file. Raises ConfigErrors, also where there is no file: no file never means no lock."""
        file = read_keys(path)
        if file.value is None:
            raise ConfigErrors(file.findings)
        return cls(file.value.keys, today)

    def find(self, presented: bytes | str) -> KeyEntry | None:
        """The entry of a presented key; None once it has expired, and for any other text of any length.

        Both sides are hashed to one length, and every entry is compared, so that time tells nothing.
        """
        digest = hashlib.sha256(_as_bytes(presented)).digest()
        found: KeyEntry | None = None
        for known, entry in self._digests:
            if hmac.compare_digest(known, digest):
                found = entry
        if found is None or (found.expires is not None and self._today() > found.expires):
            return None
        return found


def read_keys(path: Path) -> Typed[KeysFile]:
    """Read a keys file with every problem in it."""
    file = read_as(KeysFile, path, environ=None)
    if file.value is not None:
        file.report(_repeated(file.value.keys))
        file.value = None if file.findings else file.value
    return file


def generate() -> str:
    """A new key: 256 random bits."""
    return _PREFIX + secrets.token_urlsafe(32)


def hash_of(key: bytes | str) -> str:
    """What the file keeps of a key. Keys are long and random: a slow hash would cost time and add nothing."""
    return "sha256:" + hashlib.sha256(_as_bytes(key)).hexdigest()


def add_key(path: Path, entry: KeyEntry) -> None:
    """Add an entry, making the file if need be. Raises ConfigErrors, and ValueError for a name in use."""
    with _locked(path.parent):
        names = [e.name for e in KeyRing.load(path).entries] if path.exists() else []
        if entry.name in names:
            raise ValueError(f"a key named {entry.name!r} exists: revoke it first, or take another name")
        content = _round_trip().load(path.read_text("utf-8") if path.exists() else _HEADER)
        content["keys"].fa.set_block_style()
        content["keys"].append(_written(entry))
        _replace(path, content)


def revoke_key(path: Path, name: str) -> bool:
    """Take an entry out; False where no key has that name. Raises ConfigErrors."""
    with _locked(path.parent):
        names = [e.name for e in KeyRing.load(path).entries]
        if name not in names:
            return False
        content = _round_trip().load(path.read_text("utf-8"))
        del content["keys"][names.index(name)]
        _replace(path, content)
        return True


def _repeated(entries: tuple[KeyEntry, ...]) -> Iterator[Problem]:
    names: set[str] = set()
    hashes: set[str] = set()
    for number, entry in enumerate(entries):
        if entry.name in names:
            yield Problem(("keys", number, "name"), "duplicate_name", f"another key is named {entry.name!r}")
        if entry.hash in hashes:
            yield Problem(("keys", number, "hash"), "duplicate_name", "another entry has this key")
        names.add(entry.name)
        hashes.add(entry.hash)


def _as_bytes(key: bytes | str) -> bytes:
    return key if isinstance(key, bytes) else key.encode("utf-8", "surrogatepass")


def _written(entry: KeyEntry) -> dict[str, Any]:
    """An entry as YAML: keys in order, defaults left out."""
    return {key: value for key, value in asdict(entry).items() if value not in (None, False)}


def _round_trip() -> YAML:
    yaml = YAML(typ="rt", pure=True)
    yaml.width = 200
    return yaml


def _replace(path: Path, content: object) -> None:
    """Swap the file in one step: a reader sees the old one or the new one, and a crash leaves no half."""
    path = path.resolve()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        # mkstemp made it with mode 0600.
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            _round_trip().dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Only one writer in a folder at a time: of two that add a key at once, neither may lose its own."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
