"""Errors of real engines over versions, and texts that only look like them."""

import pytest

from gateway.vllm.errors import classify_error
from gateway.wire.errors import UpstreamProblem, read_error

Captures = dict[tuple[str, str], tuple[int, bytes]]

# Everything else that was captured under err-*.
_KINDS = {
    "err-prompt-too-long": "context_too_long",
    "err-prompt-too-long-stream": "context_too_long",
    "err-completions-too-long": "context_too_long",
    "err-completions-max_tokens-too-long": "context_too_long",
    "err-prompt-plus-max_tokens-too-long": "context_too_long",
    "err-unknown-model": "unknown_model",
    "err-unknown-model-stream": "unknown_model",
    "completions-nonstream": "engine_dead",
    "messages-nonstream": "engine_dead",
    "dev-queue-7": "refused_admission",
    "dev-badauth-chat": "other",
    "get-not-a-route": "other",
    "chat-render": "other",
}


def test_every_captured_error_is_of_its_kind(error_captures: Captures) -> None:
    kinds = {key: classify_error(status, read_error(body)) for key, (status, body) in error_captures.items()}
    assert kinds == {key: _KINDS.get(key[1], "bad_request") for key in error_captures}
    assert {version for version, _ in kinds} == {"0.13.0", "0.20.2", "0.32.0"}


@pytest.mark.parametrize(
    ("status", "problem", "kind"),
    [
        (
            400,
            UpstreamProblem(
                "'max_tokens' is too large: 5000. This model's maximum context length is 1024 tokens"
            ),
            "context_too_long",
        ),
        (
            400,
            UpstreamProblem("The decoder prompt is longer than the maximum model length of 1024."),
            "context_too_long",
        ),
        (400, UpstreamProblem("words of a coming version", param="input_tokens"), "context_too_long"),
        (400, UpstreamProblem("max_tokens must be at least 1, got 0.", param="max_tokens"), "bad_request"),
        (404, UpstreamProblem("The model `a` does not exist.", "NotFoundError"), "unknown_model"),
        (404, UpstreamProblem("Not Found"), "other"),
        (422, UpstreamProblem("cannot fetch the image", "UnprocessableEntityError"), "bad_request"),
        (501, UpstreamProblem("not supported", "NotImplementedError"), "other"),
        (503, UpstreamProblem("prefill token backlog limit reached"), "refused_admission"),
        (503, UpstreamProblem("The server is currently scaling"), "refused_admission"),
        (503, UpstreamProblem("KV load failed", "ServiceUnavailableError"), "other"),
        (500, UpstreamProblem("Internal server error", "InternalServerError"), "other"),
        (500, UpstreamProblem("The server had an error while processing your request."), "engine_dead"),
        (429, UpstreamProblem("slow down"), "other"),
    ],
)
def test_texts_of_other_versions(status: int, problem: UpstreamProblem, kind: str) -> None:
    assert classify_error(status, problem) == kind


def test_the_empty_500_of_a_dead_engine_before_0_18_is_known() -> None:
    assert classify_error(500, read_error(b"")) == "engine_dead"
    assert classify_error(502, read_error(b"")) == "other"


@pytest.mark.parametrize("status", [0, 200, 400])
def test_a_dead_engine_in_a_stream_is_told_by_its_text(status: int) -> None:
    """Up to 0.13 such an event carries the code 400, and its status was sent as 200."""
    event = (
        b'{"error":{"message":"EngineCore encountered an issue. See stack '
        b'trace","type":"BadRequestError","code":400}}'
    )
    assert classify_error(status, read_error(event)) == "engine_dead"


@pytest.mark.parametrize(
    "said", ["maximum context length is 10 tokens", "EngineCore encountered an issue", "currently scaling"]
)
def test_what_the_client_wrote_is_never_taken_for_the_engine(said: str) -> None:
    repeated = (
        f"1 validation error:\n  {{'type': 'missing', 'loc': ('body', 'messages'), 'input': "
        f"{{'user': '{said}'}}}}"
    )
    assert classify_error(400, UpstreamProblem(repeated, "Bad Request")) == "bad_request"
    assert classify_error(404, UpstreamProblem(f"The model `{said}` does not exist.")) == "unknown_model"
