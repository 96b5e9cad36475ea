"""The first migration makes what schema.py says, and unmakes it."""

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import inspect

from gateway.ledger import store as store_module
from gateway.ledger.schema import METADATA
from gateway.ledger.store import Store


@pytest.fixture
def config() -> Config:
    """Alembic's, on the scripts in the package."""
    config = Config()
    config.set_main_option("script_location", str(store_module._MIGRATIONS))
    return config


def test_the_migrated_tables_are_those_of_the_schema(store: Store) -> None:
    options = {"compare_type": True, "compare_server_default": True}
    with store.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection, opts=options), METADATA) == []


def test_the_comparison_would_see_a_missing_column(store: Store) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE requests DROP COLUMN ttft_ms")
    with store.engine.connect() as connection:
        assert len(compare_metadata(MigrationContext.configure(connection), METADATA)) == 1


def test_going_back_leaves_nothing(store: Store, config: Config) -> None:
    with store.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    assert inspect(store.engine).get_table_names() == ["alembic_version"]
