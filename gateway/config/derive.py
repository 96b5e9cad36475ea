"""Validation and JSON Schema of frozen dataclasses, derived from their types by pydantic: the shape.

Knows no particular key. Results are the plain dataclasses again, so nobody above sees a pydantic model.
"""

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import pydantic
from annotated_types import DocInfo
from pydantic import BaseModel, ConfigDict
from pydantic_core import ErrorDetails

from gateway.config.hints import Hint, Known, keys_of, unwrap
from gateway.config.scalars import annotation_of, default_text
from gateway.config.schema import DatabaseUrl, HttpUrl, Matches, Money
from gateway.routing.units import Unit

T = TypeVar("T")

_OUR_MARKS = (Unit, Matches, Money, HttpUrl, DatabaseUrl, DocInfo)
_MODEL = ConfigDict(
    strict=True,
    extra="forbid",
    frozen=True,
    allow_inf_nan=False,
    hide_input_in_errors=True,
    protected_namespaces=(),
)


class InvalidError(Exception):
    """Values that do not fit: one entry per problem, none of which repeats a value."""

    def __init__(self, errors: list[ErrorDetails]) -> None:
        super().__init__(f"{len(errors)} problems")
        self.errors = errors


def build(cls: type[T], tree: object, folder: Path) -> T:
    """Make a dataclass from plain values; relative paths start at `folder`. Raises InvalidError."""
    shape: type = cls
    try:
        model = model_of(shape).model_validate(tree, context=folder)
    except pydantic.ValidationError as error:
        raise InvalidError(error.errors(include_url=False, include_input=False)) from None
    return cast(T, _plain(model, unwrap(cls)))


def json_schema(cls: type) -> dict[str, Any]:
    """The JSON Schema of a file that holds `cls`."""
    return model_of(cls).model_json_schema(by_alias=True)


@cache
def model_of(cls: type) -> type[BaseModel]:
    """The pydantic model of a dataclass."""
    made = {
        known.field.name: (_annotation(known.hint), _field(key, known)) for key, known in keys_of(cls).items()
    }
    create = cast(Callable[..., type[BaseModel]], pydantic.create_model)
    return create(cls.__name__, __config__=_MODEL, __doc__=cls.__doc__, **made)


def _field(key: str, known: Known) -> Any:
    doc = known.hint.mark(DocInfo)
    about: dict[str, Any] = {"alias": key, "description": doc.documentation if doc else None}
    if known.required:
        return pydantic.Field(**about)
    default = known.default()
    if not is_dataclass(default) and default is not None:
        about["json_schema_extra"] = {"default": default_text(default, known.hint)}
    return pydantic.Field(default_factory=known.default, **about)


def _annotation(hint: Hint) -> Any:
    annotation = _bare(hint)
    # Constraints go inside Optional: None is not measured.
    for mark in hint.marks:
        if not isinstance(mark, _OUR_MARKS):
            annotation = Annotated[annotation, mark]
    return annotation | None if hint.optional else annotation


def _bare(hint: Hint) -> Any:
    if hint.base is tuple:
        entry = _annotation(unwrap(hint.inner))
        return list[entry]  # type: ignore[valid-type]  # a type made at run time
    base: type = hint.base
    return model_of(base) if is_dataclass(base) else annotation_of(hint)


def _plain(value: Any, hint: Hint) -> Any:
    """A validated value as the dataclasses it was derived from; defaults already are."""
    if isinstance(value, list):
        return tuple(_plain(entry, unwrap(hint.inner)) for entry in value)
    if not isinstance(value, BaseModel):
        return value
    known = keys_of(hint.base).values()
    return hint.base(**{k.field.name: _plain(getattr(value, k.field.name), k.hint) for k in known})
