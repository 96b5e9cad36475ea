"""Answers under way: which tokens of which choice were made and sent, streamed or kept for one whole body.

Knows vLLM's shapes and an `Exchange`, not when tokens are made. Each call writes at most once to a stream.
"""

from gateway.simulator import vllm_shapes as shapes
from gateway.simulator.generation import Ask, words
from gateway.simulator.http_server import Exchange

_ID_PREFIX = {"chat": "chatcmpl-", "completions": "cmpl-"}


class Choice:
    """One choice of an answer, which is one request of the scheduler (`id`)."""

    __slots__ = ("answer", "id", "index", "made", "reason", "writer")

    def __init__(self, answer: "Answer", index: int) -> None:
        ask = answer.ask
        self.answer = answer
        self.index = index
        self.id = f"{answer.id}-{index}"
        self.made = 0
        self.reason: str | None = None
        self.writer = shapes.ChunkWriter(
            ask.kind,
            answer.head,
            index,
            ask.prompt_tokens,
            usage_asked=ask.include_usage,
            with_usage=ask.include_usage and ask.continuous_usage,
        )

    def text(self, start: int = 0) -> str:
        """The words from token `start` to the last one made."""
        return words(self.answer.ask.seed + self.index, start, self.made - start)


class Answer:
    """One HTTP request being answered."""

    __slots__ = ("ask", "choices", "created", "exchange", "head", "id", "model")

    def __init__(self, exchange: Exchange, ask: Ask, request_id: str, model: str, created: int) -> None:
        self.exchange = exchange
        self.ask = ask
        self.id = _ID_PREFIX[ask.kind] + request_id
        self.model = model
        self.created = created
        self.head = shapes.stream_head(ask.kind, self.id, created, model)
        self.choices = [Choice(self, index) for index in range(ask.choices * ask.prompts)]

    @property
    def is_complete(self) -> bool:
        """Whether every choice has ended."""
        return all(choice.reason for choice in self.choices)

    @property
    def completion_tokens(self) -> int:
        """Tokens made so far over all choices."""
        return sum(choice.made for choice in self.choices)

    def open(self) -> None:
        """Accept the request: a stream's headers go out before the model has done anything."""
        if self.ask.stream:
            self.exchange.start_stream()

    def advance(self, choice: Choice, tokens: int, reason: str | None) -> None:
        """`tokens` more of `choice` exist; with a reason they are its last."""
        start = choice.made
        choice.made += tokens
        choice.reason = reason
        if self.ask.stream:
            role = b"" if start else choice.writer.role()
            data = role + choice.writer.piece(choice.text(start), choice.made, reason)
            if reason is None or not self.is_complete:
                self.exchange.write(data)
            else:
                self.exchange.finish(data + self._usage() + shapes.DONE)
        elif self.is_complete:
            self.exchange.respond(200, self._whole())

    def fail(self, message: str) -> None:
        """The engine is gone: an error event and [DONE] where the stream is open, else status 500."""
        if self.ask.stream:
            self.exchange.finish(shapes.error_event(message) + shapes.DONE)
        else:
            self.exchange.respond(500, shapes.error_body(500, message, "InternalServerError"))

    def _usage(self) -> bytes:
        if not self.ask.include_usage:
            return b""
        return shapes.usage_event(self.head, self.ask.prompt_tokens, self.completion_tokens)

    def _whole(self) -> bytes:
        choices = [(choice.text(), choice.reason or "stop") for choice in self.choices]
        counts = (self.ask.prompt_tokens, self.completion_tokens)
        return shapes.whole_body(self.ask.kind, self.id, self.created, self.model, choices, *counts)
