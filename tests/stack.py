"""A whole gateway in this process, between a fake engine and a fake endpoint, on real sockets."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import select

from gateway.app import build
from gateway.config.load import load
from gateway.ledger.schema import attempts, requests
from gateway.running import Gateway
from gateway.server import serving
from gateway.simulator.engine import StepTime
from gateway.simulator.fake_endpoint import FakeEndpoint
from gateway.simulator.fake_vllm import FakeVLLM

ADMIN_KEY = "admin-key-of-the-tests"
ENDPOINT_KEY = "endpoint-key"
ENVIRON = {"TEST_ADMIN_KEY": ADMIN_KEY, "TEST_ENDPOINT_KEY": ENDPOINT_KEY}

CONFIG = """\
listen: {{host: 127.0.0.1, port: 0}}
ledger: {{url: "sqlite:///{folder}/ledger.db"}}
policies: policies
admin: {{key: "${{TEST_ADMIN_KEY}}"}}
scrape: {{interval: 100ms, timeout: 1s}}
limits: {{max_body: 1MiB}}
{extra}
engines:
  - name: a
    url: {engine}
    cost: {{usd_per_hour: 2.50, overhead_usd_per_hour: 0.30, capacity_work_units_per_second: 8000}}
endpoints:
  - name: serverless
    kind: openai
    base_url: {endpoint}
    api_key: ${{TEST_ENDPOINT_KEY}}
models:
  - name: tiny
    aliases: [small]
    engines: [a]
    overflow:
      - {{endpoint: serverless, model: tiny-remote, price: {{input: 0.20, cached_input: 0.10, output: 0.60}}}}
    policy: {policy}
"""

POLICY = """\
name: test
admit:
  headroom: {reserve: expected, quantile: 0.5, limit: 1.0}
  signal: {stale_after: 3s}
deadlines: {connect: 1s, first_byte: 5s, between_events: 5s, client_stall: 5s}
"""

# A real engine on a busy machine may take long for its first JSON schema.
PATIENT = POLICY.replace("first_byte: 5s, between_events: 5s", "first_byte: 60s, between_events: 60s")


@dataclass
class Stack:
    """The parts, and questions that tests ask of them."""

    gateway: Gateway
    url: str
    engine_url: str
    endpoint_url: str
    client: httpx.AsyncClient
    engine: FakeVLLM | None = None
    endpoint: FakeEndpoint | None = None
    folder: Path = field(default_factory=Path)

    async def ready(self) -> None:
        """Until the engine's pool is known."""
        import anyio

        with anyio.fail_after(10):
            while self.gateway.parts.view.snapshots["a"].usable_blocks is None:
                await anyio.sleep(0.01)

    async def chat(self, text: str = "hello world", headers: Any = None, **fields: Any) -> httpx.Response:
        body = {
            "model": "tiny",
            "messages": [{"role": "user", "content": text}],
            "max_tokens": 5,
            "ignore_eos": True,
        }
        return await self.client.post("/v1/chat/completions", json=body | fields, headers=headers)

    def rows(self, table: str = "requests") -> list[dict[str, Any]]:
        """What the store holds, oldest first, once the journal is moved over."""
        self.gateway.background.writer.move_now()
        wanted = {"requests": requests, "attempts": attempts}[table]
        order = wanted.c.t_in if table == "requests" else wanted.c.request_id
        with self.gateway.store.engine.connect() as connection:
            return [dict(row._mapping) for row in connection.execute(select(wanted).order_by(order))]

    def is_quiet(self) -> bool:
        """Nothing in flight, reserved or promised."""
        parts = self.gateway.parts
        idle = not any(parts.counters.inflight.values()) and parts.retry_budget.in_flight == 0
        books = [(len(b), b.promised_blocks, b.prefill_backlog) for b in parts.view.books.values()]
        return idle and all(book == (0, 0, 0) for book in books)


def write_config(folder: Path, engine: str, endpoint: str, *, extra: str = "", policy: str = POLICY) -> Path:
    """A spillgate.yaml with one policy in `folder`."""
    (folder / "policies").mkdir(exist_ok=True)
    name = policy.split("\n")[0].removeprefix("name: ")
    (folder / "policies" / f"{name}.yaml").write_text(policy)
    path = folder / "spillgate.yaml"
    path.write_text(CONFIG.format(folder=folder, engine=engine, endpoint=endpoint, extra=extra, policy=name))
    return path


@asynccontextmanager
async def running_stack(
    folder: Path,
    *,
    engine: FakeVLLM | str | None = None,
    endpoint: FakeEndpoint | str | None = None,
    extra: str = "",
    policy: str = POLICY,
) -> AsyncIterator[Stack]:
    """A gateway before `engine` and `endpoint`: fakes that are started here, or other things' addresses."""
    async with AsyncExitStack() as stack:
        fake = FakeVLLM(step=StepTime(0.001, 0.0)) if engine is None else engine
        far = FakeEndpoint(latency=0.0, token_seconds=0.001) if endpoint is None else endpoint
        for part in (fake, far):
            if not isinstance(part, str):
                await stack.enter_async_context(part)
        engine_url = fake if isinstance(fake, str) else fake.base_url
        endpoint_url = far if isinstance(far, str) else far.base_url
        path = write_config(folder, engine_url, endpoint_url, extra=extra, policy=policy)
        gateway = build(load(path, ENVIRON))
        url = await stack.enter_async_context(serving(gateway))
        # Plain HTTP: the certificates that httpx would load cost more than the rest of the stack.
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=15, verify=False))
        yield Stack(
            gateway, url, engine_url, endpoint_url, client,
            None if isinstance(fake, str) else fake, None if isinstance(far, str) else far, folder,
        )  # fmt: skip


def events(text: str) -> list[Any]:
    """The JSON payloads of a stream; `[DONE]` as that text."""
    payloads = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    return [p if p == "[DONE]" else json.loads(p) for p in payloads]
