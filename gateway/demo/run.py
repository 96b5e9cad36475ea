"""The demo from first request to last figure: plays the scene, then reads the ledger as any user would."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from rich.console import Console, ConsoleRenderable
from rich.live import Live

from gateway.demo.live import live_view
from gateway.demo.scene import Scene, on_stage
from gateway.demo.sdk import openai_client
from gateway.demo.story import Figures
from gateway.demo.traffic import Sent, arrivals_of, send_all
from gateway.ledger.store import Store
from gateway.reports.query import fetch
from gateway.reports.report import Report, build
from gateway.routing.view import EngineState

_BY = ("model", "route", "reason")
_REFRESH = 0.25


class Played(NamedTuple):
    """The demo's outcome."""

    figures: Figures
    report: Report


async def play(seconds: float, port: int, folder: Path, show: Console | None) -> Played:
    """Run the demo in `folder`; `show` gets the live table where it is a terminal."""
    started = datetime.now(UTC)
    sent = Sent()
    async with on_stage(folder, seconds, port) as scene, openai_client(scene.url) as ask:
        await _engines_known(scene)
        async with _shown(scene, sent, seconds, show), asyncio.TaskGroup() as group:
            group.create_task(scene.direct(seconds))
            group.create_task(send_all(arrivals_of(seconds), ask, sent, time.monotonic))
        figures = _seen(scene, sent, folder, datetime.now(UTC) - started)
    report = _report(folder, started)
    return Played(_with_money(figures, report), report)


async def _engines_known(scene: Scene) -> None:
    """Requests before the first scrape would be decided without knowing any pool."""
    snapshots = scene.gateway.parts.view.snapshots
    async with asyncio.timeout(10):
        while any(snapshots[name].usable_blocks is None for name in ("l4-a", "l4-b")):  # noqa: ASYNC110 -- a scrape announces nothing
            await asyncio.sleep(0.02)


@asynccontextmanager
async def _shown(scene: Scene, sent: Sent, seconds: float, show: Console | None) -> AsyncIterator[None]:
    if show is None or not show.is_terminal:
        yield
        return
    started = time.monotonic()
    with Live(console=show, auto_refresh=False, transient=True) as live:
        async with asyncio.TaskGroup() as group:
            drawing = group.create_task(
                _draw(live, lambda: live_view(scene, sent, time.monotonic() - started, seconds))
            )
            yield
            drawing.cancel()


async def _draw(live: Live, view: Callable[[], ConsoleRenderable]) -> None:
    while True:
        live.update(view(), refresh=True)
        await asyncio.sleep(_REFRESH)


def _seen(scene: Scene, sent: Sent, folder: Path, passed: timedelta) -> Figures:
    by_route: Counter[str] = Counter()
    by_reason: Counter[str] = Counter()
    for (_, route, reason, _), count in scene.gateway.parts.counters.requests.items():
        by_route[route] += count
        by_reason[reason] += count
    snapshots = scene.gateway.parts.view.snapshots.values()
    causes = [s.cause for s in snapshots if s.state is EngineState.UNBOOTABLE]
    return Figures(
        seconds=passed.total_seconds(),
        sent=sent.total,
        failed=sent.failed,
        preemptions=sum(s.preemptions_total for s in snapshots),
        by_route=by_route,
        by_reason=by_reason,
        ledger=str(folder / "ledger.db"),
        unbootable_cause=causes[0] if causes else None,
        errors=sent.errors,
    )


def _report(folder: Path, started: datetime) -> Report:
    store = Store(f"sqlite:///{folder / 'ledger.db'}")
    try:
        until = datetime.now(UTC)
        return build(fetch(store.engine, started, until, _BY), since=started, until=until, by=_BY)
    finally:
        store.close()


def _with_money(figures: Figures, report: Report) -> Figures:
    totals = report.totals
    figures.engine_bill, figures.overflow = totals.engine_bill, totals.overflow
    figures.cash_marginal, figures.standard = totals.cash_marginal, totals.standard
    figures.all_overflow, figures.net_position = totals.all_overflow, totals.net_position
    return figures


def quiet_logs() -> None:
    """The table and the story are the demo's output; the gateway's warnings would tear the table apart."""
    logging.getLogger("gateway").setLevel(logging.ERROR)
