"""vLLM's answers, byte for byte as 0.32.0 writes them: stream chunks, whole completions, error bodies, model
cards.

Knows no sockets and no scheduler. Taken from real captures of 0.32.0 (`/v1/chat/completions`,
`/v1/completions`, `/v1/models`, `/tokenize`); the newest source read is 0.33.0 (`entrypoints/openai/`).
"""

import json

DONE = b"data: [DONE]\n\n"
_FINGERPRINT = '"system_fingerprint":"vllm-0.32.0-8f47572c"'
ENGINE_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."


class ChunkWriter:
    """Writes the SSE events of one choice; all that stays the same from chunk to chunk is made once.

    `with_usage` puts usage in every chunk (stream_options.continuous_usage_stats).
    """

    __slots__ = ("_body", "_chat", "_head", "_index", "_prompt_tokens", "_usage_asked", "with_usage")

    def __init__(
        self, kind: str, head: str, index: int, prompt_tokens: int, *, usage_asked: bool, with_usage: bool
    ) -> None:
        self._chat = kind == "chat"
        self._head = head
        self._index = index
        self._prompt_tokens = prompt_tokens
        self._usage_asked = usage_asked
        self.with_usage = with_usage
        opening = '"delta":{"content":"' if self._chat else '"text":"'
        self._body = f'{head}"choices":[{{"index":{index},{opening}'

    def role(self) -> bytes:
        """The first chunk of a chat choice; completions have none."""
        if not self._chat:
            return b""
        delta = '"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null'
        choice = f'{{"index":{self._index},{delta}}}'
        tail = f'{self._usage(0)},"prompt_token_ids":null,"prompt_text":null}}\n\n'
        return f'{self._head}"choices":[{choice}]{tail}'.encode()

    def piece(self, text: str, completion_tokens: int, finish_reason: str | None = None) -> bytes:
        """A chunk with text; with a finish reason it is the choice's last."""
        reason = f'"{finish_reason}"' if finish_reason else "null"
        if self._chat:
            stop = ',"stop_reason":null' if finish_reason else ""
            tail = f'"}},"logprobs":null,"finish_reason":{reason}{stop},"token_ids":null}}]'
        else:
            ids = '"prompt_token_ids":null,"token_ids":null}]'
            tail = f'","logprobs":null,"finish_reason":{reason},"stop_reason":null,{ids}'
        # The fingerprint rides on the last chunk of all: this one, unless a usage chunk follows.
        last = f",{_FINGERPRINT}" if finish_reason and not self._usage_asked else ""
        return f"{self._body}{text}{tail}{self._usage(completion_tokens)}{last}}}\n\n".encode()

    def _usage(self, completion_tokens: int) -> str:
        if not self.with_usage:
            return ""
        counts = _counts(self._prompt_tokens, completion_tokens)
        return f',"usage":{{{counts},"completion_tokens_details":null}}'


def stream_head(kind: str, request_id: str, created: int, model: str) -> str:
    """How every event of a stream begins."""
    shape = "chat.completion.chunk" if kind == "chat" else "text_completion"
    identity = f'"id":{json.dumps(request_id)},"object":"{shape}"'
    return f'data: {{{identity},"created":{created},"model":{json.dumps(model)},'


def usage_event(head: str, prompt_tokens: int, completion_tokens: int) -> bytes:
    """The chunk with usage and no choices that include_usage asks for."""
    counts = _counts(prompt_tokens, completion_tokens)
    return f'{head}"choices":[],"usage":{{{counts}}},{_FINGERPRINT}}}\n\n'.encode()


def error_event(message: str, kind: str = "InternalServerError", code: int = 500) -> bytes:
    """An error after the headers are out: status stays 200, `DONE` still follows. Spaces as vLLM has them
    here.
    """
    error = {"message": message, "type": kind, "param": None, "code": code}
    return f"data: {json.dumps({'error': error})}\n\n".encode()


def error_body(status: int, message: str, kind: str, param: str | None = None) -> bytes:
    """The body of an error status (0.10+): `code` is the HTTP status as a number."""
    return _compact({"error": {"message": message, "type": kind, "param": param, "code": status}})


def whole_body(
    kind: str,
    request_id: str,
    created: int,
    model: str,
    choices: list[tuple[str, str]],
    prompt_tokens: int,
    completion_tokens: int,
) -> bytes:
    """A non-streamed answer; `choices` are (text, finish reason) in order."""
    chat = kind == "chat"
    usage = {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
        "prompt_tokens_details": None,
        "completion_tokens_details": None,
    }
    make = _chat_choice if chat else _text_choice
    answer: dict[str, object] = {
        "id": request_id,
        "object": "chat.completion" if chat else "text_completion",
        "created": created,
        "model": model,
        "choices": [make(index, text, reason) for index, (text, reason) in enumerate(choices)],
        "service_tier": None,
        "system_fingerprint": "vllm-0.32.0-8f47572c",
        "usage": usage,
    }
    absent = ("prompt_logprobs", "prompt_token_ids", "prompt_text") if chat else ()
    return _compact(answer | dict.fromkeys((*absent, "kv_transfer_params", "ec_transfer_params", "metrics")))


def models_body(names: tuple[str, ...], root: str, created: int, max_model_len: int) -> bytes:
    """GET /v1/models."""
    cards = [
        {
            "id": name,
            "object": "model",
            "created": created,
            "owned_by": "vllm",
            "root": root,
            "parent": None,
            "max_model_len": max_model_len,
            "permission": [_permission(name, created)],
        }
        for name in names
    ]
    return _compact({"object": "list", "data": cards})


def tokens_body(count: int, max_model_len: int) -> bytes:
    """POST /tokenize; the ids mean nothing, only their number does."""
    return _compact(
        {"count": count, "max_model_len": max_model_len, "tokens": [4] * count, "token_strs": None}
    )


def _chat_choice(index: int, text: str, reason: str) -> dict[str, object]:
    nothing = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning"))
    message = {"role": "assistant", "content": text, **nothing}
    return {
        "index": index,
        "message": message,
        "logprobs": None,
        "finish_reason": reason,
        "stop_reason": None,
        "token_ids": None,
        "routed_experts": None,
    }


def _text_choice(index: int, text: str, reason: str) -> dict[str, object]:
    nothing = dict.fromkeys(
        ("stop_reason", "token_ids", "prompt_logprobs", "prompt_token_ids", "routed_experts")
    )
    return {"index": index, "text": text, "logprobs": None, "finish_reason": reason, **nothing}


def _permission(name: str, created: int) -> dict[str, object]:
    return {
        "id": f"modelperm-{name}",
        "object": "model_permission",
        "created": created,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }


def _counts(prompt_tokens: int, completion_tokens: int) -> str:
    total = prompt_tokens + completion_tokens
    return f'"prompt_tokens":{prompt_tokens},"total_tokens":{total},"completion_tokens":{completion_tokens}'


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
