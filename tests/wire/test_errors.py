"""Errors are written in one shape and read in all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.errors import UpstreamProblem, error_body, error_event, read_error

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "type", "param", "code", "detail", "object", "response"]),
            inner,
        )
    ),
    max_leaves=8,
)


def test_an_error_has_openais_four_members() -> None:
    assert json.loads(error_body("no", "server_error", "overloaded", "model")) == {
        "error": {"message": "no", "type": "server_error", "param": "model", "code": "overloaded"}
    }


@given(st.text(max_size=1000), st.none() | st.integers() | st.text(max_size=200))
def test_what_was_written_is_read_again(message: str, code: str | int | None) -> None:
    body = error_body(f"x{message}", "t", code)
    assert b"\n" not in body
    assert read_error(body) == UpstreamProblem(f"x{message}", "t", None, code)


def test_an_error_event_is_one_event_whatever_the_text() -> None:
    event = error_event("two\nlines\r\n\r\ndata: x", "server_error", 500)
    assert event.startswith(b"data: {")
    assert event.endswith(b"}\n\n")
    assert event.count(b"\n") == 2
    assert b"\r" not in event


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(
            b'{"error":{"message":"The model `nope` does not exist. Valid aliases: tiny.",'
            b'"type":"NotFoundError","param":"model","code":404}}',
            UpstreamProblem(
                "The model `nope` does not exist. Valid aliases: tiny.", "NotFoundError", "model", 404
            ),
            id="vllm 0.10 and later",
        ),
        pytest.param(
            b'{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}',
            UpstreamProblem("too long", "BadRequestError", None, 400),
            id="vllm up to 0.9, flat",
        ),
        pytest.param(
            b'{"type":"error","error":{"type":"InternalServerError",'
            b'"message":"EngineCore encountered an issue."}}',
            UpstreamProblem("EngineCore encountered an issue.", "InternalServerError", None, None),
            id="anthropic",
        ),
        pytest.param(b'{"error": "Unauthorized"}', UpstreamProblem("Unauthorized"), id="a string"),
        pytest.param(b'{"detail":"Not Found"}', UpstreamProblem("Not Found"), id="fastapi"),
        pytest.param(
            b'{"error":{"message":"quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}',
            UpstreamProblem("quota", "insufficient_quota", None, "insufficient_quota"),
            id="openai, code is a word",
        ),
        pytest.param(
            b'{"type":"response.failed","response":{"error":{"code":"server_error","message":"died"}}}',
            UpstreamProblem("died", None, None, "server_error"),
            id="responses event",
        ),
        pytest.param(
            b'{"type":"error","code":"x","message":"m","param":null}',
            UpstreamProblem("m", "error", None, "x"),
            id="responses error event",
        ),
        pytest.param(
            b"<html><head><title>502 Bad Gateway</title></head><body>nginx 10.0.0.5</body></html>",
            UpstreamProblem("the target answered with a page: 502 Bad Gateway"),
            id="html",
        ),
        pytest.param(
            b"<!doctype html>", UpstreamProblem("the target answered with a page"), id="html, no title"
        ),
        pytest.param(b"upstream connect error", UpstreamProblem("upstream connect error"), id="text"),
        pytest.param(
            b"", UpstreamProblem("the target gave no error text"), id="empty, vllm up to 0.17 when dead"
        ),
        pytest.param(b"{}", UpstreamProblem("the target gave no error text"), id="empty object"),
        pytest.param(b"null", UpstreamProblem("the target gave no error text"), id="null"),
        pytest.param(
            b'{"error":{"message":{"a":1},"type":5,"param":[],"code":true}}',
            UpstreamProblem('{"a": 1}'),
            id="odd types",
        ),
    ],
)
def test_every_shape_is_read(body: bytes, problem: UpstreamProblem) -> None:
    assert read_error(body) == problem


def test_a_detail_list_is_shown_as_it_is() -> None:
    problem = read_error(b'{"detail":[{"loc":["body"],"msg":"Field required"}]}')
    assert "Field required" in problem.message


def test_long_text_is_cut() -> None:
    message = read_error(json.dumps({"error": {"message": "x" * 100_000}}).encode()).message
    assert len(message) == 2000
    assert message.endswith("x…")


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abc_DEF123*****xyz.",
        "bad header Bearer eyJhbGciOi.J9.abc here",
        "token hf_abcdefghijklmnopqrst is revoked",
    ],
)
def test_what_looks_like_a_key_does_not_pass(text: str) -> None:
    message = read_error(json.dumps({"error": text}).encode()).message
    assert "[removed]" in message
    assert not any(part in message for part in ("abc_DEF123", "eyJhbGci", "abcdefghijkl"))


def test_known_secrets_do_not_pass_in_any_shape() -> None:
    assert read_error(b"no such key: planted", ["planted"]).message == "no such key: [removed]"
    assert read_error(b'{"error":{"message":"key planted"}}', ["planted", ""]).message == "key [removed]"


def test_ordinary_words_are_no_keys() -> None:
    text = "max_tokens=5000 cannot be greater than max_model_len=1024 (disk-backed, hf_hub, task-specific)"
    assert read_error(json.dumps({"error": text}).encode()).message == text


@given(ANYTHING | st.lists(ANYTHING))
def test_no_json_makes_reading_fail(value: object) -> None:
    _assert_sound(read_error(json.dumps(value).encode()))


@given(st.binary(max_size=60))
def test_no_bytes_make_reading_fail(body: bytes) -> None:
    _assert_sound(read_error(body))


@pytest.mark.parametrize("depth", [300, 900, 980, 990, 1000, 5000])
def test_depth_does_not_make_reading_fail(depth: int) -> None:
    _assert_sound(read_error(b'{"error":' + b"[" * depth + b"]" * depth + b"}"))


def _assert_sound(problem: UpstreamProblem) -> None:
    assert 0 < len(problem.message) <= 2000
    assert error_body(problem.message, problem.type or "t", problem.code, problem.param)
    for text in problem:
        assert not isinstance(text, str) or text.encode() is not None
    assert problem.code is None or type(problem.code) in (int, str)
