"""Requests as the fakes read them, and the words and lengths they make up."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.generation import read_ask, varied_length, words


@pytest.mark.parametrize(
    ("kind", "body", "tokens", "prompts"),
    [
        ("chat", {"messages": [{"role": "user", "content": "hello world"}]}, 3, 1),
        (
            "chat",
            {"messages": [{"content": "four"}, {"content": [{"type": "text", "text": "more"}, {}]}]},
            2,
            1,
        ),
        ("chat", {"messages": [{"content": None}, 7]}, 1, 1),
        ("chat", {"messages": [{"content": "\ud800"}]}, 1, 1),
        ("completions", {"prompt": "ünicode!"}, 3, 1),
        ("completions", {"prompt": ["four", "more"]}, 2, 2),
        ("completions", {"prompt": [1, 2, 3]}, 3, 1),
        ("completions", {"prompt": []}, 1, 1),
        ("completions", {}, 1, 1),
        ("embeddings", {"input": ["four", "more"]}, 2, 2),
    ],
)
def test_prompts_of_every_kind_are_counted(
    kind: str, body: dict[str, Any], tokens: int, prompts: int
) -> None:
    ask = read_ask(kind, body)
    assert (ask.prompt_tokens, ask.prompts) == (tokens, prompts)


def test_the_newer_name_of_the_limit_wins_in_chat() -> None:
    body = {"messages": [], "max_tokens": 9, "max_completion_tokens": 4}
    assert read_ask("chat", body).max_tokens == 4
    assert read_ask("completions", body).max_tokens == 9


def test_fields_of_a_wrong_type_count_as_absent() -> None:
    ask = read_ask("chat", {"model": 7, "max_tokens": "9", "n": True, "stream": 1, "stream_options": []})
    assert (ask.model, ask.max_tokens, ask.choices, ask.stream) == (None, None, 1, False)


def test_equal_prompts_are_answered_alike_and_others_are_not() -> None:
    first, same, other = (read_ask("completions", {"prompt": text}) for text in ("a", "a", "b"))
    assert first.seed == same.seed != other.seed


@given(st.integers(0, 2**64), st.integers(0, 50), st.integers(0, 50))
def test_words_can_be_taken_piece_by_piece(seed: int, first: int, second: int) -> None:
    text = words(seed, 0, first + second)
    assert text == words(seed, 0, first) + words(seed, first, second)
    assert json.dumps(text) == f'"{text}"'


@given(st.integers(0, 2**64), st.integers(1, 5000))
def test_lengths_stay_within_the_limit(seed: int, most: int) -> None:
    assert 1 <= varied_length()(100, most, seed) <= most


def test_lengths_vary_around_the_mean() -> None:
    length = varied_length(100.0)
    lengths = [length(1, 10_000, read_ask("chat", {"prompt": str(number)}).seed) for number in range(3000)]
    assert sum(lengths) / len(lengths) == pytest.approx(100, rel=0.1)
    assert len(set(lengths)) > 200
