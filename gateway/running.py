"""A gateway while it runs: starts what works in the background, recovers what an earlier process left, stops
in order."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from gateway.api.asgi import DataPlane, Gate
from gateway.config.schema import Config
from gateway.costs.work import EngineRate
from gateway.fleet.boot import BootWatcher
from gateway.fleet.partition import PartitionClock, StateSpan
from gateway.fleet.scraper import Scraper
from gateway.ledger.errors import StoreUnavailable
from gateway.ledger.journal import Journal
from gateway.ledger.lookup import find_request
from gateway.ledger.store import Store
from gateway.ledger.versions import span_record
from gateway.ledger.writer import Writer
from gateway.relay.parts import RelayParts
from gateway.upstreams.litellm_endpoint import LiteLLMLibrary

_log = logging.getLogger(__name__)

_RESTART_AFTER = 1.0
_TICK = 0.25
_DATABASE_TRIES = 5
_BUDGET_MEMORY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Background:
    """What runs beside requests."""

    scraper: Scraper
    boot: BootWatcher
    writer: Writer
    partition: PartitionClock
    rates: Mapping[str, EngineRate]


@dataclass(slots=True)
class Gateway:
    """Everything that `build` made. `asgi` is the application; `running` brings it to life and ends it."""

    config: Config
    parts: RelayParts
    gate: Gate
    background: Background
    journal: Journal
    store: Store
    library: LiteLLMLibrary
    asgi: DataPlane = field(init=False)

    @property
    def in_flight(self) -> int:
        """Requests being carried."""
        return self.parts.retry_budget.in_flight

    def prepare(self) -> None:
        """Bring the ledger's tables up to date; blocking. A database that starts beside the gateway may not
        answer yet: it is tried a few times, further and further apart. Raises StoreUnavailable,
        StoreMisconfigured.
        """
        tries = Retrying(
            retry=retry_if_exception_type(StoreUnavailable),
            stop=stop_after_attempt(_DATABASE_TRIES),
            wait=wait_exponential_jitter(multiplier=0.5, max=5),
            reraise=True,
        )
        tries(self.store.migrate)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Until left. Afterwards every record is in the store, or kept in the journal for the next start."""
        work = self.background
        # What an earlier process left comes first: budgets must know what it spent to its last moment.
        await asyncio.to_thread(work.writer.move_now)
        await self._recall_spending()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(keep_running("scraper", work.scraper.run)),
                group.create_task(keep_running("boot logs", work.boot.run)),
                group.create_task(keep_running("ledger writer", work.writer.run)),
                group.create_task(keep_running("clock", self._tick)),
                group.create_task(self._warm_library()),
            ]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
        await self._stop()

    async def find_request(self, request_id: str) -> dict[str, Any] | None:
        """One request's row and its attempts, as the store has them; None where it has no such request
        (yet)."""
        return await asyncio.to_thread(find_request, self.store.engine, request_id)

    async def _recall_spending(self) -> None:
        """Budgets outlive a restart: what the ledger knows of the last day is charged again."""
        since = (datetime.now(UTC) - _BUDGET_MEMORY).isoformat(timespec="microseconds")
        for spent in await asyncio.to_thread(self.store.spent_since, since):
            self.parts.view.budgets.charge(
                spent.target, spent.amount, datetime.fromisoformat(spent.at).timestamp()
            )

    async def _warm_library(self) -> None:
        """litellm takes seconds to import: no request should pay for it."""
        if not any(endpoint.kind == "litellm" for endpoint in self.config.endpoints):
            return
        try:
            await self.library.module()
        except Exception:  # noqa: BLE001 -- an import can raise anything; engines are served all the same
            _log.exception("litellm cannot be imported; its endpoints will fail")

    async def _tick(self) -> None:
        """Engine time, and how late the loop runs its timers."""
        clock = self.parts.clock
        while True:
            due = clock() + _TICK
            await asyncio.sleep(_TICK)
            self.parts.counters.loop_lag = max(0.0, clock() - due)
            self._record_spans(self._observe())

    def _observe(self) -> Iterable[StateSpan]:
        now, utc = self.parts.clock(), datetime.now(UTC)
        for name, snapshot in self.parts.view.snapshots.items():
            busy = bool(snapshot.running) or len(self.parts.view.books[name]) > 0
            yield from self.background.partition.observe(name, snapshot.state, busy, now, utc)

    def _record_spans(self, spans: Iterable[StateSpan]) -> None:
        for span in spans:
            record = span_record(
                span.engine, span.partition, span.start_utc, span.end_utc, span.seconds, self.background.rates
            )
            if record is not None:
                self.journal.append(record)

    async def _stop(self) -> None:
        self._record_spans(self.background.partition.flush(self.parts.clock(), datetime.now(UTC)))
        for target in self.parts.targets.values():
            await target.aclose()
        await self.library.aclose()
        await self.background.writer.drain()
        self.journal.close()
        self.store.close()


async def keep_running(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run `work` until cancelled. A fault in it is logged and it is started again: requests do not depend on
    it."""
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 -- whatever it is, the gateway serves on and the log names it
            _log.exception("background work %r failed; starting it again", name)
        await asyncio.sleep(_RESTART_AFTER)
