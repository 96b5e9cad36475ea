"""What is wrong with a configuration, and where. Knows no file format and prints nothing.

ConfigErrors    raised by whoever needs a valid configuration; carries every finding, not the first
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

Level = Literal["error", "warning"]

# Every code a finding may carry, and what it stands for. The reference page is made from this.
CODES: dict[str, str] = {
    "unreadable": "a file or folder cannot be read",
    "syntax": "not YAML, or a part of YAML that has no place in a configuration",
    "duplicate_key": "one key twice in one mapping",
    "empty_value": "a key with nothing after its colon",
    "unknown_key": "a key that does not exist there",
    "missing_key": "a key that must be there",
    "wrong_type": "a number where text belongs, a list where a mapping belongs, and so on",
    "bad_value": "the right type, but not a value that can be used",
    "env_missing": "an environment variable that is not set, or is empty",
    "env_syntax": "a reference to the environment that is not written right",
    "literal_secret": "a secret in the file: secrets come from the environment only",
    "unknown_name": "an engine, endpoint, policy or client key that is not defined",
    "duplicate_name": "a name, address or key that is defined twice",
    "alias_taken": "an alias that is also another model's name or alias",
    "no_target": "a model that nothing could ever serve",
    "dead_overflow": "an overflow that no request could ever take",
    "contradiction": "two settings that cannot both hold",
    "open_listen": "an address that others can reach, and no client keys",
    "unused": "something defined that nothing uses",
    "name_differs": "a policy whose name is not its file's name",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem at one place; line and column count from 1. The message never holds a secret's value."""

    file: str
    line: int
    column: int
    level: Level
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.level}: {self.message} [{self.code}]"


class ConfigErrors(Exception):  # noqa: N818 -- it is a list of errors, and the rooms share its name
    """The configuration cannot be used. `findings` has every problem, warnings included."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = tuple(findings)


def nearest(name: str, known: Iterable[str]) -> str:
    """`; nearest known name: 'x'`, or nothing where no known name is near."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; nearest known name: {close[0]!r}" if close else ""
