"""Usage, in every shape that engines and endpoints report it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.usage import Usage, merge, usage_from

COUNTS = st.none() | st.integers(0, 5000)
ODD = (
    st.none()
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.text(max_size=3)
    | st.lists(st.integers(), max_size=1)
)


def reported(**counts: Any) -> Usage:
    return Usage(source="reported", **counts)


@pytest.mark.parametrize(
    ("kind", "message", "usage"),
    [
        pytest.param(
            "chat",
            {
                "usage": {
                    "prompt_tokens": 5,
                    "total_tokens": 13,
                    "completion_tokens": 8,
                    "prompt_tokens_details": None,
                }
            },
            reported(prompt=5, completion=8),
            id="vllm by default tells no cached tokens",
        ),
        pytest.param(
            "chat",
            {
                "usage": {
                    "prompt_tokens": 1000,
                    "completion_tokens": 136,
                    "total_tokens": 1136,
                    "prompt_tokens_details": {"cached_tokens": 900},
                    "completion_tokens_details": {"reasoning_tokens": 31},
                }
            },
            reported(prompt=1000, cached=900, completion=136, reasoning=31),
            id="details are parts, not extras",
        ),
        pytest.param(
            "completions",
            {"choices": [], "usage": {"prompt_tokens": 2, "total_tokens": 6, "completion_tokens": 4}},
            reported(prompt=2, completion=4),
            id="completions",
        ),
        pytest.param(
            "embeddings",
            {"usage": {"prompt_tokens": 7, "total_tokens": 7}},
            reported(prompt=7),
            id="embeddings",
        ),
        pytest.param(
            "rerank", {"usage": {"total_tokens": 9}}, reported(prompt=9), id="rerank gives a total alone"
        ),
        pytest.param(
            "responses",
            {
                "usage": {
                    "input_tokens": 5,
                    "input_tokens_details": {"cached_tokens": 2},
                    "output_tokens": 6,
                    "output_tokens_details": {"reasoning_tokens": 1},
                    "total_tokens": 11,
                }
            },
            reported(prompt=5, cached=2, completion=6, reasoning=1),
            id="responses, whole",
        ),
        pytest.param(
            "responses",
            {"type": "response.completed", "response": {"usage": {"input_tokens": 5, "output_tokens": 6}}},
            reported(prompt=5, completion=6),
            id="responses, last event",
        ),
        pytest.param(
            "messages",
            {"usage": {"input_tokens": 5, "output_tokens": 4}},
            reported(prompt=5, completion=4),
            id="anthropic, whole",
        ),
        pytest.param(
            "messages",
            {
                "type": "message_start",
                "message": {
                    "usage": {
                        "input_tokens": 10,
                        "cache_read_input_tokens": 90,
                        "cache_creation_input_tokens": 20,
                        "output_tokens": 0,
                    }
                },
            },
            reported(prompt=120, cached=90, completion=0),
            id="anthropic counts the prompt in three parts",
        ),
    ],
)
def test_counts_come_out_in_one_shape(kind: str, message: dict[str, Any], usage: Usage) -> None:
    assert usage_from(kind, message) == usage


@pytest.mark.parametrize("kind", ["chat", "completions", "embeddings", "responses", "messages", "rerank"])
@pytest.mark.parametrize(
    "message",
    [
        {},
        {"usage": None},
        {"usage": {}},
        {"usage": "many"},
        {"usage": []},
        {"usage": {"prompt_tokens": None, "input_tokens": None, "total_tokens": None}},
        {"response": None, "message": "x"},
        {"response": {"usage": None}, "message": {"usage": None}},
    ],
)
def test_no_counts_are_no_usage(kind: str, message: dict[str, Any]) -> None:
    assert usage_from(kind, message) is None


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 99}, (10, None, 5, None), id="total"
        ),
        pytest.param({"prompt_tokens": -3, "completion_tokens": 5}, (0, None, 5, None), id="negative"),
        pytest.param({"prompt_tokens": "10", "completion_tokens": 5}, (None, None, 5, None), id="text"),
        pytest.param({"prompt_tokens": True, "completion_tokens": 5}, (None, None, 5, None), id="bool"),
        pytest.param({"prompt_tokens": 10.0, "completion_tokens": 5}, (10, None, 5, None), id="float"),
        pytest.param({"prompt_tokens": 10**30, "completion_tokens": 5}, (None, None, 5, None), id="too many"),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 11}},
            (10, 10, 5, None),
            id="cached above prompt",
        ),
        pytest.param(
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "completion_tokens_details": {"reasoning_tokens": 6},
            },
            (10, None, 5, 5),
            id="reasoning above completion",
        ),
    ],
)
def test_counts_that_cannot_be_are_clamped_and_flagged(
    usage: dict[str, Any], expected: tuple[int | None, ...]
) -> None:
    found = usage_from("chat", {"usage": usage})
    assert found is not None
    assert (found.prompt, found.cached, found.completion, found.reasoning) == expected
    assert found.inconsistent


@given(
    st.sampled_from(["chat", "embeddings", "rerank", "responses", "messages"]),
    st.dictionaries(
        st.sampled_from(
            [
                "prompt_tokens",
                "completion_tokens",
                "total_tokens",
                "input_tokens",
                "output_tokens",
                "cache_read_input_tokens",
                "cache_creation_input_tokens",
            ]
        ),
        ODD,
    ),
    ODD,
)
def test_whatever_the_wire_says_counts_are_whole_and_parts_fit(
    kind: str, usage: dict[str, Any], part: Any
) -> None:
    details = {f"{side}_tokens_details": {"cached_tokens": part, "reasoning_tokens": part} for side in
               ("prompt", "completion", "input", "output")}  # fmt: skip
    found = usage_from(kind, {"usage": usage | details})
    if found is not None:
        _assert_sound(found)


@given(st.lists(st.tuples(COUNTS, COUNTS, COUNTS, COUNTS), min_size=1, max_size=5))
def test_the_last_count_given_wins(reports: list[tuple[int | None, ...]]) -> None:
    merged: Usage | None = None
    for prompt, cached, completion, reasoning in reports:
        merged = merge(
            merged, reported(prompt=prompt, cached=cached, completion=completion, reasoning=reasoning)
        )
    assert merged is not None
    assert merged.completion == next(
        (report[2] for report in reversed(reports) if report[2] is not None), None
    )
    assert (merged.prompt is None) == all(report[0] is None for report in reports)
    if len(reports) > 1:
        _assert_sound(merged)


def test_growing_usage_ends_with_the_last_chunk() -> None:
    merged: Usage | None = None
    for completion in range(6):
        usage = usage_from("chat", {"usage": {"prompt_tokens": 5, "completion_tokens": completion}})
        assert usage is not None
        merged = merge(merged, usage)
    assert merged == reported(prompt=5, completion=5)


@pytest.mark.parametrize(
    "last",
    [
        pytest.param({"output_tokens": 4}, id="output alone"),
        pytest.param({"input_tokens": 10, "output_tokens": 4}, id="uncached input again"),
        pytest.param({"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 4}, id="all again"),
    ],
)
def test_anthropics_first_and_last_event_make_one_usage(last: dict[str, int]) -> None:
    start = {"message": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 1}}}
    first, second = usage_from("messages", start), usage_from("messages", {"usage": last})
    assert second is not None
    assert merge(first, second) == reported(prompt=100, cached=90, completion=4)


def test_a_flag_stays_and_an_estimate_does_not_outlive_a_report() -> None:
    estimate = Usage(prompt=3, source="estimated", inconsistent=True)
    assert merge(estimate, reported(completion=1)) == Usage(3, None, 1, None, "reported", inconsistent=True)
    assert merge(estimate, Usage()).source == "estimated"
    assert merge(None, estimate) is estimate


def _assert_sound(usage: Usage) -> None:
    for count in (usage.prompt, usage.cached, usage.completion, usage.reasoning):
        assert count is None or (type(count) is int and 0 <= count < 10**13)
    if usage.prompt is not None and usage.cached is not None:
        assert usage.cached <= usage.prompt
    if usage.completion is not None and usage.reasoning is not None:
        assert usage.reasoning <= usage.completion
    assert usage.source == "reported"
