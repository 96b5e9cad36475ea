"""A vLLM server without a model: real HTTP, real block scheduling in real time, made-up words.

Knows the paths and what becomes of a request; when tokens exist is the scheduler's affair (`real_time`), what
answers look like is in `vllm_answers` and `vllm_shapes`, what is refused in `vllm_refusals`. Deaths, hangs
and restarts are those seen with 0.32.0. Run alone: `python -m gateway.simulator.fake_vllm --port 8000`.
"""

import asyncio
import hashlib
import time
from collections.abc import Iterator
from typing import Any, Self

import click

from gateway.simulator import vllm_shapes as shapes
from gateway.simulator.engine import BlockScheduler, EngineShape, StepTime
from gateway.simulator.generation import Ask, OutputLength, read_ask, varied_length
from gateway.simulator.http_server import Exchange, HttpServer
from gateway.simulator.real_time import Progress, RealTimeEngine
from gateway.simulator.serve import run_until_stopped
from gateway.simulator.vllm_answers import Answer, Choice
from gateway.simulator.vllm_refusals import (
    BUSY,
    Limits,
    Refusal,
    effective_max_tokens,
    parse_object,
    read_body,
)
from gateway.vllm.metrics import CacheFacts, RankMetrics, expose
from gateway.workload.text import BYTES_PER_TOKEN

_GENERATING = {"/v1/chat/completions": "chat", "/v1/completions": "completions"}


class FakeVLLM:
    """One engine with one rank. `start` and `stop`, or `async with`; the controls may be used while it runs.

    `model` may be several served names, the first is the real one. `output_length` decides where `ignore_eos`
    is not set. Raises ValueError for a window that does not fit in the blocks: the real engine would not boot
    then.
    """

    def __init__(
        self,
        model: str | tuple[str, ...] = "tiny",
        *,
        num_blocks: int = 64,
        block_size: int = 32,
        max_num_seqs: int = 16,
        max_num_batched_tokens: int = 2048,
        max_model_len: int = 1024,
        max_num_queued_reqs: int | None = None,
        prefix_caching: bool = False,
        step: StepTime | None = None,
        output_length: OutputLength | None = None,
        api_key: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.shape = EngineShape(num_blocks, block_size, max_num_seqs, max_num_batched_tokens, prefix_caching)
        if not self.shape.fits(max_model_len, 1):
            room = self.shape.usable_blocks * block_size
            raise ValueError(f"max_model_len {max_model_len} does not fit in {room} tokens of KV cache")
        self.limits = Limits((model,) if isinstance(model, str) else model, max_model_len)
        self.step_time = step or StepTime()
        self.output_length = output_length or varied_length()
        self.max_num_queued_reqs = max_num_queued_reqs
        self.server = HttpServer(self._on_request, host, port)
        self._key = api_key
        self._serial = 0
        self._boot()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:port`; the OpenAI paths are below `/v1`."""
        return self.server.base_url

    @property
    def port(self) -> int:
        """The port, known once started."""
        return self.server.port

    @property
    def scheduler(self) -> BlockScheduler:
        """The scheduler of the current start; a restart makes a new one."""
        return self.engine.scheduler

    async def start(self) -> None:
        """Boot with an empty cache and counters at 0, and listen; raises OSError if the port is taken."""
        self._boot()
        await self.server.start()

    async def stop(self) -> None:
        """Drop everything."""
        self.engine.halt()
        await self.server.stop()

    async def kill(self) -> None:
        """SIGKILL of the API process: open streams end in a plain EOF without [DONE], new connections are
        refused.
        """
        await self.stop()

    async def restart(self) -> None:
        """Stop, and come back on the same port."""
        await self.stop()
        await self.start()

    def hang(self) -> None:
        """SIGSTOP of the engine: /health 200, /metrics frozen, requests accepted, no token made."""
        self.engine.pause()

    def resume(self) -> None:
        """End of `hang`: the step under way is finished and the rest follows."""
        self.engine.resume()

    async def core_died(self, linger: float = 0.05) -> None:
        """SIGKILL of the engine core: an error event and [DONE] to open streams, 500 to the others, then
        refusal.

        For `linger` seconds the API process still answers: /health 503, /metrics and /v1/models 200,
        generation 500.
        """
        self.engine.halt()
        self.is_dead = True
        for answer in {id(choice.answer): choice.answer for choice in self._choices.values()}.values():
            answer.fail(shapes.ENGINE_DEAD)
        self._choices.clear()
        await asyncio.sleep(linger)
        await self.server.stop()

    def metrics_page(self) -> str:
        """What GET /metrics answers: the state at the end of the last step, as with vLLM's own gauges."""
        stats, blocks, size = self.engine.published, self.shape.num_blocks, self.shape.block_size
        rank = RankMetrics(
            rank="0",
            kv_usage=stats.kv_usage,
            running=stats.running,
            waiting=stats.waiting,
            waiting_capacity=stats.waiting,
            preemptions=stats.preemptions_reported,
            prompt_tokens=stats.prompt_tokens,
            generation_tokens=stats.generation_tokens,
            success=stats.finished_stop + stats.finished_length,
            cached_prompt_tokens=stats.cached_prompt_tokens,
            awake=True,
            cache=CacheFacts(blocks, size, blocks * size, self.shape.prefix_caching),
        )
        return expose((rank,), self.limits.names[0], self.rejections)

    def _boot(self) -> None:
        self.engine = RealTimeEngine(BlockScheduler(self.shape, self.step_time), self._on_progress)
        self.is_dead = False
        self.rejections = 0
        self._choices: dict[str, Choice] = {}

    def _on_request(self, exchange: Exchange) -> None:
        path = exchange.path
        if (
            self._key
            and path.startswith("/v1/")
            and exchange.headers.get("authorization") != f"Bearer {self._key}"
        ):
            # A string and not an object, unlike every other error of vLLM.
            exchange.respond(401, b'{"error":"Unauthorized"}')
            return
        wanted = "POST" if path in _GENERATING or path == "/tokenize" else "GET"
        if path not in _GENERATING and path not in _PLAIN:
            exchange.respond(404, b'{"detail":"Not Found"}')
        elif exchange.method != wanted:
            exchange.respond(405, b'{"detail":"Method Not Allowed"}', headers={"allow": wanted})
        elif path in _GENERATING:
            self._generate(_GENERATING[path], exchange)
        else:
            _PLAIN[path](self, exchange)

    def _health(self, exchange: Exchange) -> None:
        exchange.respond(503 if self.is_dead else 200)

    def _version(self, exchange: Exchange) -> None:
        exchange.respond(200, b'{"version":"0.32.0"}')

    def _load(self, exchange: Exchange) -> None:
        exchange.respond(200, b'{"server_load":0}')

    def _models(self, exchange: Exchange) -> None:
        names = self.limits.names
        exchange.respond(
            200, shapes.models_body(names, names[0], int(time.time()), self.limits.max_model_len)
        )

    def _metrics(self, exchange: Exchange) -> None:
        exchange.respond(200, self.metrics_page().encode(), "text/plain; version=1.0.0; charset=utf-8")

    def _tokenize(self, exchange: Exchange) -> None:
        body = parse_object(exchange.headers.get("content-type", ""), exchange.body)
        if isinstance(body, Refusal):
            _refuse(exchange, body)
            return
        count = read_ask("chat", body).prompt_tokens
        exchange.respond(200, shapes.tokens_body(count, self.limits.max_model_len))

    def _generate(self, kind: str, exchange: Exchange) -> None:
        ask = read_body(kind, exchange.headers.get("content-type", ""), exchange.body, self.limits)
        if isinstance(ask, Refusal):
            _refuse(exchange, ask)
        elif self.is_dead:
            exchange.respond(500, shapes.error_body(500, shapes.ENGINE_DEAD, "InternalServerError"))
        elif self.max_num_queued_reqs is not None and len(self._choices) >= self.max_num_queued_reqs:
            # vLLM compares requests in flight, running ones too, with this flag (seen with 0.32.0).
            self.rejections += 1
            _refuse(exchange, BUSY)
        else:
            self._accept(exchange, ask)

    def _accept(self, exchange: Exchange, ask: Ask) -> None:
        answer = self._new_answer(exchange, ask)
        exchange.on_disconnect = lambda: self._abort(answer)
        answer.open()
        most = effective_max_tokens(ask, self.limits.max_model_len)
        prompt = max(1, ask.prompt_tokens // ask.prompts)
        prefix = tuple(_prefix_keys(ask.text, self.shape.block_size)) if self.shape.prefix_caching else ()
        for choice in answer.choices:
            made = most if ask.ignore_eos else self.output_length(prompt, most, ask.seed + choice.index)
            self._choices[choice.id] = choice
            self.scheduler.add(choice.id, prompt, most, max(made, ask.min_tokens, 1), prefix)
        self.engine.wake()

    def _new_answer(self, exchange: Exchange, ask: Ask) -> Answer:
        self._serial += 1
        made_up = f"{ask.seed & 0xFFFFFFFF:08x}{self._serial:08x}"
        model, created = ask.model or self.limits.names[0], int(time.time())
        answer = Answer(exchange, ask, exchange.headers.get("x-request-id") or made_up, model, created)
        # Two live requests with one id cannot be told apart; the real engine's behaviour there is not known.
        in_use = answer.choices[0].id in self._choices
        return Answer(exchange, ask, made_up, model, created) if in_use else answer

    def _abort(self, answer: Answer) -> None:
        for choice in answer.choices:
            if self._choices.pop(choice.id, None) is not None:
                self.engine.abort(choice.id)

    def _on_progress(self, progress: Progress) -> None:
        for choice_id, tokens in progress.emitted.items():
            reason = progress.finished.get(choice_id)
            choice = self._choices.get(choice_id) if reason is None else self._choices.pop(choice_id, None)
            # Gone if its client left while the step was under way.
            if choice is not None:
                choice.answer.advance(choice, tokens, reason)


_PLAIN = {
    "/health": FakeVLLM._health,
    "/ping": FakeVLLM._health,
    "/version": FakeVLLM._version,
    "/load": FakeVLLM._load,
    "/metrics": FakeVLLM._metrics,
    "/v1/models": FakeVLLM._models,
    "/tokenize": FakeVLLM._tokenize,
}


def _refuse(exchange: Exchange, refusal: Refusal) -> None:
    body = shapes.error_body(refusal.status, refusal.message, refusal.kind, refusal.param)
    exchange.respond(refusal.status, body)


def _prefix_keys(text: bytes, block_size: int) -> Iterator[bytes]:
    """One key for each full block of prompt, each depending on all before it, as vLLM's block hashes do."""
    size = block_size * BYTES_PER_TOKEN
    key = b""
    for start in range(0, len(text) - size + 1, size):
        key = hashlib.blake2b(key + text[start : start + size], digest_size=16).digest()
        yield key


@click.command()
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; loopback unless in a container.",
)
@click.option("--port", default=8000, show_default=True)
@click.option(
    "--model", multiple=True, default=("tiny",), show_default=True, help="A served name; may be repeated."
)
@click.option("--num-blocks", default=512, show_default=True, help="KV blocks, the null block included.")
@click.option("--block-size", default=16, show_default=True, help="Tokens per block.")
@click.option("--max-num-seqs", default=64, show_default=True)
@click.option("--max-num-batched-tokens", default=2048, show_default=True)
@click.option("--max-model-len", default=4096, show_default=True)
@click.option("--step-base", default=0.010, show_default=True, help="Seconds that any step takes.")
@click.option(
    "--step-per-token", default=0.000_06, show_default=True, help="Seconds more for each token of a step."
)
@click.option(
    "--mean-output", default=200.0, show_default=True, help="Mean tokens of an answer that ends by itself."
)
@click.option("--api-key", default=None, help="Guard /v1 paths with this key.")
def main(
    model: tuple[str, ...], step_base: float, step_per_token: float, mean_output: float, **flags: Any
) -> None:
    """Serve a vLLM engine without a model until interrupted."""
    step, length = StepTime(step_base, step_per_token), varied_length(mean_output)
    run_until_stopped(FakeVLLM(model, step=step, output_length=length, **flags))


if __name__ == "__main__":
    main()
