"""Answers under way, against a connection that only records."""

import json
from typing import cast

import pytest

from gateway.simulator.generation import read_ask
from gateway.simulator.http_server import Exchange
from gateway.simulator.vllm_answers import Answer
from gateway.simulator.vllm_shapes import DONE, ENGINE_DEAD


class Recorder:
    """What an Exchange would have sent."""

    def __init__(self) -> None:
        self.opened = self.ended = False
        self.status: int | None = None
        self.writes: list[bytes] = []

    def start_stream(self) -> None:
        self.opened = True

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def finish(self, data: bytes) -> None:
        self.writes.append(data)
        self.ended = True

    def respond(self, status: int, body: bytes) -> None:
        self.status = status
        self.finish(body)


def answer(kind: str = "chat", **fields: object) -> tuple[Answer, Recorder]:
    recorder = Recorder()
    body = {"messages": [{"content": "hello world"}], "prompt": "hello world", **fields}
    made = Answer(cast(Exchange, recorder), read_ask(kind, body), "abc", "tiny", 1)
    made.open()
    return made, recorder


def events(recorder: Recorder) -> list[dict[str, object]]:
    found = b"".join(recorder.writes).split(b"\n\n")
    return [json.loads(event.removeprefix(b"data: ")) for event in found if event and b"[DONE]" not in event]


def test_a_stream_opens_at_once_and_has_one_write_for_each_advance() -> None:
    made, recorder = answer(stream=True)
    assert (recorder.opened, recorder.writes) == (True, [])
    made.advance(made.choices[0], 1, None)
    made.advance(made.choices[0], 3, None)
    made.advance(made.choices[0], 1, "stop")
    assert len(recorder.writes) == 3
    assert recorder.ended
    # The role chunk, one chunk for each advance, and no usage, which was not asked for.
    assert len(events(recorder)) == 4
    assert recorder.writes[-1].endswith(DONE)


def test_pieces_join_to_the_text_of_the_whole_answer() -> None:
    streamed, recorder = answer(stream=True)
    for tokens, reason in ((1, None), (4, None), (2, "length")):
        streamed.advance(streamed.choices[0], tokens, reason)
    whole, kept = answer()
    whole.advance(whole.choices[0], 7, "length")
    pieces = [event["choices"][0]["delta"].get("content", "") for event in events(recorder)]  # type: ignore[index]  # JSON
    assert "".join(pieces) == json.loads(kept.writes[0])["choices"][0]["message"]["content"]


def test_usage_comes_once_after_the_last_of_several_choices() -> None:
    made, recorder = answer(stream=True, n=2, stream_options={"include_usage": True})
    made.advance(made.choices[1], 2, "stop")
    assert not recorder.ended
    made.advance(made.choices[0], 3, "length")
    last = events(recorder)[-1]
    assert (last["choices"], last["usage"]) == (
        [],
        {"prompt_tokens": 3, "total_tokens": 8, "completion_tokens": 5},
    )


def test_a_whole_answer_waits_for_every_choice() -> None:
    made, recorder = answer(kind="completions", n=2)
    made.advance(made.choices[0], 2, "stop")
    assert recorder.writes == []
    made.advance(made.choices[1], 1, "length")
    body = json.loads(recorder.writes[0])
    assert [choice["finish_reason"] for choice in body["choices"]] == ["stop", "length"]
    assert (recorder.status, body["id"]) == (200, "cmpl-abc")


@pytest.mark.parametrize("stream", [True, False])
def test_a_dead_engine_is_told_in_the_shape_that_fits(stream: bool) -> None:
    made, recorder = answer(stream=stream)
    made.fail(ENGINE_DEAD)
    said = recorder.writes[0]
    assert ENGINE_DEAD.encode() in said
    assert (recorder.status, said.endswith(DONE)) == ((None, True) if stream else (500, False))
