"""Time to first token, from what prefill took before."""

import pytest

from gateway.routing.wait import PrefillRate


def test_nothing_is_predicted_before_a_first_token_was_timed() -> None:
    assert PrefillRate().predicted_ttft(backlog=0, foreign_waiting=0, prompt_tokens=100) is None


def test_the_backlog_is_waited_for_and_foreign_requests_count_as_the_mean() -> None:
    rate = PrefillRate()
    rate.learn(tokens_ahead=900, prompt_tokens=100, seconds=1.0)
    assert rate.predicted_ttft(backlog=2000, foreign_waiting=0, prompt_tokens=1000) == pytest.approx(3.0)
    with_foreign = rate.predicted_ttft(backlog=2000, foreign_waiting=2, prompt_tokens=1000)
    assert with_foreign == pytest.approx(3.0 + 2 * rate.mean_prompt / 1000)


def test_times_that_mean_nothing_teach_nothing() -> None:
    rate = PrefillRate()
    rate.learn(tokens_ahead=0, prompt_tokens=100, seconds=0.0)
    rate.learn(tokens_ahead=0, prompt_tokens=0, seconds=1.0)
    assert rate.tokens_per_second is None
