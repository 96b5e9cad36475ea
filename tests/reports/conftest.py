"""A ledger in a real database, and reports on it."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from ledger_rows import SINCE, UNTIL

from gateway.ledger.records import Record
from gateway.ledger.store import Store
from gateway.reports.query import fetch
from gateway.reports.report import Report, build


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A migrated database without rows."""
    store = Store(f"sqlite:///{tmp_path / 'ledger.db'}")
    store.migrate()
    yield store
    store.close()


@pytest.fixture
def reported(store: Store) -> Callable[..., Report]:
    """Write these records and report on them; `by`, `since`, `until` and `basis` as given."""

    def report(
        *records: Record, by: tuple[str, ...] = ("model", "route", "reason"), since: datetime = SINCE,
        until: datetime = UNTIL, **options: Any,
    ) -> Report:  # fmt: skip
        assert store.write(records) == []
        rows = fetch(store.engine, since, until, by)
        return build(rows, since=since, until=until, by=by, **options)

    return report
