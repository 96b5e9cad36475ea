"""Why vLLM would refuse a request body, in its own words: a list of checks in the order in which 0.32.0 makes
them.

Knows nothing of load: a refusal here depends on the body and the engine's fixed limits only. Texts, types and
params from real captures of 0.32.0; matching clients should still go by status and param, texts change by
version.
"""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gateway.simulator.generation import Ask, read_ask


class Refusal(NamedTuple):
    """An error status with vLLM's error fields."""

    status: int
    message: str
    kind: str
    param: str | None


class Limits(NamedTuple):
    """What an engine serves: its names (the first is the real one) and its window in tokens."""

    names: tuple[str, ...]
    max_model_len: int


BUSY = Refusal(
    503,
    "The engine is currently busy and cannot accept new requests. "
    "Please try again later or on a different instance.",
    "Service Unavailable",
    None,
)


def read_body(kind: str, content_type: str, body: bytes, limits: Limits) -> Ask | Refusal:
    """The request, or why it is refused. `kind` is "chat" or "completions"."""
    parsed = parse_object(content_type, body)
    if isinstance(parsed, Refusal):
        return parsed
    ask = read_ask(kind, parsed)
    for check in _CHECKS:
        refusal = check(ask, parsed, limits)
        if refusal is not None:
            return refusal
    return ask


def parse_object(content_type: str, body: bytes) -> dict[str, object] | Refusal:
    """The JSON object in a body, or the validation error that vLLM makes of anything else."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        return _invalid("Unsupported Media Type: Only 'application/json' is allowed", None)
    if not body:
        return _invalid(
            "{'type': 'missing', 'loc': 'body', 'msg': 'Field required', 'input': 'None'}", "body"
        )
    try:
        value = json.loads(body)
    except json.JSONDecodeError as error:
        where = f"body.{error.pos}"
        context = f"'input': '<dict of 0 items>', 'ctx': {{'error': '{error.msg}'}}"
        return _invalid(
            f"{{'type': 'json_invalid', 'loc': '{where}', 'msg': 'JSON decode error', {context}}}", where
        )
    except (UnicodeDecodeError, RecursionError):
        return _invalid("There was an error parsing the body", "body")
    if not isinstance(value, dict):
        return _invalid(
            "{'type': 'model_attributes_type', 'loc': 'body', 'msg': 'Input should be a valid dictionary'}",
            "body",
        )
    return value


def effective_max_tokens(ask: Ask, max_model_len: int) -> int:
    """Since 0.32 the limit is cut to the window instead of refused.

    Completions without one get 16, chat the rest.
    """
    room = max_model_len - ask.prompt_tokens
    default = room if ask.kind == "chat" else 16
    return min(default if ask.max_tokens is None else ask.max_tokens, room)


def _content_is_there(ask: Ask, body: Mapping[str, object], limits: Limits) -> Refusal | None:
    field = "messages" if ask.kind == "chat" else "prompt"
    if field in body:
        return None
    where = f"body.{field}"
    found = f"<dict of {len(body)} items>"
    return _invalid(
        f"{{'type': 'missing', 'loc': '{where}', 'msg': 'Field required', 'input': '{found}'}}", where
    )


def _limit_is_a_number(ask: Ask, body: Mapping[str, object], limits: Limits) -> Refusal | None:
    limit = body.get("max_tokens")
    if limit is None or isinstance(limit, int):
        return None
    text = "Input should be a valid integer, unable to parse string as an integer"
    return _invalid(
        f"{{'type': 'int_parsing', 'loc': 'body.max_tokens', 'msg': '{text}', 'input': '{limit}'}}",
        "body.max_tokens",
    )


def _options_fit(ask: Ask, body: Mapping[str, object], limits: Limits) -> Refusal | None:
    if body.get("stream_options") is None or ask.stream:
        return None
    return _bad(
        "Stream options can only be defined when `stream=True`. (parameter=stream_options)", "stream_options"
    )


def _model_is_known(ask: Ask, body: Mapping[str, object], limits: Limits) -> Refusal | None:
    if ask.model is None or ask.model in limits.names:
        return None
    known = ", ".join(limits.names)
    return Refusal(
        404, f"The model `{ask.model}` does not exist. Valid aliases: {known}.", "NotFoundError", "model"
    )


def _conversation_is_not_empty(ask: Ask, body: Mapping[str, object], limits: Limits) -> Refusal | None:
    if body.get("messages") != []:
        return None
    return _bad("Cannot apply chat template to an empty conversation. Provide at least one message.", None)


def _prompt_fits(ask: Ask, body: Mapping[str, object], limits: Limits) -> Refusal | None:
    window = limits.max_model_len
    # A prompt of exactly the window is refused too: no room for one token of answer.
    if ask.prompt_tokens < window:
        return None
    at_least = window + 1 if ask.prompt_tokens > window else window
    return _bad(
        f"This model's maximum context length is {window} tokens. However, your prompt contains at least "
        f"{at_least} input tokens, which exceeds this limit even without any output tokens. Please reduce "
        f"the length of the input prompt. (parameter=input_tokens, value={at_least})",
        "input_tokens",
    )


def _limit_fits(ask: Ask, body: Mapping[str, object], limits: Limits) -> Refusal | None:
    limit, window = ask.max_tokens, limits.max_model_len
    if limit is None:
        return None
    if limit < 1:
        return _bad(
            f"max_tokens must be at least 1, got {limit}. (parameter=max_tokens, value={limit})", "max_tokens"
        )
    if limit > window:
        return _bad(
            f"max_tokens={limit} cannot be greater than max_model_len={window}. "
            f"Please request fewer output tokens. (parameter=max_tokens, value={limit})",
            "max_tokens",
        )
    if ask.min_tokens > limit:
        return _bad(
            f"min_tokens must be less than or equal to max_tokens={limit}, got {ask.min_tokens}.", None
        )
    return None


def _choices_fit(ask: Ask, body: Mapping[str, object], limits: Limits) -> Refusal | None:
    count = body.get("n")
    if count is None or (isinstance(count, int) and count >= 1):
        return None
    return _bad(f"n must be at least 1, got {count}.", None)


_Check = Callable[[Ask, Mapping[str, object], Limits], Refusal | None]
_CHECKS: tuple[_Check, ...] = (
    _content_is_there,
    _limit_is_a_number,
    _options_fit,
    _model_is_known,
    _conversation_is_not_empty,
    _prompt_fits,
    _limit_fits,
    _choices_fit,
)


def _invalid(detail: str, param: str | None) -> Refusal:
    return Refusal(400, f"1 validation error:\n  {detail}", "Bad Request", param)


def _bad(message: str, param: str | None) -> Refusal:
    return Refusal(400, message, "BadRequestError", param)
