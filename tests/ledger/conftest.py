"""Records with good defaults, and a migrated store.

The store is SQLite on a file. With SPILLGATE_TEST_POSTGRESQL=postgresql://user@host/database the same tests
run against that server, in databases that they make and drop.
"""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url

from gateway.ledger.journal import Journal
from gateway.ledger.records import AttemptRecord, EngineSpan, OpenRecord, PriceRow, RateRow, RequestRecord
from gateway.ledger.store import Store

_POSTGRESQL = "SPILLGATE_TEST_POSTGRESQL"

_ATTEMPT = AttemptRecord(
    n=1,
    target="h100-a",
    route="local",
    remote_model=None,
    reason="headroom",
    moment="end",
    outcome="ok",
    status=200,
    billable="no",
    t_dial="2026-12-01T00:00:00.000100Z",
    ms_to_sent=0.2,
    ms_to_headers=11.5,
    ms_to_first_event=35.25,
    ms_total=900.125,
    prompt_tokens=1000,
    cached_tokens=900,
    completion_tokens=100,
    reasoning_tokens=0,
    usage_source="reported",
    cash_marginal=0,
    standard=350_000_000,
    price_id=None,
    price_source=None,
    rate_id="0123456789abcdef",
)
_REQUEST = RequestRecord(
    request_id="r1",
    t_in="2026-12-01T00:00:00.000000Z",
    key="team-a",
    tags=None,
    path="/v1/chat/completions",
    requested_model="llama",
    model="llama-70b",
    policy="balanced",
    stream=True,
    route="local",
    target="h100-a",
    reason="headroom",
    outcome="ok",
    status=200,
    attempts=(_ATTEMPT,),
    prompt_tokens=1000,
    cached_tokens=900,
    completion_tokens=100,
    reasoning_tokens=0,
    usage_source="reported",
    cash_marginal=0,
    standard=350_000_000,
    work_units_milli=590_000,
    weight_set="1/0.1/4",
    price_id=None,
    price_source=None,
    alternative_route="overflow",
    alternative_target="serverless",
    alternative_kind="serverless",
    alternative_cash=640_000_000,
    alternative_standard=None,
    alternative_low=590_000_000,
    equivalent=True,
    ttft_ms=35.5,
    duration_ms=901.0,
    overhead_ms=0.4,
)
_OPEN = OpenRecord(
    "r1", "2026-12-01T00:00:00.000000Z", "team-a", "/v1/chat/completions", "llama", "llama-70b", True
)
_SPAN = EngineSpan(
    "h100-a",
    "serving_busy",
    "2026-12-01T00:00:00.000000Z",
    "2026-12-01T00:00:01.000000Z",
    1.0,
    "0123456789abcdef",
    777,
)
_PRICE = PriceRow(
    "p1",
    "serverless",
    "org/m",
    "2026-12-01T00:00:00.000000Z",
    "contract",
    "0.2",
    "0.1",
    "0.6",
    None,
    "h" * 64,
)
_RATE = RateRow(
    "0123456789abcdef", "h100-a", "2026-12-01T00:00:00.000000Z", "2.5", "0.3", "on_demand", "8000", "h" * 64
)


@pytest.fixture(scope="session")
def request_record() -> Callable[..., RequestRecord]:
    """A closed local request; fields as given."""

    def make(request_id: str = "r1", **changes: Any) -> RequestRecord:
        return replace(_REQUEST, request_id=request_id, **changes)

    return make


@pytest.fixture(scope="session")
def attempt_record() -> Callable[..., AttemptRecord]:
    """A good attempt at an engine; fields as given."""

    def make(**changes: Any) -> AttemptRecord:
        return replace(_ATTEMPT, **changes)

    return make


@pytest.fixture(scope="session")
def open_record() -> Callable[..., OpenRecord]:
    """A request at its admission; fields as given."""

    def make(request_id: str = "r1", **changes: Any) -> OpenRecord:
        return replace(_OPEN, request_id=request_id, **changes)

    return make


@pytest.fixture(scope="session")
def span() -> EngineSpan:
    """One second of a busy engine."""
    return _SPAN


@pytest.fixture(scope="session")
def price_version() -> PriceRow:
    """One price version."""
    return _PRICE


@pytest.fixture(scope="session")
def rate_version() -> RateRow:
    """One rate version."""
    return _RATE


@pytest.fixture
def store_url(tmp_path: Path) -> Iterator[str]:
    """A database that does not exist yet; with the variable set, a new one on that PostgreSQL server."""
    server = os.environ.get(_POSTGRESQL)
    if server is None:
        yield f"sqlite:///{tmp_path / 'ledger.db'}"
        return
    engine, name = create_engine(server, isolation_level="AUTOCOMMIT"), f"test_{uuid.uuid4().hex}"
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    engine.dispose()


@pytest.fixture
def sqlite_path(store_url: str) -> str:
    """The database's file, for tests that need what only SQLite has."""
    if not store_url.startswith("sqlite"):
        pytest.skip("about SQLite")
    return store_url.removeprefix("sqlite:///")


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """A migrated database."""
    store = Store(store_url)
    store.migrate()
    yield store
    store.close()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """An empty journal."""
    journal = Journal(tmp_path / "journal")
    yield journal
    journal.close()


@pytest.fixture(scope="session")
def kill_at_random() -> Callable[..., tuple[set[str], set[str]]]:
    """Run Python code until `delay` seconds after its first line, then kill it.

    Its lines after that are `opened ID` and `finished ID`; the answer is the ids of each. It speaks to a
    file: through a pipe it would spend its time waiting for the reader and not in what is tested.
    """

    def run(code: str, arguments: Sequence[str], said: Path, delay: float) -> tuple[set[str], set[str]]:
        with said.open("wb") as stdout:
            process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=stdout)
        try:
            deadline = time.monotonic() + 10
            while not said.stat().st_size and time.monotonic() < deadline:
                time.sleep(0.002)
            time.sleep(delay)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(10)
        words = [line.split() for line in said.read_text().split("\n")[1:-1]]
        opened, finished = ({name for what, name in words if what == kind} for kind in ("opened", "finished"))
        return opened, finished

    return run
