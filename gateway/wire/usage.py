"""What a response says about tokens used, in the one shape the rest of the gateway knows.

Does not know prices, and never guesses: a count that the wire does not give is None.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

UsageSource = Literal["reported", "engine_tokenizer", "estimated", "none"]

# No request has this many tokens; such a figure is noise and would not fit a database's integer.
_IMPOSSIBLE = 10**12
# Kinds without output: where only a total is given (rerank), it is the prompt.
_POOLING_KINDS = frozenset({"embeddings", "rerank", "score", "classify", "pooling"})


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one attempt.

    `prompt` includes `cached` (OpenAI's shape; Anthropic's is converted), `completion` includes `reasoning`.
    """

    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    source: UsageSource = "none"
    # Counts that contradict each other (cached above prompt, negative, not a number): kept, flagged,
    # never priced below zero.
    inconsistent: bool = False


class _Count(NamedTuple):
    """A count, clamped into what is possible; `odd` where the wire gave something else."""

    value: int | None
    odd: bool = False


_ABSENT = _Count(None)


def usage_object(kind: str, message: dict[str, Any]) -> dict[str, Any] | None:
    """The part of an answer or event that holds its counts; None where it is null or not there."""
    usage = message.get("usage")
    if usage is None and kind == "responses":
        usage = _member(message, "response").get("usage")
    if usage is None and kind == "messages":
        usage = _member(message, "message").get("usage")
    return usage if isinstance(usage, dict) else None


def usage_from(kind: str, message: dict[str, Any]) -> Usage | None:
    """The usage that a whole answer or one event reports, or None where it reports none.

    `kind` is that of wire.paths. Counts that cannot be are clamped and flagged `inconsistent`: negative ones
    to 0, cached to prompt, reasoning to completion.
    """
    usage = usage_object(kind, message)
    if usage is None:
        return None
    if kind == "messages":
        return _anthropic(usage)
    if kind == "responses":
        return _openai(usage, "input_tokens", "output_tokens")
    if kind in _POOLING_KINDS and usage.get("prompt_tokens") is None:
        return _openai(usage, "total_tokens", "completion_tokens")
    return _openai(usage, "prompt_tokens", "completion_tokens")


def merge(before: Usage | None, latest: Usage) -> Usage:
    """Two reports of one attempt as one: the later count wins wherever it is given."""
    if before is None:
        return latest
    prompt = before.prompt if latest.prompt is None else latest.prompt
    cached = latest.cached
    if cached is None and before.cached is not None:
        cached = before.cached
        if prompt is not None and before.prompt is not None:
            # Anthropic's last event may repeat the uncached count alone; the whole came with `cached`.
            prompt = max(prompt, before.prompt)
    return _usage(
        _Count(prompt),
        _Count(cached),
        _Count(latest.completion if latest.completion is not None else before.completion),
        _Count(latest.reasoning if latest.reasoning is not None else before.reasoning),
        source=latest.source if latest.source != "none" else before.source,
        odd=before.inconsistent or latest.inconsistent,
    )


def _openai(usage: dict[str, Any], prompt_key: str, completion_key: str) -> Usage | None:
    """Chat names the details `prompt_tokens_details`, Responses `input_tokens_details`; vLLM has both."""
    prompt, completion = _count(usage.get(prompt_key)), _count(usage.get(completion_key))
    cached = _count(_member(usage, f"{prompt_key}_details").get("cached_tokens"))
    reasoning = _count(_member(usage, f"{completion_key}_details").get("reasoning_tokens"))
    total = _count(usage.get("total_tokens"))
    odd = total.odd or not _is_sum(total.value, prompt.value, completion.value)
    return _reported(prompt, cached, completion, reasoning, odd=odd)


def _anthropic(usage: dict[str, Any]) -> Usage | None:
    """Anthropic counts the uncached, the read and the written part of the prompt apart."""
    cached = _count(usage.get("cache_read_input_tokens"))
    parts = [_count(usage.get("input_tokens")), cached, _count(usage.get("cache_creation_input_tokens"))]
    known = [part.value for part in parts if part.value is not None]
    prompt = _Count(sum(known)) if known else _ABSENT
    completion = _count(usage.get("output_tokens"))
    return _reported(prompt, cached, completion, _ABSENT, odd=any(part.odd for part in parts))


def _reported(
    prompt: _Count, cached: _Count, completion: _Count, reasoning: _Count, *, odd: bool
) -> Usage | None:
    counts = (prompt, cached, completion, reasoning)
    if not odd and all(count == _ABSENT for count in counts):
        return None
    return _usage(*counts, source="reported", odd=odd)


def _usage(
    prompt: _Count, cached: _Count, completion: _Count, reasoning: _Count, *, source: UsageSource, odd: bool
) -> Usage:
    cached, reasoning = _at_most(cached, prompt), _at_most(reasoning, completion)
    odd = odd or prompt.odd or cached.odd or completion.odd or reasoning.odd
    return Usage(prompt.value, cached.value, completion.value, reasoning.value, source, odd)


def _at_most(part: _Count, whole: _Count) -> _Count:
    if part.value is None or whole.value is None or part.value <= whole.value:
        return part
    return _Count(whole.value, odd=True)


def _is_sum(total: int | None, prompt: int | None, completion: int | None) -> bool:
    if total is None or prompt is None:
        return True
    return total == prompt + (completion or 0)


def _count(value: Any) -> _Count:
    if value is None:
        return _ABSENT
    if isinstance(value, bool) or not isinstance(value, int | float) or not value < _IMPOSSIBLE:
        return _Count(None, odd=True)
    if value < 0:
        return _Count(0, odd=True)
    return _Count(int(value), odd=not isinstance(value, int))


def _member(message: dict[str, Any], key: str) -> dict[str, Any]:
    value = message.get(key)
    return value if isinstance(value, dict) else {}
