"""Types without their wrappers, and the way from a path to a type."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from annotated_types import Ge, Gt, MinLen

from gateway.config.hints import hint_at, keys_of, unwrap
from gateway.config.schema import Money, SpillgateFile, UsdPerMtok
from gateway.routing.policy import Policy
from gateway.routing.units import Seconds, Unit


@dataclass(frozen=True)
class Sample:
    needed: int
    return_: Annotated[Seconds, Gt(0)] = 1.0
    many: tuple[Annotated[str, MinLen(1)], ...] = ()


def test_wrappers_come_off_in_any_order() -> None:
    hint = unwrap(Annotated[Annotated[Seconds, Gt(0)] | None, "doc"])
    assert (hint.base, hint.inner, hint.optional) == (float, None, True)
    assert hint.mark(Unit) is Unit.SECONDS
    assert hint.mark(Gt) == Gt(0)
    assert hint.mark(Ge) == Ge(0)
    assert hint.mark(Money) is None
    assert unwrap(UsdPerMtok | None).base is Decimal


def test_a_list_has_an_entry_type() -> None:
    hint = unwrap(tuple[Annotated[str, MinLen(1)], ...] | None)
    assert hint.base is tuple
    assert unwrap(hint.inner).base is str


def test_a_trailing_underscore_is_not_part_of_the_key() -> None:
    keys = keys_of(Sample)
    assert list(keys) == ["needed", "return", "many"]
    assert keys["needed"].required
    assert not keys["return"].required
    assert keys["return"].default() == 1.0


def test_a_path_leads_to_its_type_or_to_nothing() -> None:
    price = hint_at(SpillgateFile, ("models", 3, "overflow", 0, "price", "input"))
    assert price is not None
    assert price.base is Decimal
    assert hint_at(Policy, ("return", "ramp")) is not None
    for nowhere in (("nope",), ("models", "name"), ("listen", "host", "x"), ("listen", 0), ("return_",)):
        assert hint_at(SpillgateFile, nowhere) is None
