"""A secret is never shown by accident."""

import copy
import json
import traceback
from dataclasses import asdict, dataclass

import pytest

from gateway.config.secret import Secret


@dataclass(frozen=True)
class Holder:
    key: Secret


@pytest.mark.parametrize(
    "show", [repr, str, "{}".format, "{!r:>20}".format, "{:>20}".format, lambda s: f"{s}"]
)
def test_no_way_of_printing_shows_the_value(show) -> None:  # type: ignore[no-untyped-def]  # any printing function
    assert "CANARY" not in show(Secret("CANARY"))


def test_it_stays_masked_inside_dataclasses_copies_and_tracebacks() -> None:
    holder = copy.deepcopy(Holder(Secret("CANARY")))
    assert "CANARY" not in repr(holder) + repr(asdict(holder))
    with pytest.raises(TypeError) as caught:
        json.dumps(asdict(holder))
    assert "CANARY" not in "".join(traceback.format_exception(caught.value))
    assert holder.key.reveal() == "CANARY"


def test_equal_values_are_equal_also_outside_ascii() -> None:
    assert Secret("é") == Secret("é")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
