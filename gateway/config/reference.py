"""The tables of docs/configuration.md, made from the config types, so that page and program cannot differ.

`python -m gateway.config.reference docs/configuration.md` renews the page. Knows no particular key.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from annotated_types import DocInfo, Ge, Gt, Le

from gateway.config.findings import CODES
from gateway.config.hints import Hint, Known, keys_of, unwrap
from gateway.config.keys import KeysFile
from gateway.config.scalars import default_text
from gateway.config.schema import DatabaseUrl, HttpUrl, Money, SpillgateFile
from gateway.config.secret import Secret
from gateway.routing.policy import Policy
from gateway.routing.units import Unit

_WORDS: Mapping[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    Path: "path",
    date: "day, `YYYY-MM-DD`",
    Secret: "`${NAME}`",
    Unit.SECONDS: "duration",
    Unit.BYTES: "size",
}


def tables() -> Mapping[str, str]:
    """Name of each generated part of the page -> its text."""
    return {
        "file": _tables(SpillgateFile, "spillgate.yaml"),
        "policy": _tables(Policy, "A policy file"),
        "keys": _tables(KeysFile, "The keys file"),
        "codes": "\n".join(
            ["| code | means |", "|---|---|", *(f"| `{c}` | {m} |" for c, m in CODES.items())]
        ),
    }


def renewed(page: str) -> str:
    """The page with its generated parts made anew."""
    return filled(page, tables())


def filled(page: str, parts: Mapping[str, str]) -> str:
    """The page with `parts` put between `<!-- begin NAME -->` and `<!-- end NAME -->`. Raises ValueError."""
    for name, text in parts.items():
        before, begin, rest = page.partition(f"<!-- begin {name} -->")
        _, end, after = rest.partition(f"<!-- end {name} -->")
        if not begin or not end:
            raise ValueError(f"the page has no part named {name!r}")
        page = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    return page


def _tables(cls: type, title: str) -> str:
    return "\n\n".join(_table(path or title, each) for path, each in _mappings(cls, ""))


def _mappings(cls: type, path: str) -> Iterator[tuple[str, type]]:
    """A mapping and those within it, with their paths: `engines[].cost`."""
    yield path, cls
    for key, known in keys_of(cls).items():
        inner = unwrap(known.hint.inner) if known.hint.base is tuple else known.hint
        if is_dataclass(inner.base):
            step = f"{key}[]" if known.hint.base is tuple else key
            yield from _mappings(_class(inner), f"{path}.{step}" if path else step)


def _class(hint: Hint) -> type:
    found: type = hint.base
    return found


def _table(title: str, cls: type) -> str:
    known = keys_of(cls)
    with_meaning = any(k.hint.mark(DocInfo) for k in known.values())
    columns = ["key", "takes", "default", *(["meaning"] if with_meaning else [])]
    rows = [_row(key, each)[: len(columns)] for key, each in known.items()]
    lines = [columns, ["---"] * len(columns), *rows]
    heading = f"`{title}`" if " " not in title else title
    about = " ".join((cls.__doc__ or "").split())
    return "\n".join([f"### {heading}", "", about, "", *("| " + " | ".join(cells) + " |" for cells in lines)])


def _row(key: str, known: Known) -> list[str]:
    doc = known.hint.mark(DocInfo)
    return [f"`{key}`", _takes(known.hint), _default(known), doc.documentation if doc else ""]


def _takes(hint: Hint) -> str:
    if hint.base is tuple:
        entry = unwrap(hint.inner)
        return "list of mappings" if is_dataclass(entry.base) else f"list of {_takes(entry)}"
    if is_dataclass(hint.base):
        return "mapping"
    if get_origin(hint.base) is Literal:
        return "one of " + ", ".join(f"`{choice}`" for choice in get_args(hint.base))
    return _word(hint) + "".join(_limits(hint))


def _word(hint: Hint) -> str:
    if hint.mark(HttpUrl) or hint.mark(DatabaseUrl):
        return "address"
    if hint.base is Decimal:
        money = hint.mark(Money)
        return f"USD, at most {money.most:f}" if money else "decimal number"
    return _WORDS[hint.mark(Unit) or hint.base]


def _limits(hint: Hint) -> Iterator[str]:
    for mark in hint.marks:
        match mark:
            # Durations and sizes have no sign: that they are at least 0 says nothing.
            case Ge(ge=limit) if limit != 0 or not hint.mark(Unit):
                yield f", at least {limit}"
            case Gt(gt=limit):
                yield f", above {limit}"
            case Le(le=limit):
                yield f", at most {limit}"
            case _:
                pass


def _default(known: Known) -> str:
    if known.required:
        return "required"
    default = known.default()
    if is_dataclass(default):
        return "see below"
    if default is None or default == ():
        return "none"
    shown = default_text(default, known.hint)
    if isinstance(shown, bool):
        return f"`{str(shown).lower()}`"
    return f"`[{', '.join(shown)}]`" if isinstance(shown, list) else f"`{shown}`"


def _main(page: Path) -> None:
    page.write_text(renewed(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
