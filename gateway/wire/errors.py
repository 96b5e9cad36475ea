"""Errors as they look on the wire: written in OpenAI's shape, read in every shape that targets use.

Knows no statuses and decides nothing.
"""

import json
import re
from collections.abc import Collection
from typing import Any, NamedTuple

_MAX_MESSAGE = 2000
_NO_TEXT = "the target gave no error text"
# What looks like a credential in a provider's text: keys by their common prefixes, and whole Bearer values.
_CREDENTIAL = re.compile(
    r"\b(?:bearer\s+\S{8,}|sk[-_][\w*-]{8,}|(?:hf|gsk|xai|nvapi)[-_][A-Za-z0-9-]{16,})", re.IGNORECASE
)
_PAGE = "the target answered with a page"
_TITLE = re.compile(r"<title[^>]*>([^<]{1,200})", re.IGNORECASE)


class UpstreamProblem(NamedTuple):
    """What a target says went wrong; what it does not say is None. `code` is vLLM's number, or a word."""

    message: str
    type: str | None = None
    param: str | None = None
    code: str | int | None = None


def error_body(message: str, type: str, code: str | int | None, param: str | None = None) -> bytes:
    """`{"error": {...}}` as every client of the gateway sees it, in one line of ASCII."""
    error = {"message": message, "type": type, "param": param, "code": code}
    return json.dumps({"error": error}, separators=(",", ":")).encode()


def error_event(message: str, type: str, code: str | int | None, param: str | None = None) -> bytes:
    """The same as one server-sent event, for a stream whose status is long out."""
    return b"data: %b\n\n" % error_body(message, type, code, param)


def read_error(body: bytes, secrets: Collection[str] = ()) -> UpstreamProblem:
    """What an error body or event payload says; never raises.

    Takes vLLM's four shapes (contract §2.4: object, flat, Anthropic's, a bare string), FastAPI's `detail`,
    pages and garbage. The message is capped at 2000 characters; `secrets` and what looks like a key are taken
    out of it.
    """
    text = body.decode("utf-8", "replace").strip()
    try:
        return _problem_in(json.loads(text), secrets)
    except (ValueError, RecursionError):
        return UpstreamProblem(_clean(_page_text(text), secrets))


def _problem_in(parsed: Any, secrets: Collection[str]) -> UpstreamProblem:
    error = _error_part(parsed)
    if not isinstance(error, dict):
        return UpstreamProblem(_clean(_text_of(error), secrets))
    message = error.get("message") or error.get("detail")
    return UpstreamProblem(
        _clean(_text_of(message), secrets),
        _string(error.get("type")),
        _string(error.get("param")),
        _code(error.get("code")),
    )


def _error_part(parsed: Any) -> Any:
    """What carries the message: `error`, the one in a Responses event's `response`, or the whole."""
    if not isinstance(parsed, dict):
        return parsed
    response = parsed.get("response")
    if isinstance(response, dict) and response.get("error"):
        return response["error"]
    return parsed.get("error") or parsed


def _text_of(value: Any) -> str:
    if value is None or value == "":
        return _NO_TEXT
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _page_text(text: str) -> str:
    """An HTML page is no message: its title is, if it has one."""
    if not text:
        return _NO_TEXT
    if not text.startswith("<"):
        return text
    title = _TITLE.search(text)
    return f"{_PAGE}: {title[1].strip()}" if title else _PAGE


def _clean(message: str, secrets: Collection[str]) -> str:
    for secret in secrets:
        if secret:
            message = message.replace(secret, "[removed]")
    message = _CREDENTIAL.sub("[removed]", message[: 4 * _MAX_MESSAGE])
    # A lone surrogate would make the message impossible to encode.
    message = message.encode("utf-8", "replace").decode()
    return message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 1] + "…"


def _string(value: Any) -> str | None:
    return value.encode("utf-8", "replace").decode()[:200] if isinstance(value, str) else None


def _code(value: Any) -> str | int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return _string(value)
