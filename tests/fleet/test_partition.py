"""Provisioned time is cut without loss."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.fleet.partition import PartitionClock, partition_of
from gateway.routing.view import EngineState

START = datetime(2026, 12, 1, tzinfo=UTC)


def test_a_stretch_ends_when_its_kind_changes_and_at_least_every_ten_seconds() -> None:
    clock = PartitionClock()
    assert clock.observe("a", EngineState.READY, False, 0.0, START) == []
    assert clock.observe("a", EngineState.READY, False, 9.0, START) == []
    [idle] = clock.observe("a", EngineState.READY, True, 9.5, START)
    assert (idle.partition, idle.seconds) == ("serving_idle", 9.5)
    [busy] = clock.observe("a", EngineState.READY, True, 19.5, START)
    assert (busy.partition, busy.seconds) == ("serving_busy", 10.0)


@pytest.mark.parametrize("state", list(EngineState))
def test_every_state_is_some_kind_of_time(state: EngineState) -> None:
    away = partition_of(state, busy=True) == partition_of(state, busy=False)
    serving = (EngineState.READY, EngineState.PREEMPTING, EngineState.UNKNOWN, EngineState.ASLEEP)
    assert away == (state not in serving)


looks = st.lists(
    st.tuples(st.sampled_from(list(EngineState)), st.booleans(), st.floats(0, 30), st.integers(-4000, 4000)),
    max_size=40,
)


@given(looks)
def test_seconds_add_up_whatever_the_wall_clock_does(
    steps: list[tuple[EngineState, bool, float, int]],
) -> None:
    clock, now, spans = PartitionClock(), 0.0, []
    spans += clock.observe("a", EngineState.UNKNOWN, False, now, START)
    for state, busy, passed, wall in steps:
        now += passed
        spans += clock.observe("a", state, busy, now, START + timedelta(seconds=wall))
    spans += clock.flush(now, START)
    assert sum(s.seconds for s in spans) == pytest.approx(now)
    assert all(s.seconds > 0 for s in spans)
    assert clock.flush(now + 5, START) == []
