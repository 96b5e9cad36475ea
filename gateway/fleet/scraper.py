"""Reads every engine's metrics page in turn, bounded in time and size, and tells the registry. Decides
nothing.

One loop per engine, so that a slow engine delays nobody else's figures; never two reads of one engine at
once."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

from gateway.fleet.registry import Registry
from gateway.vllm.metrics import parse

# (engine, path, timeout in seconds, most bytes) -> status and body. Raises OSError, which TimeoutError is, on
# failure.
Fetch = Callable[[str, str, float, int], Awaitable[tuple[int, bytes]]]

# A page of vLLM 0.32 is 48 to 68 KB; with many LoRA adapters or ranks some hundred.
_MOST_BYTES = 4 * 1024 * 1024
_JITTER = 0.1


class Scraper:
    """`sleep` and `uniform` (0..1) are arguments so that tests need not wait or guess."""

    def __init__(
        self,
        registry: Registry,
        fetch: Fetch,
        interval: float = 1.0,
        timeout: float = 1.0,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self._registry, self._fetch, self._interval, self._timeout = registry, fetch, interval, timeout
        self._sleep, self._uniform = sleep, uniform

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for name in self._registry.names():
                group.create_task(self._watch(name))

    async def _watch(self, name: str) -> None:
        while True:
            await self.scrape(name)
            await self._sleep(self._interval * (1 + _JITTER * (2 * self._uniform() - 1)))

    async def scrape(self, name: str) -> None:
        """One read. Whatever goes wrong is told to the registry, never raised."""
        try:
            await self._read(name)
        except TimeoutError:
            # A busy API process answered after 4.7 s once (0.32.0): slow is not away while /health answers.
            if not await self._is_healthy(name):
                self._registry.on_failure(name, f"no metrics page within {self._timeout:g} s")
        except (OSError, ValueError) as error:
            self._registry.on_failure(name, str(error) or type(error).__name__)

    async def _read(self, name: str) -> None:
        page = await self._get(name, "/metrics")
        if b"# TYPE" not in page:
            raise ValueError("/metrics is no metrics page")
        metrics = parse(page)
        if self._registry.stands_still(name, metrics) and not await self._is_healthy(name):
            # After the core's death the API process still serves its last figures for a while.
            self._registry.on_failure(name, "its /health says that the engine is dead", is_sure=True)
            return
        self._registry.on_page(name, metrics)
        if self._registry.needs_facts(name):
            await self._ask_facts(name)

    async def _is_healthy(self, name: str) -> bool:
        try:
            await self._get(name, "/health")
        except OSError:
            return False
        return True

    async def _get(self, name: str, path: str) -> bytes:
        async with asyncio.timeout(self._timeout):
            status, body = await self._fetch(name, path, self._timeout, _MOST_BYTES)
        if status != 200:
            raise OSError(f"{path} answered with status {status}")
        return body

    async def _ask_facts(self, name: str) -> None:
        """Models, window and version; an engine that does not tell its version is still served."""
        cards = _cards(await self._get(name, "/v1/models"))
        lengths = [card["max_model_len"] for card in cards if isinstance(card.get("max_model_len"), int)]
        self._registry.on_facts(
            name,
            tuple(str(card.get("id")) for card in cards),
            min(lengths, default=None),
            await self._version(name),
        )

    async def _version(self, name: str) -> str | None:
        try:
            answer = json.loads(await self._get(name, "/version"))
        except (OSError, ValueError):
            return None
        version = answer.get("version") if isinstance(answer, dict) else None
        return version if isinstance(version, str) else None


def _cards(body: bytes) -> list[dict[str, Any]]:
    answer = json.loads(body)
    cards = answer.get("data") if isinstance(answer, dict) else None
    if isinstance(cards, list):
        return [card for card in cards if isinstance(card, dict)]
    raise ValueError("/v1/models has no list of models")
