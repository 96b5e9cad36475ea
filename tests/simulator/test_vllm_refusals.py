"""What vLLM refuses, in the words that a real 0.32.0 used for the same bodies."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.generation import Ask
from gateway.simulator.vllm_refusals import Limits, Refusal, effective_max_tokens, parse_object, read_body

LIMITS = Limits(("tiny",), 1024)
MESSAGES = [{"role": "user", "content": "hello world"}]
LONG = [{"role": "user", "content": "the quick brown fox " * 600}]


def read(
    body: dict[str, Any] | bytes, kind: str = "chat", content_type: str = "application/json"
) -> Ask | Refusal:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_body(kind, content_type, raw, LIMITS)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            b'{"model": "tiny", "messages": [',
            Refusal(
                400,
                "1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.31', 'msg': 'JSON "
                "decode error', "
                "'input': '<dict of 0 items>', 'ctx': {'error': 'Expecting value'}}",
                "Bad Request",
                "body.31",
            ),
            id="bad json",
        ),
        pytest.param(
            b"",
            Refusal(
                400,
                "1 validation error:\n  {'type': 'missing', 'loc': 'body', 'msg': 'Field required', "
                "'input': 'None'}",
                "Bad Request",
                "body",
            ),
            id="empty body",
        ),
        pytest.param(
            {"model": "tiny", "max_tokens": 2},
            Refusal(
                400,
                "1 validation error:\n  {'type': 'missing', 'loc': 'body.messages', 'msg': 'Field required', "
                "'input': '<dict of 2 items>'}",
                "Bad Request",
                "body.messages",
            ),
            id="no messages",
        ),
        pytest.param(
            {"model": "tiny", "messages": MESSAGES, "max_tokens": "abc"},
            Refusal(
                400,
                "1 validation error:\n  {'type': 'int_parsing', 'loc': 'body.max_tokens', 'msg': "
                "'Input should be a "
                "valid integer, unable to parse string as an integer', 'input': 'abc'}",
                "Bad Request",
                "body.max_tokens",
            ),
            id="limit is text",
        ),
        pytest.param(
            {"model": "nope", "messages": MESSAGES},
            Refusal(404, "The model `nope` does not exist. Valid aliases: tiny.", "NotFoundError", "model"),
            id="unknown model",
        ),
        pytest.param(
            {"model": "tiny", "messages": []},
            Refusal(
                400,
                "Cannot apply chat template to an empty conversation. Provide at least one message.",
                "BadRequestError",
                None,
            ),
            id="no message",
        ),
        pytest.param(
            {"model": "tiny", "messages": LONG, "max_tokens": 1},
            Refusal(
                400,
                "This model's maximum context length is 1024 tokens. However, your prompt contains "
                "at least 1025 "
                "input tokens, which exceeds this limit even without any output tokens. Please "
                "reduce the length of "
                "the input prompt. (parameter=input_tokens, value=1025)",
                "BadRequestError",
                "input_tokens",
            ),
            id="prompt too long",
        ),
        pytest.param(
            {"model": "tiny", "messages": MESSAGES, "max_tokens": 5000},
            Refusal(
                400,
                "max_tokens=5000 cannot be greater than max_model_len=1024. Please request fewer "
                "output tokens. "
                "(parameter=max_tokens, value=5000)",
                "BadRequestError",
                "max_tokens",
            ),
            id="limit above window",
        ),
        pytest.param(
            {"model": "tiny", "messages": MESSAGES, "max_tokens": -1},
            Refusal(
                400,
                "max_tokens must be at least 1, got -1. (parameter=max_tokens, value=-1)",
                "BadRequestError",
                "max_tokens",
            ),
            id="limit below one",
        ),
        pytest.param(
            {"model": "tiny", "messages": MESSAGES, "max_tokens": 4, "min_tokens": 10},
            Refusal(
                400, "min_tokens must be less than or equal to max_tokens=4, got 10.", "BadRequestError", None
            ),
            id="min above max",
        ),
        pytest.param(
            {"model": "tiny", "messages": MESSAGES, "n": 0},
            Refusal(400, "n must be at least 1, got 0.", "BadRequestError", None),
            id="no choice",
        ),
        pytest.param(
            {"model": "tiny", "messages": MESSAGES, "stream_options": {"include_usage": True}},
            Refusal(
                400,
                "Stream options can only be defined when `stream=True`. (parameter=stream_options)",
                "BadRequestError",
                "stream_options",
            ),
            id="stream options without stream",
        ),
    ],
)
def test_bodies_are_refused_in_vllms_words(body: dict[str, Any] | bytes, expected: Refusal) -> None:
    assert read(body) == expected


def test_another_content_type_is_refused() -> None:
    assert read({"model": "tiny", "messages": MESSAGES}, content_type="text/plain") == Refusal(
        400,
        "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed",
        "Bad Request",
        None,
    )


@pytest.mark.parametrize(
    "body",
    [
        {"messages": MESSAGES},
        {"model": "tiny", "messages": MESSAGES, "no_such_field": 1, "priority": 0},
        {"model": "tiny", "messages": [{"role": "nobody", "content": "hi"}]},
    ],
    ids=["no model", "unknown field", "unknown role"],
)
def test_what_the_real_engine_serves_is_served(body: dict[str, Any]) -> None:
    assert isinstance(read(body), Ask)


def test_a_prompt_of_exactly_the_window_leaves_no_room_and_is_refused() -> None:
    refused = read({"model": "tiny", "prompt": "four" * 1024}, kind="completions")
    assert isinstance(refused, Refusal)
    assert refused.param == "input_tokens"
    assert isinstance(read({"model": "tiny", "prompt": "four" * 1023}, kind="completions"), Ask)


@pytest.mark.parametrize(
    ("kind", "limit", "expected"),
    [("chat", None, 924), ("completions", None, 16), ("chat", 50, 50), ("chat", 1000, 924)],
)
def test_the_limit_is_cut_to_the_window(kind: str, limit: int | None, expected: int) -> None:
    body = {"prompt": "four" * 100, "messages": [{"content": "four" * 100}], "max_tokens": limit}
    ask = read(body, kind)
    assert isinstance(ask, Ask)
    assert effective_max_tokens(ask, 1024) == expected


@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_a_refusal(body: bytes) -> None:
    parsed = parse_object("application/json; charset=utf-8", body)
    assert isinstance(parsed, dict) or parsed.status == 400


def test_json_that_is_no_object_or_too_deep_is_refused() -> None:
    for body in (b"[1]", b"7", b"[" * 100_000, b"\xff\xfe"):
        assert isinstance(parse_object("application/json", body), Refusal)
