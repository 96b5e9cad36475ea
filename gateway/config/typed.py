"""One YAML file as one dataclass, with every problem on the way as a finding. Knows no particular file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from gateway.config.check import Problem
from gateway.config.derive import InvalidError, build
from gateway.config.document import read
from gateway.config.env import substitute
from gateway.config.explain import explain
from gateway.config.findings import Finding
from gateway.config.locate import Loc, Places

T = TypeVar("T")


@dataclass(slots=True)
class Typed(Generic[T]):
    """What a file holds: as plain values, and as a dataclass where it is valid (else None)."""

    places: Places
    tree: dict[str, object] = field(default_factory=dict)
    value: T | None = None
    findings: list[Finding] = field(default_factory=list)
    failed: set[Loc] = field(default_factory=set)

    def report(self, problems: Iterable[Problem]) -> None:
        """Add problems found between files or values, except where the value itself could not be made."""
        for loc, code, message, level, at_key in problems:
            if loc not in self.failed:
                place = self.places.of_key(loc) if at_key else self.places.of_value(loc)
                self.findings.append(Finding(self.places.file, *place, level, code, message))


def read_as(cls: type[T], path: Path, environ: Mapping[str, str] | None) -> Typed[T]:
    """Read a file as `cls`; relative paths in it start at its folder. No `environ`: references stay text."""
    document = read(path)
    typed: Typed[T] = Typed(document.places, findings=document.findings, failed=document.failed)
    if document.tree is None:
        return typed
    tree = document.tree
    if environ is not None:
        replaced = substitute(tree, environ)
        tree = replaced.tree
        typed.failed |= replaced.failed
        for loc, code, message in replaced.problems:
            typed.findings.append(Finding(str(path), *typed.places.of_value(loc), "error", code, message))
    typed.tree = tree if isinstance(tree, dict) else {}
    try:
        value = build(cls, tree, path.parent)
    except InvalidError as invalid:
        typed.findings += explain(invalid.errors, cls, typed.places, typed.failed)
    else:
        typed.value = value if not typed.findings else None
    return typed
