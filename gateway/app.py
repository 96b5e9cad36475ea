"""Composition root: builds every part from one configuration and returns a gateway that is not yet
running."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI

from gateway.admin.control import control_app
from gateway.admin.health import health_routes
from gateway.admin.routes import AdminSources, admin_routes
from gateway.api.asgi import DataPlane, Gate
from gateway.api.assemble import catalogue_of, fleet_view
from gateway.api.intake import Intake
from gateway.api.models import ModelList
from gateway.config.keys import KeyRing
from gateway.config.schema import Config, EndpointConfig
from gateway.fleet.boot import BootWatcher
from gateway.fleet.partition import PartitionClock
from gateway.fleet.registry import Registry
from gateway.fleet.scraper import Scraper
from gateway.ledger.journal import Journal
from gateway.ledger.prices import price_row, rate_row
from gateway.ledger.store import Store
from gateway.ledger.versions import engine_rates, price_book
from gateway.ledger.writer import Writer
from gateway.relay.parts import RelayParts
from gateway.routing.reservations import ReservationBook
from gateway.running import Background, Gateway
from gateway.telemetry.counters import Counters
from gateway.telemetry.exposition import Exposition, Sources
from gateway.upstreams.base import Target
from gateway.upstreams.engine import EngineTarget
from gateway.upstreams.errors import Stalled, TimedOut, UpstreamError
from gateway.upstreams.litellm_endpoint import LiteLLMEndpoint, LiteLLMLibrary
from gateway.upstreams.openai_endpoint import OpenAIEndpoint

Clock = Callable[[], float]
Fetch = Callable[[str, str, float, int], Awaitable[tuple[int, bytes]]]


def build(config: Config, clock: Clock = time.monotonic, wall: Clock = time.time) -> Gateway:
    """Every part, wired. Takes the journal's folder; reads the keys file, and the price map where one is
    missing.

    Raises ConfigErrors for an unusable keys file, JournalInUse, StoreMisconfigured.
    """
    started = datetime.now(UTC).isoformat(timespec="microseconds")
    keys = KeyRing.load(config.clients.keys_file) if config.clients else None
    catalogue = catalogue_of(config)
    prices, rates = price_book(config, started), engine_rates(config, started)

    books = {engine.name: ReservationBook() for engine in config.engines}
    engines = {
        e.name: _engine(e.name, e.url, e.api_key.reveal() if e.api_key else None) for e in config.engines
    }
    registry = _registry(config, books, clock)
    view = fleet_view(config, catalogue, registry.snapshots(), books, prices.prices)

    store = Store(config.ledger.url.reveal())
    journal = Journal(_journal_folder(config), required=config.ledger.required)
    writer = Writer(journal, store)
    for price in prices.prices.values():
        journal.append(price_row(price))
    for rate in rates.values():
        journal.append(rate_row(rate))

    library = LiteLLMLibrary()
    targets: dict[str, Target] = {**engines, **{e.name: _endpoint(e, library) for e in config.endpoints}}
    parts = RelayParts(view, targets, journal, Counters(), rates, clock, wall)
    background = Background(
        scraper=Scraper(registry, _fetch_from(engines), config.scrape.interval, config.scrape.timeout),
        boot=BootWatcher(
            registry, {e.name: e.boot_log for e in config.engines if e.boot_log is not None}, clock
        ),
        writer=writer,
        partition=PartitionClock(),
        rates=rates,
    )
    gate = Gate(config.limits.max_body, config.limits.max_in_flight)
    gateway = Gateway(config, parts, gate, background, journal, store, library)
    gateway.asgi = DataPlane(
        parts,
        Intake(catalogue, view.lengths, clock),
        ModelList(catalogue, view.snapshots, int(wall())),
        keys,
        gate,
        _control(gateway),
    )
    return gateway


def _engine(name: str, url: str, api_key: str | None) -> EngineTarget:
    return EngineTarget(name, url, api_key)


def _endpoint(endpoint: EndpointConfig, library: LiteLLMLibrary) -> Target:
    key = endpoint.api_key.reveal() if endpoint.api_key else None
    if endpoint.kind == "litellm":
        return LiteLLMEndpoint(endpoint.name, library, key, base_url=endpoint.base_url)
    # The loader refuses an openai endpoint without an address.
    return OpenAIEndpoint(endpoint.name, endpoint.base_url or "", key)


def _registry(config: Config, books: Mapping[str, ReservationBook], clock: Clock) -> Registry:
    def own_blocks(engine: str) -> int:
        return books[engine].held_blocks(clock())

    def own_counts(engine: str) -> tuple[int, int]:
        return books[engine].sent, books[engine].finished

    return Registry([engine.name for engine in config.engines], clock, own_blocks, own_counts)


def _fetch_from(engines: Mapping[str, EngineTarget]) -> Fetch:
    """How the scraper asks: over the engine's own side connections, failures as OSError."""

    async def fetch(engine: str, path: str, timeout: float, max_bytes: int) -> tuple[int, bytes]:
        try:
            return await engines[engine].get(path, timeout, max_bytes)
        except (TimedOut, Stalled) as error:
            raise TimeoutError(str(error)) from error
        except UpstreamError as error:
            raise OSError(str(error)) from error

    return fetch


def _journal_folder(config: Config) -> Path:
    """As configured; else beside an SQLite database, else in the working folder."""
    if config.ledger.journal is not None:
        return config.ledger.journal
    scheme, _, rest = config.ledger.url.reveal().partition(":///")
    return Path(rest + ".journal") if scheme.startswith("sqlite") and rest else Path("spillgate.journal")


def _control(gateway: Gateway) -> FastAPI:
    config, parts = gateway.config, gateway.parts
    endpoints = tuple(endpoint.name for endpoint in config.endpoints)
    sources = Sources(
        parts.counters,
        parts.view,
        endpoints,
        lambda: gateway.background.writer.pending,
        parts.clock,
        parts.wall,
    )
    routers = [
        health_routes(
            parts.view.snapshots, len(endpoints), Exposition(sources).page, lambda: gateway.gate.draining
        )
    ]
    if config.admin is not None:
        shown = AdminSources(
            parts.view,
            parts.decisions,
            config.policies,
            endpoints,
            gateway.find_request,
            parts.clock,
            parts.wall,
        )
        routers.append(admin_routes(shown, config.admin.key.reveal()))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with gateway.running():
            yield

    return control_app(version("spillgate"), lifespan, routers)
