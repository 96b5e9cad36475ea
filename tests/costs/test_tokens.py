"""Which tokens are billed as what."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.costs.tokens import billed_tokens
from gateway.wire.usage import Usage

COUNTS = st.none() | st.integers(-10, 10**7)


@given(st.integers(0, 10**7), COUNTS, COUNTS, COUNTS)
def test_the_prompt_is_uncached_and_cached_and_nothing_is_negative(
    prompt: int, cached: int | None, completion: int | None, reasoning: int | None
) -> None:
    tokens = billed_tokens(Usage(prompt, cached, completion, reasoning, "reported"))
    assert tokens is not None
    assert tokens.uncached + tokens.cached == tokens.prompt == prompt
    assert min(tokens.uncached, tokens.cached, tokens.output or 0) >= 0


def test_reasoning_is_inside_the_completion() -> None:
    tokens = billed_tokens(Usage(prompt=51, cached=0, completion=136, reasoning=31, source="reported"))
    assert tokens is not None
    assert (tokens.prompt, tokens.output) == (51, 136)
    assert not tokens.inconsistent


def test_more_cached_than_prompt_is_clamped_and_said() -> None:
    tokens = billed_tokens(Usage(prompt=100, cached=120, completion=1, source="reported"))
    assert tokens == (0, 100, 1, True)


def test_more_reasoning_than_completion_is_said() -> None:
    tokens = billed_tokens(Usage(prompt=1, completion=10, reasoning=11, source="reported"))
    assert tokens is not None
    assert tokens.inconsistent


def test_a_negative_count_is_zero_and_said() -> None:
    assert billed_tokens(Usage(prompt=-5, cached=-1, completion=-3, source="reported")) == (0, 0, 0, True)


def test_what_the_wire_called_inconsistent_stays_so() -> None:
    tokens = billed_tokens(Usage(prompt=1, completion=1, source="reported", inconsistent=True))
    assert tokens is not None
    assert tokens.inconsistent


def test_an_unknown_prompt_is_not_counted() -> None:
    assert billed_tokens(Usage(completion=3)) is None
    assert billed_tokens(None) is None


def test_an_unknown_completion_stays_unknown_where_output_is_made() -> None:
    usage = Usage(prompt=5, source="reported")
    generating, embedding = billed_tokens(usage), billed_tokens(usage, generates=False)
    assert generating is not None
    assert generating.output is None
    assert embedding is not None
    assert embedding.output == 0
