"""YAML text to plain values with the place of each, by YAML 1.2. Knows nothing of what the keys mean.

Floats stay exact (Decimal, from their spelling), repeated keys are refused, and what has no use in a
configuration (tags, directives, several documents, keys that are not text) is refused too. A message never
repeats a value: it may be a secret.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import accumulate
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.composer import ComposerError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from gateway.config.findings import Finding
from gateway.config.locate import Loc, Place, Places

_LARGEST_FILE = 1024 * 1024
# Far above any real file; aliases could otherwise make a short one grow without end.
_MOST_VALUES = 100_000
_DEEPEST = 40
_MOST_OPEN_BRACKETS = 200
_DIRECTIVE = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*%")
_TAG = "tag:yaml.org,2002:"


@dataclass(slots=True)
class Document:
    """One file's values and places. `tree` is None where nothing could be read; then `findings` says why."""

    places: Places
    tree: object = None
    findings: list[Finding] = field(default_factory=list)
    # Values that a finding already speaks of: what is said of them later is noise.
    failed: set[Loc] = field(default_factory=set)

    def error(self, place: Place, code: str, message: str) -> None:
        """Add an error at a place of this file."""
        self.findings.append(Finding(self.places.file, *place, "error", code, message))


class _RefusedError(Exception):
    """The tree cannot be built; the document already says why."""


def read(path: Path) -> Document:
    """Read and parse one file. Every problem is a finding of the document; nothing is raised."""
    document = Document(Places(str(path)))
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        document.error(Place(1, 1), "unreadable", f"the file cannot be read: {error.strerror}")
        return document
    if len(content) > _LARGEST_FILE:
        document.error(Place(1, 1), "unreadable", "the file is larger than 1 MiB: no configuration is")
        return document
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        document.error(_place_at(content, error.start), "syntax", "the file is not UTF-8 text from here on")
        return document
    return parse(text, str(path))


def parse(text: str, file: str) -> Document:
    """Parse YAML text; `file` is the name that findings carry."""
    document = Document(Places(file))
    if _DIRECTIVE.match(text):
        document.error(
            Place(text[: text.index("%")].count("\n") + 1, 1), "syntax", "YAML directives are not used here"
        )
        return document
    if _brackets_open(text) > _MOST_OPEN_BRACKETS:
        document.error(Place(1, 1), "syntax", "the file is nested too deep")
        return document
    try:
        root = _yaml().compose(text)
    except (YAMLError, RecursionError) as error:
        document.error(*_syntax_problem(error, text))
        return document
    if root is None:
        document.error(Place(1, 1), "syntax", "the file is empty")
        return document
    builder = _Builder(document)
    try:
        document.tree = builder.value(root, ())
    except _RefusedError:
        document.tree = None
    return document


def _brackets_open(text: str) -> int:
    """The most brackets open at once, in quotes or not: the parser takes seconds over thousands of them."""
    steps = (1 if match[0] in "[{" else -1 for match in re.finditer(r"[][{}]", text))
    return max(accumulate(steps), default=0)


def _yaml() -> YAML:
    yaml = YAML(typ="rt", pure=True)
    # YAML 1.2 allows an anchor to be used again; the warning would print the text around it.
    yaml.composer.warn_double_anchors = False
    return yaml


class _Builder:
    """Turns nodes into values, noting places as it goes."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._places = document.places
        self._built = 0

    def value(self, node: Node, loc: Loc) -> object:
        place = self._places.values[loc] = _place(node)
        self._built += 1
        if self._built > _MOST_VALUES or len(loc) > _DEEPEST:
            self._document.error(place, "syntax", "this is nested too deep, or an alias repeats too much")
            raise _RefusedError
        if isinstance(node, MappingNode) and node.tag == _TAG + "map":
            self._places.shapes[loc] = "a mapping"
            return self._mapping(node, loc)
        if isinstance(node, SequenceNode) and node.tag == _TAG + "seq":
            self._places.shapes[loc] = "a list"
            return [self.value(inner, (*loc, number)) for number, inner in enumerate(node.value)]
        if isinstance(node, ScalarNode):
            return self._scalar(node, loc)
        return self._refuse(loc, place, "syntax", "YAML tags are not used here")

    def _mapping(self, node: MappingNode, loc: Loc) -> dict[str, object]:
        built: dict[str, object] = {}
        for key, inner in self._keys(node, loc):
            built[key] = self.value(inner, (*loc, key))
        return built

    def _keys(self, node: MappingNode, loc: Loc) -> Iterator[tuple[str, Node]]:
        """Each key once; the first of a repeated one counts, and the others are errors."""
        first: dict[str, Place] = {}
        for key_node, inner in node.value:
            place = _place(key_node)
            if not isinstance(key_node, ScalarNode) or key_node.tag != _TAG + "str":
                merge = key_node.tag == _TAG + "merge"
                message = "YAML 1.2 has no merge keys" if merge else "a key must be text: quote it"
                self._document.error(place, "wrong_type", message)
                continue
            key = str(key_node.value)
            if key in first:
                self._document.error(
                    place, "duplicate_key", f"{key!r} is here twice: first on line {first[key].line}"
                )
                continue
            first[key] = place
            self._places.keys[*loc, key] = place
            yield key, inner

    def _scalar(self, node: ScalarNode, loc: Loc) -> object:
        spelled = self._places.spellings[loc] = str(node.value)
        kind = str(node.tag).removeprefix(_TAG)
        if spelled == "" and not node.style:
            what = f"{loc[-1]!r}" if loc and isinstance(loc[-1], str) else "this entry"
            message = f"{what} has no value: write one, or take it out"
            return self._refuse(loc, self._places.of_key(loc), "empty_value", message)
        if kind not in _SCALARS:
            return self._refuse(loc, _place(node), "syntax", "YAML tags are not used here")
        try:
            return _SCALARS[kind](spelled)
        except (ValueError, InvalidOperation):
            return self._refuse(loc, _place(node), "bad_value", "this number cannot be used")

    def _refuse(self, loc: Loc, place: Place, code: str, message: str) -> object:
        """Report a value that cannot be taken; None stands in for it."""
        self._document.error(place, code, message)
        self._document.failed.add(loc)
        return None


def _whole_number(text: str) -> int:
    digits = text.replace("_", "")
    prefix = digits.lstrip("+-")[:2]
    return int(digits, 16 if prefix == "0x" else 8 if prefix == "0o" else 10)


def _exact_number(text: str) -> Decimal:
    special = text.lower().lstrip("+-")
    return Decimal("NaN" if special in (".inf", ".nan") else text.replace("_", ""))


# Dates are text here: YAML 1.2 has no dates, and a field that wants one reads it itself.
_SCALARS: dict[str, Callable[[str], object]] = {
    "str": str,
    "timestamp": str,
    "int": _whole_number,
    "float": _exact_number,
    "bool": lambda text: text.lower() == "true",
    "null": lambda text: None,
}


def _syntax_problem(error: Exception, text: str) -> tuple[Place, str, str]:
    if isinstance(error, ComposerError) and "another document" in str(error.problem):
        return _mark_place(error, text), "syntax", "a second document begins here: one file is one document"
    if isinstance(error, ComposerError):
        return (
            _mark_place(error, text),
            "syntax",
            "this alias names no anchor: quote the text if it is no alias",
        )
    if isinstance(error, MarkedYAMLError):
        return _mark_place(error, text), "syntax", _clear(error)
    if isinstance(error, RecursionError):
        return Place(1, 1), "syntax", "the file is nested too deep"
    position = getattr(error, "position", None)
    place = (
        _place_at(text.encode(), len(text[:position].encode())) if isinstance(position, int) else Place(1, 1)
    )
    return place, "syntax", "YAML does not allow this character"


def _clear(error: MarkedYAMLError) -> str:
    """One sentence. The parser quotes what it found: only short pieces and its own words are passed on."""
    problem = str(error.problem or error.context or "cannot be read as YAML")
    if "'\\t'" in problem:
        return "a tab where YAML wants spaces: indent with spaces"
    problem = re.sub(
        r"'([^']*)'", lambda m: m[0] if len(m[1]) < 3 or m[1].startswith("<") else "this", problem
    )
    if not error.context or not error.context_mark:
        return f"this is not YAML: {problem}"
    return f"this is not YAML: {problem}, {error.context} from line {error.context_mark.line + 1}"


def _mark_place(error: MarkedYAMLError, text: str) -> Place:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return Place(1, 1)
    # The end of a file that ends in a newline is a line that no editor shows.
    last = max(1, len(text.splitlines()))
    return (
        Place(mark.line + 1, mark.column + 1)
        if mark.line < last
        else Place(last, len(text.splitlines()[-1]) + 1)
    )


def _place(node: Node) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)


def _place_at(content: bytes, offset: int) -> Place:
    before = content[:offset]
    line_start = before.rfind(b"\n") + 1
    return Place(before.count(b"\n") + 1, len(before[line_start:].decode("utf-8", "replace")) + 1)
