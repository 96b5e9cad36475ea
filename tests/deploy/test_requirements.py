"""Locked requirements: complete, hashed, the same versions everywhere, and bound to no package index."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted(ROOT.glob("requirements*.txt"))


def name_of(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0].lower())


def wanted(path: Path) -> set[str]:
    """Names in an .in file, and in those that it includes."""
    names: set[str] = set()
    for line in path.read_text().split("\n"):
        if line.startswith("-r "):
            names |= wanted(path.parent / line.removeprefix("-r "))
        elif line.strip():
            names.add(name_of(line.strip()))
    return names


def locked(path: Path) -> dict[str, str]:
    """Name -> version."""
    return {name_of(n): v for n, v in re.findall(r"^([\w.-]+)==([\w.]+) \\$", path.read_text(), re.MULTILINE)}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_requirement_has_hashes_and_no_place(lock: Path) -> None:
    text = lock.read_text()
    entries = re.split(r"^(?=\S)", re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
    entries = [entry for entry in entries if entry.strip()]
    assert len(entries) == len(locked(lock)) > 0
    for entry in entries:
        assert "--hash=sha256:" in entry, entry.split()[0]
    assert not re.search(r"://|index-url|find-links|@ ", text)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_holds_all_that_its_source_names(lock: Path) -> None:
    assert wanted(lock.with_suffix(".in")) <= locked(lock).keys()


def test_locks_agree_on_versions() -> None:
    dev = locked(ROOT / "requirements-dev.txt")
    for lock in LOCKS:
        assert {n: v for n, v in locked(lock).items() if dev.get(n) != v} == {}, lock.name


def test_every_source_has_its_lock() -> None:
    assert {path.stem for path in ROOT.glob("requirements*.in")} == {lock.stem for lock in LOCKS}


def test_the_optional_driver_is_the_one_that_the_ledger_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"] == {"postgresql": ["psycopg[binary]"]}
