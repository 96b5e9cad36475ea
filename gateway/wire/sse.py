"""Server-sent events: cutting a byte stream into events, and telling what an event of a model's answer is.

Runs per chunk. An everyday content event is recognised by searches; JSON is parsed for the rest only. Knows
no sockets and keeps nothing but the event that has begun.

A stream is read as the HTML standard has it (WHATWG, "Server-sent events"): lines end in LF, CRLF or CR, an
empty line ends an event, a BOM at the start is not part of it.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from gateway.wire.usage import usage_object

MAX_EVENT = 1024 * 1024
_BOM = b"\xef\xbb\xbf"
# For streams that have shown a CR only; vLLM's never do.
_EMPTY_LINE = re.compile(rb"\n\n|\n\r\n?|\r\r\n?")


class EventTooLarge(Exception):  # noqa: N818 -- it names what came, as the errors of upstreams do
    """An event above the limit, or one without an end. `before`: whole events that came in the same read."""

    def __init__(self, limit: int, before: list[bytes]) -> None:
        super().__init__(f"an event of more than {limit} bytes")
        self.before = before


class SseFramer:
    """Bytes in, whole events out, the same events however the bytes were cut.

    It remembers how far it has searched, so that many small reads stay linear. After EventTooLarge it is of
    no use.
    """

    __slots__ = ("_buffer", "_has_begun", "_head", "_max_event", "_plain_lf", "_searched", "_skip_lf")

    def __init__(self, max_event: int = MAX_EVENT) -> None:
        self._max_event = max_event
        self._buffer = bytearray()
        self._searched = 0
        self._has_begun = False
        self._head = b""
        self._plain_lf = True
        self._skip_lf = False

    @property
    def rest(self) -> bytes:
        """What has come of an event whose empty line has not."""
        return self._head + bytes(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Events that `data` completes, each with its empty line, byte for byte. Raises EventTooLarge.

        Not kept are a BOM at the start and a LF behind CR CR: the event went out at the second CR, since
        events of a stream whose lines end in CR alone must not wait for the next one.
        """
        if not self._has_begun:
            data = self._without_bom(data)
        if self._skip_lf and data:
            self._skip_lf = False
            data = data.removeprefix(b"\n")
        if self._plain_lf and b"\r" in data:
            self._plain_lf = False
        buffer = self._buffer
        source: bytes | bytearray = data
        if buffer:
            buffer += data
            source = buffer
        events: list[bytes] = []
        taken = self._cut_at_lf(source, events) if self._plain_lf else self._cut_at_any(source, events)
        if source is buffer:
            del buffer[:taken]
        elif taken < len(data):
            buffer += data[taken:] if taken else data
        # The last two bytes may be half of an end, or a whole one that waits for its LF.
        self._searched = max(0, len(buffer) - 2)
        if len(buffer) > self._max_event:
            buffer.clear()
            raise EventTooLarge(self._max_event, events)
        return events

    def _without_bom(self, data: bytes) -> bytes:
        head = self._head + data
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._head = head
            return b""
        self._has_begun, self._head = True, b""
        return head.removeprefix(_BOM)

    def _cut_at_lf(self, source: bytes | bytearray, events: list[bytes]) -> int:
        start = 0
        at = source.find(b"\n\n", self._searched)
        while at >= 0:
            self._add(source[start : at + 2], events)
            start = at + 2
            at = source.find(b"\n\n", start)
        return start

    def _cut_at_any(self, source: bytes | bytearray, events: list[bytes]) -> int:
        start = 0
        for match in _EMPTY_LINE.finditer(source, self._searched):
            end, size = match.end(), len(source)
            if match[0] == b"\n\r" and end == size:
                break  # Its LF may be in the next read.
            is_cr_cr = match[0].startswith(b"\r\r")
            self._add(source[start : match.start() + 2 if is_cr_cr else end], events)
            self._skip_lf = match[0] == b"\r\r" and end == size
            start = end
        return start

    def _add(self, event: bytes | bytearray, events: list[bytes]) -> None:
        if len(event) > self._max_event:
            raise EventTooLarge(self._max_event, events)
        events.append(bytes(event))


class EventFacts(NamedTuple):
    """What one event is. `parsed` is its JSON object where it had to be read, so that nobody reads it twice.

    content: a text, reasoning, refusal or tool-call delta that is not empty (or token ids, or log
    probabilities).
    finish: a choice has its finish reason, or the response its end. done: nothing comes after it. error: it
    is one.
    usage_only: it has usage and no choice, as `include_usage` adds. has_usage: `wire.usage` finds counts in
    it.
    failed: its finish reason says that the engine gave the request up. malformed: no client could read it.
    """

    content: bool = False
    finish: bool = False
    done: bool = False
    error: bool = False
    usage_only: bool = False
    has_usage: bool = False
    failed: bool = False
    malformed: bool = False
    parsed: dict[str, Any] | None = None


_NOTHING = EventFacts()
_CONTENT = EventFacts(content=True)
_DONE = EventFacts(done=True)
_MALFORMED = EventFacts(malformed=True)
_BARE_ERROR = EventFacts(error=True)

# "abort": cancelled in the engine (contract §2.5); "error": failed there.
_FAILED_REASONS = ("abort", "error")


def classify(event: bytes, kind: str) -> EventFacts:
    """What `event` (from SseFramer) is in a stream of `kind` (that of wire.paths)."""
    return _CONTENT if _is_plain_content(event, kind) else _read(event, kind)


def payload(event: bytes) -> bytes:
    """The event's data lines, joined by LF; empty for comments."""
    return _fields(event)[1] or b""


def without_id(event: bytes) -> bytes:
    """The event without `id:` lines: after one, the OpenAI SDK takes a comment for an event and fails."""
    if b"id:" not in event:
        return event
    return b"".join(line for line in event.splitlines(keepends=True) if not line.startswith(b"id:"))


# --- Everyday content events, by search alone ---
#
# Without a backslash anywhere, a JSON string ends at the next quote: the text can be cut out, and what is
# left is looked at for keys that matter and for brackets that close (those of an event that was cut do not).
# A user's text can thus never pass for a key, nor can a key hide behind an escape.

_CHAT_MARKS = ('"delta":{"content":"', '"delta":{"reasoning":"', '"delta":{"reasoning_content":"')
_BLOCK_MARKS = ('"text":"', '"thinking":"', '"partial_json":"')
# kind -> (what comes before the JSON object, what comes before its text).
_PLAIN: dict[str, tuple[tuple[bytes, tuple[str, ...]], ...]] = {
    "chat": ((b"data: ", _CHAT_MARKS),),
    "completions": ((b"data: ", ('"text":"',)),),
    "messages": ((b"event: content_block_delta\ndata: ", _BLOCK_MARKS),),
    "responses": (
        (b"event: response.output_text.delta\ndata: ", ('"delta":"',)),
        (b"event: response.reasoning_text.delta\ndata: ", ('"delta":"',)),
    ),
}


def _is_plain_content(event: bytes, kind: str) -> bool:
    """Certainly a content event and nothing else? False says nothing."""
    if not event.endswith(b"}\n\n"):
        return False
    for head, marks in _PLAIN.get(kind, ()):
        if event.startswith(head):
            try:
                text = event[len(head) : -2].decode()
            except UnicodeDecodeError:
                return False
            frame = _without_text(text, marks)
            return frame is not None and _is_unremarkable(frame)
    return False


def _without_text(text: str, marks: tuple[str, ...]) -> str | None:
    """The event without its text, or None where there is none, or none that is plain."""
    if "\\" in text or not text.isprintable():
        return None
    for mark in marks:
        at = text.find(mark)
        if at >= 0:
            start = at + len(mark)
            end = text.find('"', start)
            return text[:start] + text[end:] if end > start else None
    return None


def _is_unremarkable(frame: str) -> bool:
    return (
        '"error"' not in frame
        and _is_null(frame, '"usage"', '"usage":null')
        and _is_null(frame, '"finish_reason"', '"finish_reason":null')
        and frame.count("{") == frame.count("}")
        and frame.count("[") == frame.count("]")
    )


def _is_null(frame: str, key: str, null: str) -> bool:
    return key not in frame or frame.count(key) == frame.count(null)


# --- All other events, by their JSON ---


def _read(event: bytes, kind: str) -> EventFacts:
    name, data = _fields(event)
    if data is None:
        return _NOTHING
    if data.strip() == b"[DONE]":
        return _DONE
    parsed = _parse(data)
    if parsed is None:
        return _BARE_ERROR if name == "error" else _MALFORMED
    event_type = parsed.get("type")
    if not isinstance(event_type, str):
        event_type = name
    if event_type == "error" or name == "error" or parsed.get("error") or parsed.get("object") == "error":
        return EventFacts(error=True, parsed=parsed)
    return _READERS.get(kind, _chat_facts)(parsed, event_type)._replace(
        has_usage=usage_object(kind, parsed) is not None, parsed=parsed
    )


def _fields(event: bytes) -> tuple[str, bytes | None]:
    """(the event's name or "", its data or None where it has no data line)."""
    name = ""
    data: list[bytes] = []
    for line in event.splitlines():
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ").decode("utf-8", "replace")
    return name, b"\n".join(data) if data else None


def _parse(data: bytes) -> dict[str, Any] | None:
    """The JSON object, or None: clients raise on anything else."""
    try:
        parsed = json.loads(data.decode())
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _chat_facts(parsed: dict[str, Any], event_type: str) -> EventFacts:
    """Chat and completions: everything is in the choices."""
    content = finish = failed = False
    choices = parsed.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            reason = choice.get("finish_reason")
            # Some endpoints write "" for null.
            finish = finish or bool(reason)
            failed = failed or reason in _FAILED_REASONS
            content = content or _has_content(choice)
    usage_only = not choices and isinstance(parsed.get("usage"), dict)
    return EventFacts(content, finish, usage_only=usage_only, failed=failed)


def _has_content(choice: dict[str, Any]) -> bool:
    delta, logprobs = _member(choice, "delta"), _member(choice, "logprobs")
    return bool(
        choice.get("text")
        or any(map(delta.get, ("content", "reasoning", "reasoning_content", "refusal", "tool_calls")))
        or any(map(delta.get, ("function_call", "audio")))
        or choice.get("token_ids")
        or any(map(logprobs.get, ("content", "tokens", "refusal")))
    )


def _responses_facts(parsed: dict[str, Any], event_type: str) -> EventFacts:
    """Responses: named events; the last one repeats the whole response."""
    if event_type in ("response.completed", "response.incomplete", "response.cancelled"):
        # vLLM says "completed" for every end and has the truth in the status (0.32.0 capture).
        gave_up = _member(parsed, "response").get("status") in ("cancelled", "failed")
        return EventFacts(finish=True, done=True, failed=gave_up or event_type == "response.cancelled")
    if event_type == "response.failed":
        return _BARE_ERROR
    return _CONTENT if event_type.endswith(".delta") and parsed.get("delta") else _NOTHING


def _messages_facts(parsed: dict[str, Any], event_type: str) -> EventFacts:
    """Anthropic's: the stop reason comes in message_delta, the end is message_stop."""
    delta = _member(parsed, "delta")
    match event_type:
        case "content_block_delta":
            return _CONTENT if any(map(delta.get, ("text", "thinking", "partial_json"))) else _NOTHING
        case "message_delta":
            reason = delta.get("stop_reason")
            return EventFacts(finish=bool(reason), failed=reason in _FAILED_REASONS)
        case "message_stop":
            return _DONE
        case _:
            return _NOTHING


def _transcription_facts(parsed: dict[str, Any], event_type: str) -> EventFacts:
    """vLLM sends chat-like chunks; OpenAI's newer models named events."""
    if event_type == "transcript.text.done":
        return EventFacts(finish=True)
    if event_type.endswith(".delta"):
        return _CONTENT if parsed.get("delta") else _NOTHING
    return _chat_facts(parsed, event_type)


_READERS: dict[str, Callable[[dict[str, Any], str], EventFacts]] = {
    "responses": _responses_facts,
    "messages": _messages_facts,
    "transcription": _transcription_facts,
}


def _member(parsed: dict[str, Any], key: str) -> dict[str, Any]:
    value = parsed.get(key)
    return value if isinstance(value, dict) else {}
