"""Names of routes and targets."""

import pytest

from gateway.routing.decision import Hold, Local, Overflow, Shed, route_name, target_name
from gateway.routing.need import need_of


@pytest.mark.parametrize(
    ("route", "name", "target"),
    [
        (Local("a", need_of(1, 1, 1, 16)), "local", "a"),
        (Overflow("e", "m", True, None), "overflow", "e"),
        (Shed(503, 1.0), "shed", None),
        (Hold(Shed(429, 1.0)), "shed", None),
    ],
)
def test_every_route_has_its_word(
    route: Local | Overflow | Shed | Hold, name: str, target: str | None
) -> None:
    assert route_name(route) == name
    assert target_name(route) == target
