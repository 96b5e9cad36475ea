"""What deciding needs to know of a request body, read without judging it.

A wrong type is the engine's to refuse, in its own words: the fact is then unknown here. Knows no models and
no policies.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from gateway.wire.body import BadBody, JsonObject
from gateway.wire.paths import Path

# Sampling, tracing and cache members that only vLLM knows (contract §2.2; request schemas of 0.13.0, 0.20.2
# and 0.32.0). An endpoint refuses or ignores them: they are taken out on the way there, and named to the
# client.
_DROPPED_FIELDS = frozenset({
    "priority", "min_tokens", "ignore_eos", "stop_token_ids", "top_k", "min_p", "repetition_penalty",
    "length_penalty", "include_stop_str_in_output", "skip_special_tokens", "spaces_between_special_tokens",
    "add_special_tokens", "truncation_side", "include_reasoning", "thinking_token_budget",
    "repetition_detection", "watermarking", "media_io_kwargs", "mm_processor_kwargs", "cache_salt",
    "request_id", "session_id", "stream_interval", "return_token_offsets", "return_prompt_text",
    "return_mm_kwargs", "return_weight_versions", "routed_experts_prompt_start", "guided_decoding_backend",
    "guided_whitespace_pattern", "embed_dtype",
    "endianness", "enable_response_messages",
})  # fmt: skip
# Members without which the answer would be another one, or lack what was asked for: such a request stays
# local.
LOCAL_ONLY_FIELDS = frozenset({
    "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structural_tag",
    "kv_transfer_params", "ec_transfer_params", "mm_payload", "prompt_embeds", "truncate_prompt_tokens",
    "chat_template", "chat_template_kwargs", "continue_final_message", "add_generation_prompt", "documents",
    "use_beam_search", "allowed_token_ids", "bad_words", "logits_processors", "vllm_xargs", "prompt_logprobs",
    "logprob_token_ids", "return_token_ids", "return_tokens_as_token_ids", "previous_input_messages",
})  # fmt: skip
VLLM_ONLY_FIELDS = _DROPPED_FIELDS | LOCAL_ONLY_FIELDS
# What vLLM takes these for when they are not given (same schemas).
_DEFAULTS = {"add_generation_prompt": True, "mm_payload": "tensors"}

_MAX_TOKENS_FIELDS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
# OpenAI's and vLLM's default for /v1/completions alone; an explicit null there means no limit.
_COMPLETIONS_MAX_TOKENS = 16
# Top-level members of all kinds that hold text for the model.
_TEXT_FIELDS = (
    "messages", "prompt", "input", "system", "instructions", "suffix", "query", "documents",
    "text_1", "text_2", "queries", "data_1", "data_2",
)  # fmt: skip
# Members inside messages and parts that hold text, or more of these.
_INNER_TEXT = (
    "content", "text", "refusal", "reasoning", "reasoning_content", "thinking", "name",
    "tool_calls", "function", "function_call", "arguments", "output", "summary",
)  # fmt: skip
_MEDIA_TYPES = frozenset({
    "image_url", "input_image", "image", "image_pil", "image_embeds", "video_url", "input_video", "audio_url",
    "input_audio", "audio_embeds", "file", "input_file", "document",
})  # fmt: skip
# Where a kind takes token ids in place of text.
_IDS_FIELDS = {
    "completions": "prompt",
    "tokenize": "prompt",
    "embeddings": "input",
    "pooling": "input",
    "classify": "input",
}
_AFFINITY_CHARACTERS = 1024
_AFFINITY_TOKENS = 256


class Peek(NamedTuple):
    """Facts of one request. What is not given, or of a wrong type, is None (or the default that vLLM has).

    `choices` counts sequences over all `prompts`; `text_bytes` and `token_ids` are totals over all prompts.
    `images` counts parts whose tokens cannot be told from text: images, video, audio, files. `affinity_text`
    is the start of the prompt. `local_only_fields` are there and have an effect; `vllm_fields` are all that
    an endpoint would not know.
    """

    model: str | None = None
    stream: bool = False
    usage_asked: bool = False
    max_tokens: int | None = None
    min_tokens: int = 0
    choices: int = 1
    priority: int = 0
    text_bytes: int = 0
    token_ids: int | None = None
    images: int = 0
    affinity_text: str = ""
    local_only_fields: tuple[str, ...] = ()
    vllm_fields: tuple[str, ...] = ()
    prompts: int = 1


def peek(body: JsonObject, path: Path) -> Peek:
    """The facts of a JSON request. Raises BadBody only where nothing could be decided: `model` is no text."""
    prompts = _prompts(body.get("prompt")) if path.kind == "completions" else 1
    text_bytes, images = _weigh(body)
    return Peek(
        model=_model(body.get("model")),
        stream=path.streams and body.get("stream") is True,
        usage_asked=_asks_for_usage(body.get("stream_options")),
        max_tokens=_max_tokens(body, path),
        min_tokens=_whole(body.get("min_tokens"), at_least=0) or 0,
        choices=max(_whole(body.get("n")) or 1, _whole(body.get("best_of")) or 1) * prompts,
        priority=_priority(body.get("priority")),
        text_bytes=text_bytes,
        token_ids=_token_ids(body.get(_IDS_FIELDS.get(path.kind, ""))),
        images=images,
        affinity_text=_affinity_text(body),
        local_only_fields=_local_only(body, path),
        vllm_fields=tuple(key for key in body.members if key in VLLM_ONLY_FIELDS)
        if path.on_endpoints
        else (),
        prompts=prompts,
    )


def peek_form(body: bytes, path: Path) -> Peek:
    """The facts of a multipart form (transcription): its model, and whether it streams. Raises BadBody."""
    try:
        model = (_form_value(body, b"model") or b"").decode()
    except UnicodeDecodeError as error:
        raise BadBody("`model` must be valid Unicode", "model") from error
    return Peek(model=model or None, stream=path.streams and _form_value(body, b"stream") == b"true")


def ask_for_usage(body: JsonObject, kind: str = "chat") -> dict[str, str]:
    """Edits (for JsonObject.edited) that make a chat or completions stream end with its usage, or {}.

    Other keys of `stream_options` stay. One of a wrong type is left for the engine to refuse, and so is a
    request that does not stream: vLLM refuses stream options there.
    """
    options = body.get("stream_options")
    if kind not in ("chat", "completions") or body.get("stream") is not True:
        return {}
    if not options and (options is None or isinstance(options, dict)):
        return {"stream_options": '{"include_usage":true}'}
    if not isinstance(options, dict) or _asks_for_usage(options):
        return {}
    try:
        asked = JsonObject.parse(body.source(body.members["stream_options"])).edited(
            {"include_usage": "true"}
        )
    except BadBody:
        return {}
    return {"stream_options": asked.decode()}


def _model(model: Any) -> str | None:
    """vLLM serves a request without a model, or with an empty one, by its default."""
    if model is None or model == "":
        return None
    if not isinstance(model, str):
        raise BadBody("`model` must be a string", "model")
    if not _is_unicode(model):
        raise BadBody("`model` must be valid Unicode", "model")
    return model


def _asks_for_usage(options: Any) -> bool:
    """Anything but null and false: vLLM reads "yes" and 1 as true, and what was asked for is passed on."""
    return isinstance(options, dict) and options.get("include_usage") not in (None, False)


def _max_tokens(body: JsonObject, path: Path) -> int | None:
    for key in _MAX_TOKENS_FIELDS:
        given = _whole(body.get(key))
        if given is not None:
            return given
    if path.kind == "completions" and "max_tokens" not in body:
        return _COMPLETIONS_MAX_TOKENS
    return None


def _whole(value: Any, at_least: int = 1) -> int | None:
    return value if type(value) is int and value >= at_least else None


def _priority(value: Any) -> int:
    return value if type(value) is int else 0


def _local_only(body: JsonObject, path: Path) -> tuple[str, ...]:
    if not path.on_endpoints:
        return ()
    names = [key for key in body.members if key in LOCAL_ONLY_FIELDS and _has_effect(key, body.get(key))]
    ids_field = _IDS_FIELDS.get(path.kind, "")
    if _token_ids(body.get(ids_field)) is not None:
        # Token ids mean something in one vocabulary only.
        names.append(ids_field)
    if path.kind == "embeddings" and "messages" in body:
        names.append("messages")
    response_format = body.get("response_format")
    if isinstance(response_format, dict) and response_format.get("type") == "structural_tag":
        names.append("response_format")
    return tuple(names)


def _has_effect(key: str, value: Any) -> bool:
    """Null, empty and vLLM's own default ask for nothing. A zero may: `prompt_logprobs: 0` does."""
    if key in _DEFAULTS:
        return value is not None and value != _DEFAULTS[key]
    return value is not None and value is not False and value not in ("", [], {})


# --- Prompts ---


def _prompts(prompt: Any) -> int:
    """A list of texts or of token lists is that many prompts; a list of token ids is one."""
    if isinstance(prompt, list) and prompt and not _is_token_list(prompt):
        return len(prompt)
    return 1


def _token_ids(prompt: Any) -> int | None:
    """Tokens of a prompt that is given as ids, over all prompts; None where it is text."""
    if not isinstance(prompt, list) or not prompt:
        return None
    if _is_token_list(prompt):
        return len(prompt)
    lists = [part for part in prompt if _is_token_list(part)]
    return sum(map(len, lists)) if lists else None


def _is_token_list(value: Any) -> bool:
    # The first one tells: looking at each of 100,000 ids would cost more than routing does.
    return isinstance(value, list) and bool(value) and type(value[0]) is int


def _weigh(body: JsonObject) -> tuple[int, int]:
    """(UTF-8 bytes of all text for the model, media parts). Tool definitions count as they were written."""
    text_bytes, images = body.length_of("tools") + body.length_of("functions"), 0
    waiting = [body.get(key) for key in _TEXT_FIELDS]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            text_bytes += len(part) if part.isascii() else len(part.encode("utf-8", "surrogatepass"))
        elif isinstance(part, list):
            if not _is_token_list(part):
                waiting.extend(part)
        elif isinstance(part, dict):
            if _is_media(part):
                images += 1
            else:
                waiting.extend(part[key] for key in _INNER_TEXT if key in part)
    return text_bytes, images


def _is_media(part: dict[str, Any]) -> bool:
    kind = part.get("type")
    if isinstance(kind, str):
        return kind in _MEDIA_TYPES
    # vLLM takes parts without a type, such as {"image_url": "..."}.
    return "role" not in part and not _MEDIA_TYPES.isdisjoint(part)


# --- Affinity ---


def _affinity_text(body: JsonObject) -> str:
    """The start of what the model reads: what a prefix cache would share. Always encodable as UTF-8."""
    pieces: list[str] = []
    wanted = _AFFINITY_CHARACTERS
    for text in _leading_texts(body):
        pieces.append(text[:wanted])
        wanted -= len(text) + 1
        if wanted <= 0:
            break
    joined = "\n".join(pieces)
    return joined if _is_unicode(joined) else joined.encode("utf-8", "replace").decode()


def _leading_texts(body: JsonObject) -> Iterator[str]:
    """System texts, then messages up to the first of the user, or the first prompt."""
    for key in ("system", "instructions"):
        yield from _texts(body.get(key))
    for key in ("messages", "prompt", "input", "query"):
        value = body.get(key)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield from _first_turn(value)
        elif isinstance(value, list):
            yield from _first_prompt(value)
        else:
            yield from _texts(value)


def _first_prompt(prompts: list[Any]) -> Iterator[str]:
    ids = prompts if _is_token_list(prompts) else prompts[0] if prompts else None
    if isinstance(ids, list) and _is_token_list(ids):
        yield " ".join(map(str, ids[:_AFFINITY_TOKENS]))
    else:
        yield from islice(_texts(prompts), 1)


def _first_turn(messages: list[Any]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, dict):
            yield from _texts(message.get("content"))
            if message.get("role") == "user":
                return


def _texts(content: Any) -> Iterator[str]:
    """A text, or the texts of a list of parts."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            text = part.get("text") if isinstance(part, dict) else part
            if isinstance(text, str):
                yield text


def _is_unicode(text: str) -> bool:
    """False where it holds half of a surrogate pair, as JSON may write one."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- Forms ---


def _form_value(body: bytes, name: bytes) -> bytes | None:
    """A text field of a multipart form (RFC 7578), or None. The files in it are skipped, not read."""
    delimiter = body[: max(0, body.find(b"\r\n"))]
    marker = b'; name="%b"' % name
    at = 0 if delimiter.startswith(b"--") else -1
    while at >= 0:
        head_end = body.find(b"\r\n\r\n", at)
        end = body.find(b"\r\n" + delimiter, head_end)
        if head_end < 0 or end < 0:
            return None
        head = body[at:head_end]
        if marker in head and b"filename=" not in head:
            return body[head_end + 4 : end]
        at = end + 2
    return None
