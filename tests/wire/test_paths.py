"""The table of paths."""

import pytest

from gateway.wire.paths import PATHS, find

KINDS = {
    "chat", "completions", "responses", "embeddings", "messages", "rerank", "score", "classify", "pooling",
    "tokenize", "detokenize", "transcription",
}  # fmt: skip


def test_every_promised_path_is_there() -> None:
    promised = {
        "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings", "/v1/messages",
        "/v1/rerank", "/v1/score", "/v1/classify", "/pooling", "/tokenize", "/detokenize",
        "/v1/audio/transcriptions",
    }  # fmt: skip
    assert promised <= {path.path for path in PATHS}
    assert {path.kind for path in PATHS} == KINDS


def test_every_row_can_be_found_and_is_there_once() -> None:
    assert all(find(path.method, path.path) is path for path in PATHS)
    assert len({(path.method, path.path) for path in PATHS}) == len(PATHS)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/chat/completions"),
        ("post", "/v1/chat/completions"),
        ("POST", "/v1/chat/completions/"),
        ("POST", "/v1/chat"),
        ("POST", ""),
    ],
)
def test_anything_else_is_not_a_path_of_ours(method: str, path: str) -> None:
    assert find(method, path) is None


def test_only_what_endpoints_have_in_the_same_shape_may_leave_the_engines() -> None:
    assert {path.kind for path in PATHS if path.on_endpoints} == {
        "chat",
        "completions",
        "responses",
        "embeddings",
    }


def test_counting_tokens_generates_nothing() -> None:
    count = find("POST", "/v1/messages/count_tokens")
    assert count is not None
    assert (count.generates, count.streams, count.anthropic) == (False, False, True)


def test_vllm_has_classify_outside_v1() -> None:
    assert {path.path: path.engine_path for path in PATHS if path.engine_path != path.path} == {
        "/v1/classify": "/classify"
    }


def test_every_row_says_in_one_line_what_it_is_for() -> None:
    assert all(path.summary.endswith(".") and "\n" not in path.summary for path in PATHS)
