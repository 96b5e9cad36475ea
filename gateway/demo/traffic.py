"""The demo's clients: the OpenAI SDK, sending what the workload says, when it says. Knows nothing of the
gateway's insides."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from gateway.demo.config import BIG_MODEL, MODEL
from gateway.workload.arrivals import Arrival, Mix, Uniform, constant, merge, ramp, shifted
from gateway.workload.text import text_of

_SEED = 7
_START_RPS, _PEAK_RPS, _BIG_RPS = 2.0, 9.0, 0.7
_MAX_TOKENS = 256


class Ask(Protocol):
    """Sends one streamed chat request and reads it to its end."""

    def __call__(self, model: str, text: str, max_tokens: int) -> Awaitable[None]:
        """Raises whatever the SDK raises."""
        ...


@dataclass(slots=True)
class Sent:
    """What the clients saw."""

    total: int = 0
    open: int = 0
    failed: int = 0
    errors: list[str] = field(default_factory=list)


def arrivals_of(seconds: float) -> list[Arrival]:
    """A ramp past what both engines hold, a plateau, a way down; beside it a trickle for the model that
    cannot boot."""
    draw = Uniform(_SEED)
    mix = Mix(prompt_median=250, prompt_spread=0.6, max_prompt=1024, max_tokens=_MAX_TOKENS, model=MODEL)
    up = ramp(_START_RPS, _PEAK_RPS, 0.4 * seconds, draw, mix)
    top = shifted(constant(_PEAK_RPS, 0.3 * seconds, draw, mix), 0.4 * seconds)
    down = shifted(ramp(_PEAK_RPS, _START_RPS, 0.3 * seconds, draw, mix), 0.7 * seconds)
    big = constant(_BIG_RPS, seconds, draw, mix._replace(model=BIG_MODEL))
    return merge(up, top, down, big)


async def send_all(arrivals: Iterable[Arrival], ask: Ask, sent: Sent, now: Callable[[], float]) -> None:
    """Send each at its time and wait for every answer; what fails is counted, with its first few reasons
    kept."""
    start = now()
    async with asyncio.TaskGroup() as group:
        for serial, arrival in enumerate(arrivals):
            await asyncio.sleep(max(0.0, start + arrival.at - now()))
            group.create_task(_one(arrival, serial, ask, sent))


async def _one(arrival: Arrival, serial: int, ask: Ask, sent: Sent) -> None:
    sent.total += 1
    sent.open += 1
    try:
        await ask(arrival.model, text_of(arrival.prompt_tokens, serial), arrival.max_tokens)
    except Exception as error:  # noqa: BLE001 -- whatever the SDK raises is what a user would see: it is counted
        sent.failed += 1
        if len(sent.errors) < 5:
            sent.errors.append(f"{type(error).__name__}: {error}"[:200])
    finally:
        sent.open -= 1
