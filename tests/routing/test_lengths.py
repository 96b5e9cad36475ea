"""What is learned of outputs, prompts and events."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.lengths import LengthLearner


def taught(lengths: list[int]) -> LengthLearner:
    learner = LengthLearner()
    for length in lengths:
        learner.learn_output("m", length)
    return learner


def test_before_enough_is_seen_the_callers_limit_is_reserved() -> None:
    learner = taught([5, 5, 5])
    assert learner.expected_output("m", max_tokens=600, quantile=0.5) == 600
    assert learner.expected_output("new", max_tokens=None, quantile=0.5) == 1024


def test_the_quantile_of_what_was_seen_is_expected_and_never_more_than_max_tokens() -> None:
    learner = taught(list(range(1, 101)))
    assert learner.expected_output("m", max_tokens=None, quantile=0.5) == 50
    assert learner.expected_output("m", max_tokens=None, quantile=0.9) == 90
    assert learner.expected_output("m", max_tokens=20, quantile=0.9) == 20


def test_a_request_that_streamed_past_its_expectation_is_compared_with_those_that_did() -> None:
    learner = taught(list(range(1, 101)))
    assert learner.expected_output("m", max_tokens=None, quantile=0.5, streamed=80) == 90
    assert learner.expected_output("m", max_tokens=None, quantile=0.5, streamed=100) == 151


def test_old_lengths_are_forgotten() -> None:
    learner = taught([1000] * 512 + [10] * 512)
    assert learner.expected_output("m", max_tokens=None, quantile=1.0) == 10


def test_the_first_counted_prompt_sets_the_ratio_and_later_ones_move_it() -> None:
    learner = LengthLearner()
    assert learner.prompt_tokens("m", 300) == 100
    learner.learn_prompt("m", 500, 100)
    assert learner.prompt_tokens("m", 500) == 100
    learner.learn_prompt("m", 250, 100)
    assert 100 < learner.prompt_tokens("m", 500) < 200


def test_tokens_per_event_follow_usage_not_chunks() -> None:
    learner = LengthLearner()
    for _ in range(100):
        learner.learn_events("m", 50, 200)
    assert 3.9 < learner.tokens_per_event("m") <= 4.0


@given(
    st.lists(st.integers(1, 5000), min_size=8, max_size=600),
    st.floats(0.01, 1.0),
    st.integers(0, 6000),
    st.one_of(st.none(), st.integers(1, 4000)),
)
def test_an_expectation_is_sane(
    lengths: list[int], quantile: float, streamed: int, limit: int | None
) -> None:
    learner = taught(lengths)
    expected = learner.expected_output("m", max_tokens=limit, quantile=quantile, streamed=streamed)
    assert expected >= 1
    if limit is None:
        assert expected > streamed or streamed == 0
        assert expected >= learner.expected_output(
            "m", max_tokens=None, quantile=quantile / 2, streamed=streamed
        )
    else:
        assert expected <= limit
