"""Framing is independent of reads, and no event is taken for another."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.sse import EventFacts, EventTooLarge, SseFramer, classify, payload, without_id
from gateway.wire.usage import usage_from

Captured = Callable[[str], bytes]

CHUNK: dict[str, Any] = {
    "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "tiny",
    "choices": [{"index": 0, "delta": {"content": "x"}, "logprobs": None, "finish_reason": None}],
}  # fmt: skip


def event(value: Any, name: str = "") -> bytes:
    """One event as vLLM writes it."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, separators=(',', ':'), ensure_ascii=False)}\n\n".encode()


def choice(**members: Any) -> bytes:
    """A chat event whose only choice has these members."""
    return event({**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": None, **members}]})


def flags(facts: EventFacts) -> set[str]:
    """The names of those that are set."""
    return {name for name in EventFacts._fields if name != "parsed" and getattr(facts, name)}


def parsed_slowly(data: bytes, kind: str) -> EventFacts:
    """The facts by full parse: a comment in front keeps the searches away."""
    return classify(b": comment\n" + data, kind)


# --- Framing ---


def fed(pieces: list[bytes]) -> tuple[list[bytes], bytes]:
    framer = SseFramer()
    events = [found for piece in pieces for found in framer.feed(piece)]
    return events, framer.rest


STREAM = "data: 北京😀\n\n: comment\n\nevent: x\ndata: {\ndata:}\n\n\n\ndata:[DONE]\n\ndata: rest"


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["", "bom"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_every_split_point_gives_the_same_events(end: bytes, bom: bytes) -> None:
    stream = STREAM.encode().replace(b"\n", end)
    events, rest = fed([bom + stream])
    assert [payload(found) for found in events if payload(found)] == ["北京😀".encode(), b"{\n}", b"[DONE]"]
    assert b"".join(events) + rest == stream
    assert rest == b"data: rest"
    whole = bom + stream
    for i in range(len(whole) + 1):
        assert fed([whole[:i], whole[i:]]) == (events, rest)
    assert fed([whole[i : i + 1] for i in range(len(whole))]) == (events, rest)


@given(
    st.lists(
        st.sampled_from(["data: a", "data:é", ": c", "event: e", "", "", "\ufeffdata: b", "data: x\x00"])
    ),
    st.data(),
)
def test_mixed_line_ends_read_as_the_standard_says(lines: list[str], data: st.DataObject) -> None:
    ends = data.draw(
        st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=len(lines), max_size=len(lines))
    )
    stream = "".join(line + end for line, end in zip(lines, ends, strict=True)).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    events, rest = fed(pieces)
    assert (events, rest) == fed([stream])
    # Nothing is lost but a BOM and the LF of CR CR LF.
    assert b"".join(events) + rest in (_without_lf(stream), _without_lf(stream.removeprefix(b"\xef\xbb\xbf")))
    assert [text for text in map(payload, events) if text] == _standard(stream, len(events), rest)


def _without_lf(stream: bytes) -> bytes:
    """`stream` without the LFs that the framer drops: those of an empty line's CR LF after a bare CR."""
    kept, at = b"", 0
    for match in re.finditer(rb"\n\n|\n\r\n?|\r\r\n?", stream):
        kept += stream[at : match.start()] + match[0].removesuffix(b"\n" if match[0] == b"\r\r\n" else b"\0")
        at = match.end()
    return kept + stream[at:]


def _standard(stream: bytes, count: int, rest: bytes) -> list[bytes]:
    """Payloads by the standard's own steps: normalise the line ends, cut at empty lines."""
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    found: list[bytes] = []
    lines: list[bytes] = []
    for line in text.split(b"\n")[:-1]:
        if line:
            lines.append(line)
            continue
        found.append(b"\n".join(part[5:].removeprefix(b" ") for part in lines if part.startswith(b"data:")))
        lines = []
    # An end whose last LF may still come is not out yet.
    if rest.endswith((b"\n\r", b"\r\n\r")) and payload(rest):
        found.pop()
    return [text for text in found if text]


def test_several_events_and_half_of_another_in_one_read() -> None:
    framer = SseFramer()
    assert framer.feed(b"data: 1\n\ndata: 2\n\ndata: 3") == [b"data: 1\n\n", b"data: 2\n\n"]
    assert framer.rest == b"data: 3"
    assert framer.feed(b"\n") == []
    assert framer.feed(b"\ndata: 4\n\n") == [b"data: 3\n\n", b"data: 4\n\n"]
    assert framer.rest == b""


def test_a_stream_of_bare_crs_does_not_wait_for_the_next_event() -> None:
    framer = SseFramer()
    assert framer.feed(b"data: 1\r\r") == [b"data: 1\r\r"]
    assert framer.feed(b"data: 2\r") == []
    assert framer.feed(b"\r") == [b"data: 2\r\r"]


def test_a_crlf_end_keeps_its_last_byte() -> None:
    framer = SseFramer()
    assert framer.feed(b"data: 1\r\n\r") == []
    assert framer.feed(b"\n") == [b"data: 1\r\n\r\n"]


def test_a_bom_is_removed_at_the_start_only() -> None:
    bom = b"\xef\xbb\xbf"
    assert fed([bom[:1], bom[1:2], bom[2:] + b"data: " + bom + b"\n\n"])[0] == [b"data: " + bom + b"\n\n"]
    assert fed([b"\xef\xbb", b"x\n\n"])[0] == [b"\xef\xbbx\n\n"]
    assert fed([b"\xef"]) == ([], b"\xef")


def test_a_whole_chunk_is_passed_on_without_a_copy() -> None:
    chunk = b"data: {}\n\n"
    assert SseFramer().feed(chunk)[0] is chunk


@pytest.mark.parametrize("split", [1, 7, 100, 10_000])
def test_an_event_without_an_end_is_given_up_at_the_limit(split: int) -> None:
    framer = SseFramer(max_event=1000)
    assert framer.feed(b"data: 1\n\ndata:") == [b"data: 1\n\n"]
    while len(framer.rest) + split <= 1000:
        assert framer.feed(b"x" * split) == []
    with pytest.raises(EventTooLarge):
        framer.feed(b"x" * split)
    # What was kept of it is given up as well.
    assert framer.rest == b""


def test_a_whole_event_above_the_limit_is_too_large_and_those_before_it_are_told() -> None:
    with pytest.raises(EventTooLarge) as caught:
        SseFramer(max_event=20).feed(b"data: 1\n\n" + b"data: " + b"x" * 30 + b"\n\n")
    assert caught.value.before == [b"data: 1\n\n"]
    assert "20 bytes" in str(caught.value)


class _CountingBuffer(bytearray):
    """Counts the bytes that searches may have looked at."""

    looked_at = 0

    def find(self, sub: Any, start: Any = 0, end: Any = None) -> int:
        self.looked_at += len(self) - start
        return super().find(sub, start)


def test_one_byte_at_a_time_stays_linear() -> None:
    size = 1024 * 1024
    framer = SseFramer(max_event=2 * size)
    buffer = framer._buffer = _CountingBuffer()
    feed = framer.feed
    for _ in range(size):
        feed(b"x")
    assert len(buffer) == size
    assert buffer.looked_at <= 3 * size
    assert feed(b"\n\n") == [b"x" * size + b"\n\n"]


@pytest.mark.parametrize("stream", [b"data: x\ndata: y\r\ndata: z" + b"w" * 500, b"\r" + b"data: w" * 100])
def test_with_other_line_ends_too_the_search_never_goes_back(stream: bytes) -> None:
    framer = SseFramer()
    for i in range(len(stream)):
        framer.feed(stream[i : i + 1])
        assert framer._searched >= len(framer.rest) - 2


# --- Payloads ---


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"data: {}\n\n", b"{}"),
        (b"data:{}\r\n\r\n", b"{}"),
        (b"data:  two spaces\n\n", b" two spaces"),
        (b'data: {"a":\ndata: 1}\n\n', b'{"a":\n1}'),
        (b"event: x\nid: 1\ndata: y\nretry: 5\n\n", b"y"),
        (b"data\n\n", b""),
        (b": comment\n\n", b""),
        (b":data: x\n\n", b""),
        (b"database: x\n\n", b""),
        (b"\n\n", b""),
        (b"data: [DONE]", b"[DONE]"),
    ],
)
def test_the_payload_is_the_joined_data_lines(data: bytes, expected: bytes) -> None:
    assert payload(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"id: 1\ndata: {}\n\n", b"data: {}\n\n"),
        (b"data: {}\r\nid:1\r\n\r\n", b"data: {}\r\n\r\n"),
        (b'data: {"id": "id: 1"}\n\n', b'data: {"id": "id: 1"}\n\n'),
        (b"data: {}\n\n", b"data: {}\n\n"),
    ],
)
def test_ids_are_taken_off(data: bytes, expected: bytes) -> None:
    assert without_id(data) == expected


# --- Captured streams ---


def facts_of(stream: bytes, kind: str) -> Iterator[EventFacts]:
    events, rest = fed([stream])
    assert rest == b""
    return (classify(found, kind) for found in events)


CONTENT, FINISH, DONE = {"content"}, {"finish"}, {"done"}
USAGE = {"usage_only", "has_usage"}


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("chat-0.32.0", "chat", [set(), *[CONTENT] * 4, CONTENT | FINISH, DONE]),
        ("chat-0.20.2", "chat", [*[set()] * 5, FINISH, DONE]),
        ("chat-0.13.0", "chat", [*[set()] * 5, FINISH, DONE]),
        ("chat-usage-0.32.0", "chat", [set(), *[CONTENT] * 4, CONTENT | FINISH, USAGE, DONE]),
        (
            "chat-continuous-usage-0.32.0",
            "chat",
            [{"has_usage"}, *[{"content", "has_usage"}] * 4, {"content", "finish", "has_usage"}, USAGE, DONE],
        ),
        ("chat-empty-answer-0.32.0", "chat", [set(), FINISH, DONE]),
        ("completions-usage-0.32.0", "completions", [*[CONTENT] * 3, CONTENT | FINISH, USAGE, DONE]),
        (
            "responses-0.32.0",
            "responses",
            [*[set()] * 4, *[CONTENT] * 5, *[set()] * 3, {"finish", "done", "has_usage"}],
        ),
        (
            "messages-0.32.0",
            "messages",
            [{"has_usage"}, set(), *[CONTENT] * 4, set(), {"finish", "has_usage"}, DONE],
        ),
    ],
)
def test_captured_streams_are_understood(
    captured_stream: Captured, name: str, kind: str, expected: list[set[str]]
) -> None:
    assert [flags(facts) for facts in facts_of(captured_stream(name), kind)] == expected


@pytest.mark.parametrize(
    ("name", "kind", "counts"),
    [
        ("chat-usage-0.32.0", "chat", (5, 5)),
        ("chat-continuous-usage-0.32.0", "chat", (5, 5)),
        ("completions-usage-0.32.0", "completions", (2, 4)),
        ("responses-0.32.0", "responses", (5, 6)),
        ("messages-0.32.0", "messages", (5, 4)),
    ],
)
def test_usage_is_found_in_what_was_parsed_already(
    captured_stream: Captured, name: str, kind: str, counts: tuple[int, int]
) -> None:
    last = [facts for facts in facts_of(captured_stream(name), kind) if facts.has_usage][-1]
    assert last.parsed is not None
    usage = usage_from(kind, last.parsed)
    assert usage is not None
    assert (usage.prompt, usage.completion) == counts


@pytest.mark.parametrize(
    "name", ["chat-0.32.0", "completions-usage-0.32.0", "responses-0.32.0", "messages-0.32.0"]
)
@pytest.mark.parametrize("end", [b"\r\n", b"\r"], ids=["CRLF", "CR"])
def test_every_spelling_of_a_stream_says_the_same(captured_stream: Captured, name: str, end: bytes) -> None:
    stream, kind = captured_stream(name), name.partition("-")[0]
    respelled = stream.replace(b": {", b":{").replace(b"\n", end)
    plain = [facts._replace(parsed=None) for facts in facts_of(stream, kind)]
    assert [facts._replace(parsed=None) for facts in facts_of(respelled, kind)] == plain


def test_everyday_events_are_not_parsed(captured_stream: Captured) -> None:
    for name, events in (("chat", 4), ("completions-usage", 3), ("responses", 5), ("messages", 4)):
        facts = list(facts_of(captured_stream(f"{name}-0.32.0"), name.partition("-")[0]))
        assert sum(one.content and one.parsed is None for one in facts) == events


# --- Kinds of events ---


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(choice(delta={"content": "x"}), id="content"),
        pytest.param(choice(delta={"role": "assistant", "content": "x"}), id="content with its role"),
        pytest.param(
            choice(delta={"content": "", "reasoning_content": "x"}), id="reasoning, vllm up to 0.15"
        ),
        pytest.param(choice(delta={"reasoning": "x"}), id="reasoning, vllm 0.11.2 and later"),
        pytest.param(choice(delta={"refusal": "x"}), id="refusal"),
        pytest.param(choice(delta={"function_call": {"name": "f"}}), id="function call"),
        pytest.param(
            choice(delta={"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}), id="tool call"
        ),
        pytest.param(choice(delta={"content": ""}, token_ids=[5]), id="token ids alone"),
        pytest.param(
            choice(delta={"content": ""}, logprobs={"content": [{"token": ""}]}), id="logprobs alone"
        ),
    ],
)
def test_what_bears_content(data: bytes) -> None:
    assert flags(classify(data, "chat")) == CONTENT


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("completions", event({"choices": [{"text": "x", "finish_reason": None}]})),
        (
            "completions",
            event({"choices": [{"text": "", "logprobs": {"tokens": ["a"]}, "finish_reason": None}]}),
        ),
        ("responses", event({"type": "response.refusal.delta", "delta": "x"}, "response.refusal.delta")),
        ("responses", event({"type": "response.function_call_arguments.delta", "delta": "{"})),
        (
            "messages",
            event({"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "x"}}),
        ),
        (
            "messages",
            event({"type": "content_block_delta", "delta": {"partial_json": "{"}}, "content_block_delta"),
        ),
        ("transcription", event({"choices": [{"delta": {"content": "x"}, "finish_reason": None}]})),
        ("transcription", event({"type": "transcript.text.delta", "delta": "x"})),
    ],
)
def test_what_bears_content_elsewhere(kind: str, data: bytes) -> None:
    assert flags(classify(data, kind)) == CONTENT


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("chat", b": keep-alive\n\n"),
        ("chat", b"\n\n"),
        ("chat", b"event: ping\n\n"),
        ("chat", b"retry: 100\n\n"),
        ("chat", choice(delta={"role": "assistant", "content": ""})),
        ("chat", choice(delta={"content": None})),
        ("chat", choice(delta={})),
        ("chat", choice(delta=None)),
        ("chat", choice(delta={"content": "", "tool_calls": []})),
        ("chat", choice(delta={"content": ""}, finish_reason="")),
        ("chat", event({"choices": [], "prompt_filter_results": []})),
        ("chat", event({"choices": [None, 5], "usage": None, "error": None})),
        ("completions", event({"choices": [{"text": "", "finish_reason": None}]})),
        ("responses", event({"type": "response.created", "response": {"usage": None}}, "response.created")),
        (
            "responses",
            event({"type": "response.output_text.delta", "delta": ""}, "response.output_text.delta"),
        ),
        ("responses", event({"type": "response.output_text.done", "text": "x"}, "response.output_text.done")),
        ("messages", event({"type": "ping"}, "ping")),
        (
            "messages",
            event({"type": "content_block_start", "content_block": {"text": "x"}}, "content_block_start"),
        ),
        ("messages", event({"type": "content_block_delta", "delta": {"text": ""}}, "content_block_delta")),
        ("transcription", event({"type": "transcript.text.delta", "delta": ""})),
    ],
)
def test_what_bears_none(kind: str, data: bytes) -> None:
    assert flags(classify(data, kind)) == set()


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("chat", choice(finish_reason="stop"), FINISH),
        ("chat", choice(delta={"content": "x"}, finish_reason="length"), CONTENT | FINISH),
        ("chat", choice(finish_reason="abort"), {"finish", "failed"}),
        ("chat", choice(finish_reason="error"), {"finish", "failed"}),
        ("completions", event({"choices": [{"text": "", "finish_reason": "abort"}]}), {"finish", "failed"}),
        ("chat", event({"choices": [{"finish_reason": None}, {"finish_reason": "stop"}]}), FINISH),
        ("chat", event({"usage": {"prompt_tokens": 1}}), USAGE),
        ("chat", event({"choices": None, "usage": {"prompt_tokens": 1}}), USAGE),
        ("chat", b"data: [DONE]\n\n", DONE),
        ("chat", b"data:[DONE]\r\n\r\n", DONE),
        ("chat", b"data: [DONE]", DONE),
        ("responses", b"data: [DONE]\n\n", DONE),
        ("responses", event({"type": "response.incomplete", "response": {}}), {"finish", "done"}),
        (
            "responses",
            event({"type": "response.completed", "response": {"status": "cancelled"}}),
            {"finish", "done", "failed"},
        ),
        ("responses", b"event: response.completed\ndata: {}\n\n", {"finish", "done"}),
        ("messages", event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}), FINISH),
        ("messages", event({"type": "message_delta", "delta": {"stop_reason": None}}), set()),
        (
            "messages",
            event({"type": "message_delta", "delta": {"stop_reason": "abort"}}),
            {"finish", "failed"},
        ),
        ("messages", b'event: message_stop\ndata: {"type":"message_stop"}\n\n', DONE),
        ("transcription", event({"type": "transcript.text.done", "text": "x"}), FINISH),
    ],
)
def test_ends_are_told_apart(kind: str, data: bytes, expected: set[str]) -> None:
    assert flags(classify(data, kind)) == expected


DEAD = (
    b'data: {"error": {"message": "EngineCore encountered an issue. See stack trace (above) for the root '
    b'cause.", '
    b'"type": "InternalServerError", "param": null, "code": 500}}\n\n'
)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        pytest.param("chat", DEAD, id="vllm's engine died"),
        pytest.param("completions", DEAD, id="same, completions"),
        pytest.param("chat", b'data: {"error": "slow down"}\n\n', id="error is a string"),
        pytest.param("chat", event({**CHUNK, "error": {"code": 429}}), id="error beside content"),
        pytest.param("chat", b'data: {"object":"error","message":"x","code":400}\n\n', id="flat"),
        pytest.param("chat", b"event: error\ndata: overloaded\n\n", id="named, not JSON"),
        pytest.param("chat", b'event: error\ndata: {"message":"x"}\n\n', id="named"),
        pytest.param("chat", b'data: {"err\\u006fr":{"message":"x"},"choices":[]}\n\n', id="escaped key"),
        pytest.param(
            "responses", b'data: {"type":"response.failed","response":{"error":{}}}\n\n', id="failed"
        ),
        pytest.param("responses", b'event: error\ndata: {"type":"error","message":"x"}\n\n', id="responses"),
        pytest.param(
            "messages", b'event: error\ndata: {"type":"error","error":{"message":"x"}}\n\n', id="anthropic"
        ),
    ],
)
def test_errors_are_seen_in_every_shape(kind: str, data: bytes) -> None:
    assert flags(classify(data, kind)) == {"error"}


@pytest.mark.parametrize("kind", ["chat", "completions", "responses", "messages", "embeddings"])
@pytest.mark.parametrize(
    "data",
    [
        b"data: {oops\n\n",
        b"data: \n\n",
        b"data\n\n",
        b"data: 5\n\n",
        b"data: []\n\n",
        b"data: null\n\n",
        b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\x00"}}]}\n\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
    ],
    ids=["F03", "empty", "no colon", "number", "list", "null", "not UTF-8", "NUL", "deep"],
)
def test_what_no_client_could_read_is_malformed(kind: str, data: bytes) -> None:
    assert flags(classify(data, kind)) == {"malformed"}


@pytest.mark.parametrize("text", ["lock", "}", "{}]}", '"}', "\\", "é"])
@pytest.mark.parametrize("kind", ["chat", "completions", "messages", "responses"])
def test_an_event_cut_anywhere_is_malformed(kind: str, text: str) -> None:
    whole = {
        "chat": choice(delta={"content": text}),
        "completions": event({"choices": [{"index": 0, "text": text, "finish_reason": None}]}),
        "messages": event({"type": "content_block_delta", "delta": {"text": text}}, "content_block_delta"),
        "responses": event(
            {"delta": text, "type": "response.output_text.delta"}, "response.output_text.delta"
        ),
    }[kind]
    assert flags(classify(whole, kind)) == CONTENT
    start = whole.index(b"data: ") + 6
    for end in range(start, len(whole) - 2):
        assert flags(classify(whole[:end] + b"\n\n", kind)) == {"malformed"}


TRICKY = [
    '"usage"', '"usage":{"prompt_tokens":1}', '"error":{"message":"x"}', '{"error": 1}', "[DONE]",
    "data: [DONE]", '"finish_reason":"stop"', "usage", '","finish_reason":"stop","x":"', '\\"usage',
    "\\u0075sage", "event: error",
    'x\n\ndata: {"error":1}', "\r\r", '"delta":{"content":""}', "\u2028", "\ufeff", "😀",
]  # fmt: skip


@pytest.mark.parametrize("text", TRICKY)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_users_text_never_passes_for_something_else(text: str, ascii_only: bool) -> None:
    for kind, value, name in (
        ("chat", {**CHUNK, "choices": [{"delta": {"content": text}, "finish_reason": None}]}, ""),
        ("completions", {"choices": [{"text": text, "finish_reason": None}]}, ""),
        ("messages", {"type": "content_block_delta", "delta": {"text": text}}, "content_block_delta"),
        ("responses", {"type": "response.output_text.delta", "delta": text}, "response.output_text.delta"),
    ):
        head = f"event: {name}\n" if name else ""
        body = json.dumps(value, separators=(",", ":"), ensure_ascii=ascii_only)
        assert flags(classify(f"{head}data: {body}\n\n".encode(), kind)) == CONTENT


TEXTS = st.sampled_from(["", "a", *TRICKY]) | st.text(max_size=5)
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "role": st.just("assistant"),
        "content": st.none() | TEXTS,
        "reasoning": st.none() | TEXTS,
        "reasoning_content": st.none() | TEXTS,
        "tool_calls": st.lists(st.just({"index": 0}), max_size=1),
    },
)
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "index": st.integers(0, 3),
        "delta": DELTAS,
        "text": TEXTS,
        "logprobs": st.none()
        | st.fixed_dictionaries({"content": st.lists(st.just({"token": "a"}), max_size=1)}),
        "finish_reason": st.sampled_from([None, None, None, "stop", "abort", "error", ""]),
        "token_ids": st.none() | st.lists(st.integers(), max_size=2),
    },
)
CHUNKS = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(CHOICES, max_size=3),
        "usage": st.none() | st.fixed_dictionaries({"prompt_tokens": st.integers(0, 9)}),
        "error": st.none() | st.just({"message": "x"}),
        "model": TEXTS,
    },
)


@given(
    CHUNKS, st.permutations(range(4)), st.booleans(), st.booleans(), st.sampled_from(["chat", "completions"])
)
def test_searching_and_parsing_agree(
    chunk: dict[str, Any], order: list[int], ascii_only: bool, spaced: bool, kind: str
) -> None:
    members = list(chunk.items())
    shuffled = dict(members[i] for i in order if i < len(members))
    text = json.dumps(shuffled, ensure_ascii=ascii_only, separators=None if spaced else (",", ":"))
    data = f"data: {text}\n\n".encode()
    slow = parsed_slowly(data, kind)
    fast = classify(data, kind)
    assert flags(fast) == flags(slow)
    assert slow.parsed == shuffled
    assert fast.parsed in (None, shuffled)
    # The flags that carry money or an end never come from a search.
    assert fast.parsed is not None or not flags(fast) - CONTENT


@given(CHUNKS, st.sampled_from(["chat", "completions", "responses", "messages", "transcription"]))
def test_no_event_with_counts_is_passed_over(chunk: dict[str, Any], kind: str) -> None:
    nested = {"message": {"usage": {"input_tokens": 1}}, "response": {"usage": {"output_tokens": 1}}}
    message = {**chunk, **nested}
    facts = classify(event(message), kind)
    assert facts.error or facts.has_usage or usage_from(kind, message) is None


@given(
    st.binary(max_size=60),
    st.sampled_from(["chat", "completions", "responses", "messages", "transcription", "x"]),
)
def test_no_bytes_make_it_fail(data: bytes, kind: str) -> None:
    for candidate in (
        data,
        b"data: " + data + b"\n\n",
        b"event: content_block_delta\ndata: {" + data + b"}\n\n",
    ):
        facts = classify(candidate, kind)
        assert not (facts.malformed and flags(facts) != {"malformed"})


def test_duplicate_events_are_two_events() -> None:
    data = choice(delta={"content": "x"})
    assert fed([data + data])[0] == [data, data]
