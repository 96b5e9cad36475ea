"""References to the environment in text values: `${NAME}`, `${NAME:-default}`, `os.environ/NAME`, `$${`.

A variable that is set but empty counts as missing. Never repeats a variable's value in a message.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gateway.config.locate import Loc

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)(\}?)")
_INSIDE = re.compile(rf"({_NAME})(?::-(.*))?", re.DOTALL)
_WHOLE = re.compile(r"os\.environ/(.*)", re.DOTALL)
_SOLE = re.compile(rf"\$\{{{_NAME}\}}|os\.environ/{_NAME}")


class FromEnv(str):
    """A text into which the environment has been put. Messages show `source`, what the file says."""

    source: str

    def __new__(cls, text: str, source: str) -> "FromEnv":
        made = super().__new__(cls, text)
        made.source = source
        return made

    def __repr__(self) -> str:
        return repr(self.source)

    @property
    def is_sole_reference(self) -> bool:
        """Is the value one variable and nothing else, without a default?"""
        return _SOLE.fullmatch(self.source) is not None


@dataclass(slots=True)
class Substituted:
    """A tree with its references replaced, and what went wrong: (where, code, message)."""

    tree: object
    problems: list[tuple[Loc, str, str]] = field(default_factory=list)

    @property
    def failed(self) -> set[Loc]:
        """Places whose value could not be made: what is said of them elsewhere is noise."""
        return {loc for loc, _, _ in self.problems}


def substitute(tree: object, environ: Mapping[str, str]) -> Substituted:
    """Replace every reference in every text value of `tree`; keys are left alone."""
    done = Substituted(None)
    done.tree = _replace(tree, (), environ, done)
    return done


def _replace(value: object, loc: Loc, environ: Mapping[str, str], done: Substituted) -> object:
    if isinstance(value, dict):
        return {key: _replace(inner, (*loc, key), environ, done) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replace(inner, (*loc, place), environ, done) for place, inner in enumerate(value)]
    if isinstance(value, str) and ("${" in value or value.startswith("os.environ/")):
        problems = list(_problems(value, environ))
        done.problems += [(loc, code, message) for code, message in problems]
        return FromEnv("" if problems else _replaced(value, environ), value)
    return value


def _problems(text: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, default in _references(text):
        if name is None:
            yield "env_syntax", "write a reference as ${NAME} or ${NAME:-default}; $${ stands for a plain ${"
        elif default is None and not environ.get(name):
            yield "env_missing", f"environment variable {name} is {'empty' if name in environ else 'not set'}"


def _references(text: str) -> Iterator[tuple[str | None, str | None]]:
    """(name, default) of each reference; the name is None where it is not one."""
    if whole := _WHOLE.fullmatch(text):
        yield (whole[1] if re.fullmatch(_NAME, whole[1]) else None), None
        return
    for match in _REFERENCE.finditer(text):
        if match[1] is not None:
            inside = _INSIDE.fullmatch(match[1]) if match[2] else None
            yield (inside[1], inside[2]) if inside else (None, None)


def _replaced(text: str, environ: Mapping[str, str]) -> str:
    if whole := _WHOLE.fullmatch(text):
        return environ[whole[1]]

    def value(match: re.Match[str]) -> str:
        inside = _INSIDE.fullmatch(match[1]) if match[1] is not None else None
        return "${" if inside is None else environ.get(inside[1]) or inside[2]

    return _REFERENCE.sub(value, text)
