"""A per-token endpoint without a model: checks the key, refuses what it does not know, streams at a fixed
pace, bills.

Knows its own bill to the token, which is what tests hold the ledger against; it knows no prices. Failures are
ordered from outside (`fail_next`, `cut_next`, `rate_limit`). Run alone: `python -m
gateway.simulator.fake_endpoint --port 9000`.
"""

import asyncio
import json
import time
from collections import deque
from typing import Any, Self

import click

from gateway.simulator import endpoint_shapes as shapes
from gateway.simulator.endpoint_answers import Answer, BillLine, Plan
from gateway.simulator.generation import Ask, OutputLength, read_ask, varied_length
from gateway.simulator.http_server import Exchange, HttpServer
from gateway.simulator.serve import run_until_stopped
from gateway.wire.usage import Usage

_KINDS = {"/v1/chat/completions": "chat", "/v1/completions": "completions", "/v1/embeddings": "embeddings"}
_ID_PREFIX = {"chat": "chatcmpl-", "completions": "cmpl-", "embeddings": "embd-"}
_DEFAULT_MAX_TOKENS = 4096
# Streams are written in rounds and not each on its own timer: hundreds of them then cost a few timers a
# second.
_SHORTEST_ROUND = 0.005


class FakeEndpoint:
    """One provider. `start` and `stop`, or `async with`; plain attributes may be changed while it runs.

    `latency` is seconds to the first token, `token_seconds` between tokens, `cached_share` the part of each
    prompt that is reported and billed as cached, `rate_limit` requests per second with a burst of one second
    (None: no limit). Not `strict`: unknown body fields are ignored. `bill` has one line for each answer, in
    the order they ended.
    """

    def __init__(
        self,
        models: str | tuple[str, ...] = "tiny-remote",
        *,
        api_key: str = "endpoint-key",
        latency: float = 0.05,
        token_seconds: float = 0.01,
        cached_share: float = 0.0,
        rate_limit: float | None = None,
        output_length: OutputLength | None = None,
        strict: bool = True,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.models = (models,) if isinstance(models, str) else models
        self.api_key = api_key
        self.latency = latency
        self.token_seconds = token_seconds
        self.cached_share = cached_share
        self.rate_limit = rate_limit
        self.output_length = output_length or varied_length()
        self.strict = strict
        self.server = HttpServer(self._on_request, host, port, name="provider")
        self.bill: list[BillLine] = []
        self.requests = 0
        self._failures: deque[shapes.ProviderError] = deque()
        self._cuts: deque[int] = deque()
        self._tokens_left: tuple[float, float] | None = None
        self._answers: dict[str, Answer] = {}
        self._round: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def base_url(self) -> str:
        """What clients take as base URL, `/v1` included."""
        return f"{self.server.base_url}/v1"

    @property
    def port(self) -> int:
        """The port, known once started."""
        return self.server.port

    async def start(self) -> None:
        """Listen and serve; raises OSError if the port is taken."""
        await self.server.start()

    async def stop(self) -> None:
        """Drop everything; open answers are billed as far as they got."""
        if self._round is not None:
            self._round.cancel()
            self._round = None
        await self.server.stop()

    def fail_next(self, status: int, times: int = 1, retry_after: float | None = None) -> None:
        """Answer the next `times` requests with this status; nothing is billed for them."""
        self._failures.extend([shapes.failure(status, retry_after)] * times)

    def cut_next(self, after_tokens: int, times: int = 1) -> None:
        """Drop the connection of the next `times` generations after so many tokens (0: headers only, if
        streamed).
        """
        self._cuts.extend([after_tokens] * times)

    def billed(self) -> Usage:
        """The whole bill so far."""
        usages = [line.usage for line in self.bill]
        return Usage(
            prompt=sum(usage.prompt or 0 for usage in usages),
            cached=sum(usage.cached or 0 for usage in usages),
            completion=sum(usage.completion or 0 for usage in usages),
            reasoning=0,
            source="reported",
        )

    def _on_request(self, exchange: Exchange) -> None:
        wanted = "GET" if exchange.path == "/v1/models" else "POST"
        if (exchange.path not in _KINDS and wanted == "POST") or exchange.method != wanted:
            exchange.respond(404, shapes.unknown_url(exchange.method, exchange.path).body())
            return
        self.requests += 1
        error = self._refuse_early(exchange)
        if error is not None:
            exchange.respond(error.status, error.body(), headers=error.headers())
        elif wanted == "GET":
            exchange.respond(200, shapes.models_body(self.models, int(time.time())))
        else:
            self._on_body(_KINDS[exchange.path], exchange)

    def _refuse_early(self, exchange: Exchange) -> shapes.ProviderError | None:
        if exchange.headers.get("authorization") != f"Bearer {self.api_key}":
            return shapes.bad_key()
        if self._failures:
            return self._failures.popleft()
        return self._refuse_rate(self.rate_limit) if self.rate_limit is not None else None

    def _refuse_rate(self, limit: float) -> shapes.ProviderError | None:
        now, burst = asyncio.get_running_loop().time(), max(1.0, limit)
        left, since = self._tokens_left or (burst, now)
        left = min(burst, left + (now - since) * limit)
        if left < 1.0:
            self._tokens_left = (left, now)
            return shapes.rate_limited(round((1.0 - left) / limit, 3))
        self._tokens_left = (left - 1.0, now)
        return None

    def _on_body(self, kind: str, exchange: Exchange) -> None:
        body = _read_object(exchange.body)
        refused = self._refuse_body(body)
        if refused is not None:
            exchange.respond(refused.status, refused.body())
        elif kind == "embeddings":
            self._embed(exchange, read_ask(kind, body))
        else:
            self._generate(exchange, read_ask(kind, body))

    def _refuse_body(self, body: dict[str, Any]) -> shapes.ProviderError | None:
        if not body:
            return shapes.bad_json()
        unknown = next((name for name in body if name not in shapes.KNOWN_FIELDS), None)
        if self.strict and unknown is not None:
            return shapes.unknown_argument(unknown)
        if body.get("model") not in self.models:
            return shapes.unknown_model(body.get("model"))
        if body.get("stream_options") is not None and body.get("stream") is not True:
            return shapes.bad_request(
                "'stream_options' is only allowed when 'stream' is enabled.", "stream_options"
            )
        return None

    def _embed(self, exchange: Exchange, ask: Ask) -> None:
        answer = Answer(
            exchange, ask, self._new_id(exchange, ask), ask.model or "", Plan(0, 0.0, 0.0, 0, None)
        )
        self.bill.append(answer.line(complete=True))
        exchange.respond(200, shapes.embeddings_body(answer.model, ask.prompts, ask.prompt_tokens))

    def _generate(self, exchange: Exchange, ask: Ask) -> None:
        most = _DEFAULT_MAX_TOKENS if ask.max_tokens is None else max(1, ask.max_tokens)
        plan = Plan(
            length=self.output_length(ask.prompt_tokens, most, ask.seed),
            starts_at=asyncio.get_running_loop().time() + self.latency,
            token_seconds=self.token_seconds,
            cached_tokens=int(ask.prompt_tokens * self.cached_share),
            cut_after=self._cuts.popleft() if self._cuts else None,
        )
        answer = Answer(exchange, ask, self._new_id(exchange, ask), ask.model or "", plan)
        exchange.on_disconnect = lambda: self._close(answer, complete=False)
        if ask.stream:
            exchange.start_stream()
        self._answers[answer.id] = answer
        self._arm()

    def _new_id(self, exchange: Exchange, ask: Ask) -> str:
        return f"{_ID_PREFIX[ask.kind]}{ask.seed & 0xFFFFFFFF:08x}{self.requests:08x}"

    def _close(self, answer: Answer, *, complete: bool) -> None:
        if self._answers.pop(answer.id, None) is not None:
            self.bill.append(answer.line(complete=complete))

    def _arm(self) -> None:
        if self._round is None and self._answers:
            loop = asyncio.get_running_loop()
            self._round = loop.call_later(max(_SHORTEST_ROUND, self.token_seconds), self._advance)

    def _advance(self) -> None:
        now = asyncio.get_running_loop().time()
        for answer in list(self._answers.values()):
            progress = answer.advance(now)
            if progress != "open":
                self._close(answer, complete=progress == "ended")
        self._round = None
        self._arm()


def _read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body; empty for anything else."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


@click.command()
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; loopback unless in a container.",
)
@click.option("--port", default=9000, show_default=True)
@click.option(
    "--model",
    multiple=True,
    default=("tiny-remote",),
    show_default=True,
    help="An offered model; may be repeated.",
)
@click.option("--api-key", default="endpoint-key", show_default=True, help="The one key that is let in.")
@click.option("--latency", default=0.3, show_default=True, help="Seconds to the first token.")
@click.option("--token-seconds", default=0.02, show_default=True, help="Seconds between tokens.")
@click.option(
    "--cached-share", default=0.0, show_default=True, help="Part of each prompt that is billed as cached."
)
@click.option("--rate-limit", default=None, type=float, help="Requests per second; none by default.")
@click.option("--mean-output", default=200.0, show_default=True, help="Mean tokens of an answer.")
def main(model: tuple[str, ...], mean_output: float, **flags: Any) -> None:
    """Serve a per-token endpoint without a model until interrupted."""
    run_until_stopped(FakeEndpoint(model, output_length=varied_length(mean_output), **flags))


if __name__ == "__main__":
    main()
