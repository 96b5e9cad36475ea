"""What a fake model is asked for and what it says: requests read, tokens counted, text and lengths made up,
repeatably.

Knows no engine and no endpoint: nothing here is refused, only read. The same body always gives the same text
and the same length, so that two runs of a test or a demo can be compared.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gateway.workload.text import tokens_in

# (prompt tokens, most tokens it may make, hash of the request in 0..2**64) -> tokens it makes before it
# stops by itself.
OutputLength = Callable[[int, int, int], int]

_WORDS = (
    " the", " queue", " block", " engine", " token", " cache", " answer", " route",
    " model", " stream", " batch", " prompt", " reads", " holds", " sends", ",",
)  # fmt: skip


class Ask(NamedTuple):
    """One generation request as both fakes need it.

    `max_tokens` None: not said. `text`: what the prompt is known by.
    """

    kind: str
    model: str | None
    stream: bool
    include_usage: bool
    continuous_usage: bool
    prompt_tokens: int
    prompts: int
    max_tokens: int | None
    min_tokens: int
    ignore_eos: bool
    choices: int
    text: bytes
    seed: int


def read_ask(kind: str, body: Mapping[str, object]) -> Ask:
    """Read a chat (`kind` "chat") or completions body. Fields of a wrong type count as absent."""
    options = body.get("stream_options")
    options = options if isinstance(options, dict) else {}
    content = _content(body)
    limit = (
        body.get("max_completion_tokens") or body.get("max_tokens")
        if kind == "chat"
        else body.get("max_tokens")
    )
    return Ask(
        kind=kind,
        model=model if isinstance(model := body.get("model"), str) else None,
        stream=body.get("stream") is True,
        include_usage=options.get("include_usage") is True,
        continuous_usage=options.get("continuous_usage_stats") is True,
        prompt_tokens=max(1, content.tokens),
        prompts=content.prompts,
        max_tokens=_whole(limit),
        min_tokens=_whole(body.get("min_tokens")) or 0,
        ignore_eos=body.get("ignore_eos") is True,
        choices=_whole(body.get("n")) or 1,
        text=content.text,
        seed=int.from_bytes(hashlib.blake2b(content.text, digest_size=8).digest(), "big"),
    )


def words(seed: int, start: int, count: int) -> str:
    """The text of tokens start .. start + count of a request; needs no escaping in JSON."""
    if count == 1:
        return _WORDS[(seed + start * 7) & 15]
    return "".join([_WORDS[(seed + index * 7) & 15] for index in range(start, start + count)])


def varied_length(mean_tokens: float = 200.0) -> OutputLength:
    """Lengths that fall off exponentially around a mean, cut at the request's limit: many short ones."""

    def length(prompt_tokens: int, most: int, seed: int) -> int:
        share = (seed % 2**32 + 1) / (2**32 + 1)
        return max(1, min(most, round(-mean_tokens * math.log(share))))

    return length


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class _Content(NamedTuple):
    text: bytes
    tokens: int
    prompts: int


def _content(body: Mapping[str, object]) -> _Content:
    messages = body.get("messages")
    if isinstance(messages, list):
        return _counted("".join(_message_text(message) for message in messages), 1)
    prompt = body.get("prompt", body.get("input"))
    if not isinstance(prompt, list):
        return _counted(str(prompt or ""), 1)
    if prompt and all(isinstance(item, int) for item in prompt):
        return _Content(repr(prompt).encode(), len(prompt), 1)
    return _counted(
        "".join(item if isinstance(item, str) else repr(item) for item in prompt), max(1, len(prompt))
    )


def _counted(text: str, prompts: int) -> _Content:
    # A lone surrogate is legal JSON: it must not stop a fake.
    encoded = text.encode("utf-8", "surrogatepass")
    return _Content(encoded, tokens_in(len(encoded)), prompts)


def _message_text(message: object) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
