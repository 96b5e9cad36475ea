"""Facts that are worked out from others."""

from gateway.routing.facts import RequestFacts


def test_prompts_are_taken_as_equally_long_and_never_shorter_than_they_can_be() -> None:
    assert RequestFacts("m", prompt_tokens=10, max_tokens=1, prompts=3, choices=3).prompt_tokens_each == 4
    assert RequestFacts("m", prompt_tokens=10, max_tokens=1).prompt_tokens_each == 10
