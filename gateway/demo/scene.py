"""The demo's parts, started and stopped together: two engines that schedule, one that cannot boot, an
endpoint, the gateway.

Everything is real but the model: sockets, server-sent events, KV blocks, prices. No GPU, no key, no network.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe

from gateway.app import build
from gateway.config.load import load
from gateway.demo.config import ADMIN_KEY, BIG_MODEL, ENDPOINT_KEY, MODEL, Addresses, config_text, policy_text
from gateway.running import Gateway
from gateway.server import serving
from gateway.simulator.boot_failure import BootFailureLog
from gateway.simulator.engine import StepTime
from gateway.simulator.fake_endpoint import FakeEndpoint
from gateway.simulator.fake_vllm import FakeVLLM
from gateway.simulator.generation import varied_length

BLOCK_SIZE = 16
_BLOCKS = 161
_STEP = StepTime(base=0.020, per_token=0.000_030)
_MAX_SEQS = 32
MEAN_OUTPUT = 90.0
MEAN_PROMPT = 300.0


@dataclass(frozen=True, slots=True)
class Scene:
    """The running parts."""

    gateway: Gateway
    url: str
    engines: tuple[FakeVLLM, FakeVLLM]
    endpoint: FakeEndpoint

    async def direct(self, seconds: float) -> None:
        """What befalls the fleet: at 65 % of the time one engine dies, at 80 % it is back."""
        await asyncio.sleep(0.65 * seconds)
        await self.engines[1].kill()
        await asyncio.sleep(0.15 * seconds)
        await self.engines[1].restart()


def capacity() -> float:
    """Work units per second that one engine sustains: as many requests as its blocks hold, at its own step
    time."""
    at_once = (_BLOCKS - 1) // -(-int(MEAN_PROMPT + MEAN_OUTPUT) // BLOCK_SIZE)
    step = _STEP.base + _STEP.per_token * at_once
    seconds = MEAN_OUTPUT * step + _STEP.per_token * MEAN_PROMPT
    return at_once * (MEAN_PROMPT + 4 * MEAN_OUTPUT) / seconds


def _engine() -> FakeVLLM:
    return FakeVLLM(
        MODEL,
        num_blocks=_BLOCKS,
        block_size=BLOCK_SIZE,
        max_num_seqs=_MAX_SEQS,
        max_model_len=2048,
        step=_STEP,
        output_length=varied_length(MEAN_OUTPUT),
    )


@asynccontextmanager
async def on_stage(folder: Path, seconds: float, port: int) -> AsyncIterator[Scene]:
    """Everything started; stopped on leaving, the ledger whole. `folder` gets configuration, boot log and
    ledger."""
    keys = {ADMIN_KEY: token_urlsafe(16), ENDPOINT_KEY: token_urlsafe(16)}
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(_engine())
        second = await stack.enter_async_context(_engine())
        models = (f"vendor/{MODEL}", f"vendor/{BIG_MODEL}")
        endpoint = await stack.enter_async_context(
            FakeEndpoint(
                models, api_key=keys[ENDPOINT_KEY], latency=0.15, output_length=varied_length(MEAN_OUTPUT)
            )
        )
        config = _write(folder, first, second, endpoint, seconds)
        gateway = build(load(config, keys))
        url = await stack.enter_async_context(serving(gateway, port=port))
        yield Scene(gateway, url, (first, second), endpoint)


def _write(folder: Path, first: FakeVLLM, second: FakeVLLM, endpoint: FakeEndpoint, seconds: float) -> Path:
    boot_log = folder / "l4-c.log"
    BootFailureLog().write(boot_log)
    at = Addresses(
        first.base_url,
        second.base_url,
        "http://127.0.0.1:9",
        endpoint.base_url,
        str(boot_log),
        str(folder / "ledger.db"),
    )
    (folder / "policies").mkdir(exist_ok=True)
    (folder / "policies" / "demo.yaml").write_text(policy_text(seconds))
    path = folder / "spillgate.yaml"
    path.write_text(config_text(at, capacity()))
    return path
