"""The endpoint's answers have OpenAI's shape."""

import json

import pytest

from gateway.simulator import endpoint_shapes as shapes
from gateway.simulator.endpoint_shapes import Counts


def event(data: bytes) -> dict[str, object]:
    assert data.endswith(b"\n\n")
    parsed: dict[str, object] = json.loads(data.removeprefix(b"data: "))
    return parsed


def test_asked_for_usage_is_null_in_every_chunk_but_the_last() -> None:
    writer = shapes.ChunkWriter("chat", "chatcmpl-1", 7, "m", usage_asked=True)
    chunks = [event(data) for data in (writer.role(0), writer.piece(0, "hi"), writer.last(0, "stop"))]
    assert [chunk["usage"] for chunk in chunks] == [None, None, None]
    last = event(writer.usage(Counts(prompt=10, cached=4, completion=3)))
    assert last["choices"] == []
    assert last["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 3,
        "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def test_usage_that_was_not_asked_for_is_absent() -> None:
    writer = shapes.ChunkWriter("chat", "chatcmpl-1", 7, "m", usage_asked=False)
    assert "usage" not in event(writer.piece(0, "hi"))


def test_the_finish_reason_comes_in_a_chunk_of_its_own() -> None:
    writer = shapes.ChunkWriter("chat", "chatcmpl-1", 7, "m", usage_asked=False)
    choice = {"index": 1, "logprobs": None}
    assert event(writer.piece(1, "hi"))["choices"] == [
        choice | {"delta": {"content": "hi"}, "finish_reason": None}
    ]
    assert event(writer.last(1, "stop"))["choices"] == [choice | {"delta": {}, "finish_reason": "stop"}]


def test_completions_have_text_and_no_role() -> None:
    writer = shapes.ChunkWriter("completions", "cmpl-1", 7, "m", usage_asked=False)
    assert writer.role(0) == b""
    assert event(writer.piece(0, "hi"))["object"] == "text_completion"
    assert event(writer.last(0, "length"))["choices"] == [
        {"index": 0, "text": "", "logprobs": None, "finish_reason": "length"}
    ]


@pytest.mark.parametrize(("kind", "field"), [("chat", "message"), ("completions", "text")])
def test_a_whole_answer_has_its_choices_in_order(kind: str, field: str) -> None:
    body = json.loads(
        shapes.whole_body(kind, "x-1", 7, "m", [("a", "stop"), ("b", "length")], Counts(1, 0, 2))
    )
    assert [choice["index"] for choice in body["choices"]] == [0, 1]
    assert all(field in choice for choice in body["choices"])
    assert body["usage"]["total_tokens"] == 3


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (shapes.bad_key(), 401, "invalid_api_key"),
        (shapes.unknown_argument("ignore_eos"), 400, None),
        (shapes.unknown_model("x"), 404, "model_not_found"),
        (shapes.bad_json(), 400, None),
        (shapes.rate_limited(1.5), 429, "rate_limit_exceeded"),
        (shapes.failure(503), 503, None),
        (shapes.unknown_url("GET", "/x"), 404, None),
    ],
)
def test_errors_have_openais_four_fields(error: shapes.ProviderError, status: int, code: str | None) -> None:
    fields = json.loads(error.body())["error"]
    assert set(fields) == {"message", "type", "param", "code"}
    assert (error.status, fields["code"]) == (status, code)


def test_only_errors_that_say_when_have_a_retry_header() -> None:
    assert shapes.rate_limited(0.25).headers() == {"retry-after": "0.25"}
    assert shapes.failure(429).headers() == {"retry-after": "1"}
    assert shapes.failure(503, retry_after=2).headers() == {"retry-after": "2"}
    assert shapes.failure(500).headers() == {}


def test_vllms_own_fields_are_unknown_to_a_strict_provider() -> None:
    assert not {"ignore_eos", "min_tokens", "top_k", "structured_outputs"} & shapes.KNOWN_FIELDS
    assert {"model", "messages", "stream_options", "max_completion_tokens"} <= shapes.KNOWN_FIELDS


def test_lists_are_lists() -> None:
    assert [card["id"] for card in json.loads(shapes.models_body(("a", "b"), 7))["data"]] == ["a", "b"]
    embeddings = json.loads(shapes.embeddings_body("m", 2, 9))
    assert (len(embeddings["data"]), embeddings["usage"]["prompt_tokens"]) == (2, 9)
