"""The answers of an OpenAI-compatible per-token endpoint: chunks, whole bodies, errors, in OpenAI's own
shape.

Knows no sockets and no money. After OpenAI's API reference: with include_usage every chunk has `usage` (null
but in the last one, which has no choices), errors carry a text code, and an unknown argument is refused by
name.
"""

import json
from typing import NamedTuple

DONE = b"data: [DONE]\n\n"

# What strict providers know; anything else in a body is refused. vLLM's extensions are not among them.
# fmt: off
KNOWN_FIELDS = frozenset((
    "model", "messages", "prompt", "input", "stream", "stream_options", "max_tokens",
    "max_completion_tokens", "temperature", "top_p", "n", "stop", "seed", "user",
    "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs",
    "response_format", "tools", "tool_choice", "parallel_tool_calls", "metadata", "store",
    "service_tier", "reasoning_effort", "suffix", "echo", "best_of", "encoding_format",
    "dimensions", "modalities", "prediction", "verbosity", "safety_identifier", "prompt_cache_key",
))
# fmt: on


class Counts(NamedTuple):
    """Tokens of one answer; `cached` are among `prompt`."""

    prompt: int
    cached: int
    completion: int


class ProviderError(NamedTuple):
    """An error status in OpenAI's shape; `retry_after` in seconds becomes a header."""

    status: int
    message: str
    kind: str
    code: str | None = None
    param: str | None = None
    retry_after: float | None = None

    def body(self) -> bytes:
        """The JSON body."""
        fields = {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}
        return _compact({"error": fields})

    def headers(self) -> dict[str, str]:
        """Header lines beside the body."""
        return {} if self.retry_after is None else {"retry-after": f"{self.retry_after:g}"}


def bad_key() -> ProviderError:
    """The key is missing or wrong."""
    return ProviderError(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key")


def unknown_argument(name: str) -> ProviderError:
    """A body field that this provider does not know."""
    return ProviderError(400, f"Unrecognized request argument supplied: {name}", "invalid_request_error")


def unknown_model(name: str | None) -> ProviderError:
    """A model that is not offered."""
    message = f"The model `{name}` does not exist or you do not have access to it."
    return ProviderError(404, message, "invalid_request_error", "model_not_found", "model")


def bad_request(message: str, param: str | None = None) -> ProviderError:
    """A body that cannot be served."""
    return ProviderError(400, message, "invalid_request_error", None, param)


def bad_json() -> ProviderError:
    """A body that is no JSON object."""
    return bad_request("We could not parse the JSON body of your request.")


def unknown_url(method: str, path: str) -> ProviderError:
    """A path that is not served."""
    return ProviderError(404, f"Invalid URL ({method} {path})", "invalid_request_error")


def rate_limited(retry_after: float) -> ProviderError:
    """Too many requests."""
    message = f"Rate limit reached. Please try again in {retry_after:g}s."
    return ProviderError(429, message, "requests", "rate_limit_exceeded", None, retry_after)


def failure(status: int, retry_after: float | None = None) -> ProviderError:
    """A made-up failure with any status."""
    if status == 429:
        return rate_limited(1.0 if retry_after is None else retry_after)
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return ProviderError(
        status, "The server had an error while processing your request.", kind, None, None, retry_after
    )


class ChunkWriter:
    """Writes the SSE events of one stream, one choice each."""

    __slots__ = ("_chat", "_head", "_tail")

    def __init__(self, kind: str, answer_id: str, created: int, model: str, *, usage_asked: bool) -> None:
        self._chat = kind == "chat"
        shape = "chat.completion.chunk" if self._chat else "text_completion"
        identity = f'"id":{json.dumps(answer_id)},"object":"{shape}","created":{created}'
        self._head = (
            f'data: {{{identity},"model":{json.dumps(model)},"system_fingerprint":"fp_fake","choices":['
        )
        self._tail = '],"usage":null}\n\n' if usage_asked else "]}\n\n"

    def role(self, index: int) -> bytes:
        """The first chunk of a chat choice; completions have none."""
        return (
            self._choice(index, '"delta":{"role":"assistant","content":"","refusal":null}', None)
            if self._chat
            else b""
        )

    def piece(self, index: int, text: str) -> bytes:
        """A chunk with text, which must need no escaping."""
        return self._choice(
            index, f'"delta":{{"content":"{text}"}}' if self._chat else f'"text":"{text}"', None
        )

    def last(self, index: int, reason: str) -> bytes:
        """The chunk with the finish reason, without text."""
        return self._choice(index, '"delta":{}' if self._chat else '"text":""', reason)

    def usage(self, counts: Counts) -> bytes:
        """The chunk without choices."""
        return (
            f'{self._head}],"usage":{json.dumps(usage_object(counts), separators=(",", ":"))}}}\n\n'.encode()
        )

    def _choice(self, index: int, content: str, reason: str | None) -> bytes:
        ended = f'"{reason}"' if reason else "null"
        choice = f'{{"index":{index},{content},"logprobs":null,"finish_reason":{ended}}}'
        return f"{self._head}{choice}{self._tail}".encode()


def usage_object(counts: Counts) -> dict[str, object]:
    """`usage` with details, as OpenAI sends it."""
    return {
        "prompt_tokens": counts.prompt,
        "completion_tokens": counts.completion,
        "total_tokens": counts.prompt + counts.completion,
        "prompt_tokens_details": {"cached_tokens": counts.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def whole_body(
    kind: str, answer_id: str, created: int, model: str, choices: list[tuple[str, str]], counts: Counts
) -> bytes:
    """A non-streamed answer; `choices` are (text, finish reason) in order."""
    made: list[dict[str, object]] = []
    for index, (text, reason) in enumerate(choices):
        content = (
            {"message": {"role": "assistant", "content": text, "refusal": None}}
            if kind == "chat"
            else {"text": text}
        )
        made.append({"index": index, **content, "logprobs": None, "finish_reason": reason})
    return _compact(
        {
            "id": answer_id,
            "object": "chat.completion" if kind == "chat" else "text_completion",
            "created": created,
            "model": model,
            "choices": made,
            "usage": usage_object(counts),
            "system_fingerprint": "fp_fake",
        }
    )


def embeddings_body(model: str, count: int, prompt_tokens: int) -> bytes:
    """POST /v1/embeddings: small made-up vectors."""
    rows = [{"object": "embedding", "index": index, "embedding": [0.1, 0.2, 0.3]} for index in range(count)]
    usage = {"prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens}
    return _compact({"object": "list", "data": rows, "model": model, "usage": usage})


def models_body(names: tuple[str, ...], created: int) -> bytes:
    """GET /v1/models."""
    cards = [{"id": name, "object": "model", "created": created, "owned_by": "provider"} for name in names]
    return _compact({"object": "list", "data": cards})


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
