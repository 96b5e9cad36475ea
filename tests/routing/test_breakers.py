"""Cool-downs hold, grow, and end by one trial."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.breakers import BreakerBoard


def opened(now: float = 0.0, failures: int = 3) -> BreakerBoard:
    board = BreakerBoard()
    for _ in range(failures):
        board.failed("t", now)
    return board


def test_two_failures_do_not_open_and_the_third_does() -> None:
    board = opened(failures=2)
    assert board.allows("t", 0.0)
    board.failed("t", 0.0)
    assert not board.allows("t", 0.0)
    assert board.allows("other", 0.0)


def test_after_the_cooldown_one_trial_goes_at_a_time() -> None:
    board = opened()
    assert board.allows("t", 10.0)
    board.dispatched("t", 10.0)
    assert not board.allows("t", 10.0)
    board.succeeded("t")
    assert board.allows("t", 10.0)


def test_a_trial_that_told_nothing_frees_its_place() -> None:
    board = opened()
    board.dispatched("t", 10.0)
    board.abandoned("t")
    assert board.allows("t", 10.0)


def test_a_failed_trial_waits_longer_than_before() -> None:
    board = opened()
    first = board.open_until("t") or 0.0
    board.dispatched("t", 10.0)
    board.failed("t", 10.0)
    assert (board.open_until("t") or 0.0) - 10.0 > first


def test_a_later_shorter_wait_never_shortens_and_absurd_ones_are_capped() -> None:
    board = BreakerBoard()
    board.asked_to_wait("t", 0.0, 30.0)
    board.asked_to_wait("t", 1.0, 1.0)
    assert not board.allows("t", 29.0)
    board.asked_to_wait("t", 2.0, 86_400.0)
    assert board.allows("t", 303.0)


@given(
    st.lists(st.tuples(st.sampled_from(["fail", "ok", "wait", "go", "leave"]), st.floats(0, 50)), max_size=40)
)
def test_no_order_of_events_locks_a_target_out_for_ever(events: list[tuple[str, float]]) -> None:
    board, now = BreakerBoard(), 0.0
    for what, passed in events:
        now += passed
        match what:
            case "fail":
                board.failed("t", now)
            case "ok":
                board.succeeded("t")
            case "wait":
                board.asked_to_wait("t", now, passed)
            case "go" if board.allows("t", now):
                board.dispatched("t", now)
            case "leave":
                board.abandoned("t")
    board.abandoned("t")
    assert board.allows("t", now + 400.0)
