"""Rules one by one, where the decision's tests do not already show them."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.need import need_of
from gateway.routing.reservations import ReservationBook
from gateway.routing.rules import (
    EngineView,
    HeadroomRule,
    PreemptionRule,
    capacity_blocks,
    foreign_blocks,
    state_verdict,
)
from gateway.routing.view import EngineSnapshot, EngineState
from gateway.routing.wait import PrefillRate

Make = Callable[..., Any]


def engine(
    snapshot: EngineSnapshot, *, share: float = 1.0, prompt: int = 100, output: int = 100
) -> EngineView:
    return EngineView(
        snapshot, ReservationBook(), PrefillRate(), need_of(prompt, output, 1, snapshot.block_size), share
    )


def test_exactly_full_fits_and_one_block_more_does_not(snapshot: Make) -> None:
    rule = HeadroomRule(limit=1.0)
    assert rule.verdict(engine(snapshot(used_blocks=56))) is None
    assert rule.verdict(engine(snapshot(used_blocks=57))) == "kv_full"


def test_the_ramp_scales_what_may_be_promised(snapshot: Make) -> None:
    assert capacity_blocks(engine(snapshot(), share=0.5), 1.0) == 31.5


def test_our_own_blocks_are_never_negative_foreign_traffic(snapshot: Make) -> None:
    assert foreign_blocks(snapshot(used_blocks=10, own_blocks=30)) == 0
    assert foreign_blocks(snapshot(used_blocks=None, own_blocks=3)) == 0


@pytest.mark.parametrize(("most", "verdict"), [(0, "preempting"), (5, None)])
def test_a_policy_may_tolerate_some_preemptions(snapshot: Make, most: int, verdict: str | None) -> None:
    seen = snapshot(preemptions=((98.0, 2), (99.0, 3)))
    assert PreemptionRule(max=most).verdict(engine(seen), 100.0) == verdict


def test_only_engines_that_can_serve_have_no_state_verdict() -> None:
    serving = {state for state in EngineState if state_verdict(state) is None}
    assert serving == {EngineState.READY, EngineState.PREEMPTING, EngineState.UNKNOWN}


@given(st.integers(0, 200), st.integers(1, 4000), st.integers(1, 4000), st.integers(1, 300))
def test_headroom_is_monotone_in_what_is_used_and_needed(
    used: int, prompt: int, output: int, usable: int
) -> None:
    snapshot = EngineSnapshot("a", usable_blocks=usable, block_size=16, used_blocks=used)
    more = EngineSnapshot("a", usable_blocks=usable, block_size=16, used_blocks=used + 1)
    rule = HeadroomRule()
    if rule.verdict(engine(snapshot, prompt=prompt, output=output)) is not None:
        assert rule.verdict(engine(more, prompt=prompt, output=output)) is not None
        assert rule.verdict(engine(snapshot, prompt=prompt + 16, output=output)) is not None
