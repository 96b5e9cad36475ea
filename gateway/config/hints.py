"""What a dataclass field's annotation says, without its wrappers. Knows no validation and no file."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from gateway.config.locate import Loc

T = TypeVar("T")


class Hint(NamedTuple):
    """A field's type. `inner` is a tuple's entry type, else None; `marks` are constraints and markers."""

    base: Any
    inner: Any
    optional: bool
    marks: tuple[Any, ...]

    def mark(self, kind: type[T]) -> T | None:
        """The first marker of this kind."""
        return next((m for m in self.marks if isinstance(m, kind)), None)


class Known(NamedTuple):
    """One key of a mapping: the dataclass field behind it, and its type."""

    field: Field[Any]
    hint: Hint

    @property
    def required(self) -> bool:
        """Must the key be there?"""
        return self.field.default is MISSING and self.field.default_factory is MISSING

    def default(self) -> Any:
        """The value where the key is absent (only asked of keys that may be)."""
        return (
            self.field.default_factory() if self.field.default_factory is not MISSING else self.field.default
        )


@cache
def keys_of(cls: type) -> Mapping[str, Known]:
    """YAML key -> field, in order. A trailing underscore of a name (`return_`) is not part of the key."""
    annotations = get_type_hints(cls, include_extras=True)
    return {f.name.rstrip("_"): Known(f, unwrap(annotations[f.name])) for f in fields(cls)}


def keys_under(hint: Hint) -> Mapping[str, Known]:
    """The keys of a mapping's type; none where the type is no mapping."""
    base: type = hint.base
    return keys_of(base) if is_dataclass(base) else {}


def unwrap(annotation: Any) -> Hint:
    """Take Annotated, Optional and tuple[..., ...] off an annotation."""
    marks: tuple[Any, ...] = ()
    optional = False
    while (origin := get_origin(annotation)) in (Annotated, Union, UnionType):
        if origin is Annotated:
            marks += annotation.__metadata__
            annotation = annotation.__origin__
        else:
            optional = True
            (annotation,) = (a for a in get_args(annotation) if a is not NoneType)
    if origin is tuple:
        return Hint(tuple, get_args(annotation)[0], optional, marks)
    return Hint(annotation, None, optional, marks)


def hint_at(cls: type, loc: Loc) -> Hint | None:
    """The type at a path; None where there is no such key."""
    hint = Hint(cls, None, False, ())
    for step in loc:
        if isinstance(step, int) and hint.base is tuple:
            hint = unwrap(hint.inner)
        elif isinstance(step, str) and step in (known := keys_under(hint)):
            hint = known[step].hint
        else:
            return None
    return hint
