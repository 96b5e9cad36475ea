"""Prompt text counts as the tokens that were asked for."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.workload.text import text_of, tokens_in


@given(st.integers(0, 3000), st.integers(0, 2**64))
def test_text_has_exactly_the_tokens_asked_for(tokens: int, seed: int) -> None:
    text = text_of(tokens, seed)
    assert text.isascii()
    assert tokens_in(len(text.encode())) == tokens


def test_a_started_token_counts_whole() -> None:
    assert [tokens_in(size) for size in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_different_seeds_share_no_beginning() -> None:
    assert text_of(20, 1)[:8] != text_of(20, 2)[:8]
    assert text_of(20, 1) == text_of(20, 1)
