"""Validation problems as findings that a person can act on: what is wrong, where, what to write instead.

Shows what the file says (a reference stays one), and nothing of fields that hold secrets or addresses.
"""

from collections.abc import Callable, Iterator
from typing import Any, get_args

from pydantic_core import ErrorDetails

from gateway.config.findings import Finding, nearest
from gateway.config.hints import hint_at, keys_under
from gateway.config.locate import Loc, Places
from gateway.config.scalars import LiteralSecretError
from gateway.config.schema import HttpUrl, Matches
from gateway.config.secret import Secret


def explain(errors: list[ErrorDetails], cls: type, places: Places, failed: set[Loc]) -> Iterator[Finding]:
    """A finding per error, except at places in `failed`, which have theirs already."""
    for error in errors:
        loc: Loc = tuple(error["loc"])
        if loc in failed:
            continue
        kind = error["type"]
        place = places.of_key(loc) if kind == "extra_forbidden" else places.of_value(loc)
        code, message = _said(error, loc, cls, places)
        yield Finding(places.file, *place, "error", code, message)


def _said(error: ErrorDetails, loc: Loc, cls: type, places: Places) -> tuple[str, str]:
    match error["type"]:
        case "extra_forbidden":
            return "unknown_key", _unknown_key(loc, cls)
        case "missing":
            return "missing_key", f"key {loc[-1]!r} is missing here"
        case "value_error":
            return _own_problem(error, loc, cls, places)
        case kind if kind in _WRONG_TYPE:
            return "wrong_type", f"{_label(loc)} takes {_WRONG_TYPE[kind]}{_found(loc, cls, places)}"
        case "string_type":
            return (
                "wrong_type",
                f"{_label(loc)} takes text{_found(loc, cls, places)}{_quote_it(loc, cls, places)}",
            )
        case "literal_error":
            return "bad_value", _not_a_choice(loc, cls, places)
        case kind:
            limit = (
                _LIMITS[kind](error.get("ctx", {})) if kind in _LIMITS else "has a value that cannot be used"
            )
            found = _found(loc, cls, places) if places.spelling(loc) else ""
            return "bad_value", f"{_label(loc)} {limit}{found}"


_WRONG_TYPE = {
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "model_type": "a mapping of keys",
}
_LIMITS: dict[str, Callable[[dict[str, Any]], str]] = {
    "greater_than": lambda ctx: f"must be above {ctx['gt']:g}",
    "greater_than_equal": lambda ctx: f"must be at least {ctx['ge']:g}",
    "less_than": lambda ctx: f"must be below {ctx['lt']:g}",
    "less_than_equal": lambda ctx: f"must be at most {ctx['le']:g}",
    "too_short": lambda ctx: "must have at least one entry",
    "string_too_short": lambda ctx: "must not be empty",
    "finite_number": lambda ctx: "must be a finite number",
}


def _unknown_key(loc: Loc, cls: type) -> str:
    around = hint_at(cls, loc[:-1])
    known = keys_under(around) if around else {}
    return f"unknown key {loc[-1]!r}{nearest(str(loc[-1]), known) or '; known: ' + ', '.join(known)}"


def _own_problem(error: ErrorDetails, loc: Loc, cls: type, places: Places) -> tuple[str, str]:
    problem = error.get("ctx", {}).get("error")
    if isinstance(problem, LiteralSecretError):
        return "literal_secret", f"{_label(loc)}: {problem}"
    return "bad_value", f"{_label(loc)}: {problem}{_found(loc, cls, places, '; found')}"


def _not_a_choice(loc: Loc, cls: type, places: Places) -> str:
    hint = hint_at(cls, loc)
    choices = [str(choice) for choice in get_args(hint.base)] if hint else []
    near = nearest(places.spelling(loc) or "", choices)
    return f"{_label(loc)} takes one of {', '.join(choices)}{_found(loc, cls, places)}{near}"


def _label(loc: Loc) -> str:
    """The key, or which entry of which list; the place in the file says the rest."""
    if not loc:
        return "the file"
    return f"{loc[-1]!r}" if isinstance(loc[-1], str) else f"entry {loc[-1] + 1} of {_label(loc[:-1])}"


def _found(loc: Loc, cls: type, places: Places, word: str = ", not") -> str:
    spelling = places.spelling(loc)
    if _is_hidden(loc, cls):
        return ""
    if spelling is None:
        return f"{word} {places.shapes[loc]}" if loc in places.shapes else ""
    return f"{word} {spelling[:60]!r}"


def _quote_it(loc: Loc, cls: type, places: Places) -> str:
    spelling = places.spelling(loc)
    if not spelling or _is_hidden(loc, cls):
        return ""
    return f' (a number or word of YAML here): quote it, "{spelling[:60]}"'


def _is_hidden(loc: Loc, cls: type) -> bool:
    hint = hint_at(cls, loc)
    if hint is None or hint.base is Secret or hint.mark(HttpUrl) is not None:
        return True
    form = hint.mark(Matches)
    return form is not None and form.hidden
