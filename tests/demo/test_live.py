"""The live table: what is unknown shows as unknown, a bar never leaves its box."""

from dataclasses import replace

import pytest

from gateway.demo.live import _BAR, _bar, _figure
from gateway.routing.view import EngineSnapshot, EngineState

READY = replace(EngineSnapshot("a"), state=EngineState.READY, usable_blocks=160, used_blocks=80)


@pytest.mark.parametrize(
    ("used", "promised"), [(0, 0), (80, 100), (160, 160), (160, 900), (None, 5), (200, 0)]
)
def test_the_bar_has_one_length(used: int | None, promised: int) -> None:
    text = _bar(replace(READY, used_blocks=used), promised).plain
    bar, _, figures = text.partition(" ")
    assert len(bar) == _BAR
    assert figures.strip() == f"{promised}/160"


def test_an_engine_that_is_away_shows_its_cause() -> None:
    away = replace(READY, state=EngineState.UNBOOTABLE, cause="no memory for the KV cache")
    assert _bar(away, 0).plain == "no memory for the KV cache"
    assert _bar(replace(READY, usable_blocks=None), 0).plain == ""


def test_an_unknown_figure_is_no_0() -> None:
    assert (_figure(None), _figure(0)) == ("?", "0")
