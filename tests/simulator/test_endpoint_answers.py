"""An answer made at an even pace, against a connection that only records."""

from typing import cast

import pytest

from gateway.simulator.endpoint_answers import Answer, Plan
from gateway.simulator.generation import read_ask
from gateway.simulator.http_server import Exchange


class Recorder:
    """What an Exchange would have sent."""

    def __init__(self) -> None:
        self.headers = {"x-request-id": "mine"}
        self.writes: list[bytes] = []
        self.end: str | None = None

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def finish(self, data: bytes) -> None:
        self.writes.append(data)
        self.end = "finished"

    def respond(self, status: int, body: bytes) -> None:
        self.writes.append(body)
        self.end = f"status {status}"

    def cut(self) -> None:
        self.end = "cut"


def answer(
    length: int = 10, cut_after: int | None = None, pace: float = 0.5, **fields: object
) -> tuple[Answer, Recorder]:
    recorder = Recorder()
    ask = read_ask("chat", {"messages": [{"content": "hello world!"}], "stream": True, **fields})
    plan = Plan(length, 100.0, pace, cached_tokens=1, cut_after=cut_after)
    return Answer(cast(Exchange, recorder), ask, "chatcmpl-1", "m", plan), recorder


def test_tokens_are_due_by_the_clock_and_one_write_carries_all_that_are() -> None:
    made, recorder = answer()
    assert (made.advance(99.9), made.made) == ("open", 0)
    assert (made.advance(100.0), made.made) == ("open", 1)
    assert (made.advance(100.4), made.made) == ("open", 1)
    assert (made.advance(102.1), made.made) == ("open", 5)
    assert len(recorder.writes) == 2
    assert (made.advance(200.0), made.made, recorder.end) == ("ended", 10, "finished")
    assert recorder.writes[-1].endswith(b"data: [DONE]\n\n")


def test_without_a_pace_all_comes_at_once() -> None:
    made, recorder = answer(pace=0.0, stream=False)
    assert (made.advance(100.0), recorder.end, len(recorder.writes)) == ("ended", "status 200", 1)


@pytest.mark.parametrize("after", [0, 3, 10])
def test_a_cut_answer_stops_where_it_was_ordered_and_never_ends_properly(after: int) -> None:
    made, recorder = answer(cut_after=after)
    assert (made.advance(500.0), made.made, recorder.end) == ("cut", after, "cut")
    assert b"[DONE]" not in b"".join(recorder.writes)


def test_the_bill_has_the_tokens_made_so_far_of_all_choices() -> None:
    made, _ = answer(n=2)
    made.advance(101.0)
    line = made.line(complete=False)
    assert (line.answer_id, line.client_request_id, line.complete) == ("chatcmpl-1", "mine", False)
    assert (line.usage.prompt, line.usage.cached, line.usage.completion) == (3, 1, 6)


@pytest.mark.parametrize(("limit", "reason"), [(10, "length"), (11, "stop"), (None, "stop")])
def test_the_reason_tells_a_limit_from_an_end(limit: int | None, reason: str) -> None:
    made, recorder = answer(max_tokens=limit)
    made.advance(500.0)
    assert f'"finish_reason":"{reason}"'.encode() in recorder.writes[-1]
