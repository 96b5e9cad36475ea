"""Migrating by the scripts that ship in the package."""

import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files

import pytest
from sqlalchemy import inspect, text

from gateway.ledger.errors import StoreMisconfigured, StoreUnavailable
from gateway.ledger.records import RequestRecord
from gateway.ledger.schema import METADATA
from gateway.ledger.store import Store


def test_a_new_database_gets_every_table(store_url: str) -> None:
    store = Store(store_url)
    store.migrate()
    assert set(inspect(store.engine).get_table_names()) == {*METADATA.tables, "alembic_version"}
    store.close()


def shape(store: Store) -> dict[str, list[str]]:
    inspected = inspect(store.engine)
    return {
        name: [str(column) for column in inspected.get_columns(name)] for name in inspected.get_table_names()
    }


def test_migrating_again_changes_nothing(store: Store, request_record: Callable[..., RequestRecord]) -> None:
    store.write([request_record("a")])
    before = shape(store)
    store.migrate()
    store.migrate()
    assert shape(store) == before
    with store.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM requests")).scalar() == 1


def test_gateways_that_start_at_once_do_not_both_migrate(store_url: str) -> None:
    code = (
        "import sys; from gateway.ledger.store import Store; s = Store(sys.argv[1]); s.migrate(); s.close()"
    )
    starting = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", code, store_url], stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    said = [process.communicate(timeout=20)[1] for process in starting]
    assert [process.returncode for process in starting] == [0, 0, 0], said
    store = Store(store_url)
    assert "requests" in inspect(store.engine).get_table_names()
    store.close()


def test_tables_of_a_newer_version_are_left_alone(store: Store) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreMisconfigured, match="newer version"):
        store.migrate()


def test_a_folder_that_does_not_exist_is_said_in_one_sentence() -> None:
    store = Store("sqlite:////nowhere/at/all/ledger.db")
    with pytest.raises(StoreUnavailable, match="unable to open database file"):
        store.migrate()
    store.close()


def test_the_template_for_new_migrations_ships() -> None:
    template = files("gateway.ledger.migrations").joinpath("script.py.mako").read_text()
    assert "down_revision" in template
