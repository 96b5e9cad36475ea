"""Opening databases."""

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from gateway.ledger.database import SQLITE_BEGIN, open_database
from gateway.ledger.errors import StoreMisconfigured


def test_sqlite_writes_ahead_and_waits_for_locks(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path / 'ledger.db'}")
    with engine.connect() as connection:
        pragmas = [
            connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous")
        ]
        waits = connection.execute(text("PRAGMA busy_timeout")).scalar()
    engine.dispose()
    assert pragmas == ["wal", 1]
    assert waits == 5000


def test_a_transaction_on_sqlite_covers_ddl(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path / 'ledger.db'}")
    with engine.connect().execution_options(**{SQLITE_BEGIN: "BEGIN IMMEDIATE"}) as connection:
        connection.execute(text("CREATE TABLE t (x INTEGER)"))
        connection.rollback()
        assert connection.execute(text("SELECT count(*) FROM sqlite_master")).scalar() == 0
    engine.dispose()


@pytest.mark.parametrize("url", ["mysql://localhost/x", "oracle://x", "duckdb:///x"])
def test_another_database_is_refused_by_name(url: str) -> None:
    with pytest.raises(StoreMisconfigured, match=url.partition(":")[0]):
        open_database(url)


def test_a_text_that_is_no_url_is_refused_without_repeating_it() -> None:
    with pytest.raises(StoreMisconfigured) as raised:
        open_database("spillgate.db secret")
    assert "secret" not in str(raised.value)


def test_a_missing_driver_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from gateway.ledger.database import open_database\n"
        "from gateway.ledger.errors import StoreMisconfigured\n"
        "try: open_database('postgresql://user:secret@localhost/ledger')\n"
        "except StoreMisconfigured as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=15
    )
    assert "psycopg" in done.stdout
    assert "secret" not in done.stdout
