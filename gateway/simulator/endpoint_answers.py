"""One answer of a per-token endpoint under way, made at an even pace, and the line it leaves on the bill.

Knows the endpoint's shapes and an `Exchange`; when the time for the next token has come, the caller says.
"""

import time
from typing import Literal, NamedTuple

from gateway.simulator import endpoint_shapes as shapes
from gateway.simulator.generation import Ask, words
from gateway.simulator.http_server import Exchange
from gateway.wire.usage import Usage

Progress = Literal["open", "ended", "cut"]


class BillLine(NamedTuple):
    """One billed answer. One whose client left, or that was cut, is billed for the tokens made until then."""

    answer_id: str
    client_request_id: str | None
    model: str
    usage: Usage
    complete: bool


class Plan(NamedTuple):
    """What an answer will be: how long, from when (seconds, the caller's clock), at which pace, cut off
    where.
    """

    length: int
    starts_at: float
    token_seconds: float
    cached_tokens: int
    cut_after: int | None


class Answer:
    """All choices of an answer are made side by side, `made` tokens of each so far."""

    __slots__ = ("ask", "exchange", "id", "made", "model", "plan", "writer")

    def __init__(self, exchange: Exchange, ask: Ask, answer_id: str, model: str, plan: Plan) -> None:
        self.exchange = exchange
        self.ask = ask
        self.id = answer_id
        self.model = model
        self.plan = plan
        self.made = 0
        created = int(time.time())
        self.writer = shapes.ChunkWriter(ask.kind, answer_id, created, model, usage_asked=ask.include_usage)

    @property
    def counts(self) -> shapes.Counts:
        """Tokens so far, all choices together."""
        return shapes.Counts(self.ask.prompt_tokens, self.plan.cached_tokens, self.made * self.ask.choices)

    def advance(self, now: float) -> Progress:
        """Write what is due at `now`, and say how the answer stands after that."""
        plan, start = self.plan, self.made
        if now < plan.starts_at:
            return "open"
        due = plan.length if plan.token_seconds <= 0 else int((now - plan.starts_at) / plan.token_seconds) + 1
        cut = plan.cut_after is not None and due >= plan.cut_after
        self.made = min(due, plan.length, plan.length if plan.cut_after is None else plan.cut_after)
        ended = self.made >= plan.length and not cut
        if self.ask.stream and self.made > start:
            self._write(start, ended)
        if cut:
            self.exchange.cut()
        elif ended and not self.ask.stream:
            self.exchange.respond(200, self._whole())
        return "cut" if cut else "ended" if ended else "open"

    def line(self, *, complete: bool) -> BillLine:
        """What the provider charges for."""
        counts = self.counts
        usage = Usage(counts.prompt, counts.cached, counts.completion, reasoning=0, source="reported")
        return BillLine(self.id, self.exchange.headers.get("x-request-id"), self.model, usage, complete)

    def _write(self, start: int, ended: bool) -> None:
        choices = range(self.ask.choices)
        parts = [] if start else [self.writer.role(index) for index in choices]
        parts += [self.writer.piece(index, self._text(index, start)) for index in choices]
        if not ended:
            self.exchange.write(b"".join(parts))
            return
        parts += [self.writer.last(index, self._reason()) for index in choices]
        if self.ask.include_usage:
            parts.append(self.writer.usage(self.counts))
        self.exchange.finish(b"".join(parts) + shapes.DONE)

    def _whole(self) -> bytes:
        choices = [(self._text(index, 0), self._reason()) for index in range(self.ask.choices)]
        return shapes.whole_body(self.ask.kind, self.id, int(time.time()), self.model, choices, self.counts)

    def _text(self, index: int, start: int) -> str:
        return words(self.ask.seed + index, start, self.made - start)

    def _reason(self) -> str:
        return (
            "length"
            if self.ask.max_tokens is not None and self.plan.length >= self.ask.max_tokens
            else "stop"
        )
