"""The ledger's database: takes records, each once however often it is written. Knows no journal.

Blocking; belongs in a worker thread.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Table, delete, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from gateway.ledger.database import SQLITE_BEGIN, open_database
from gateway.ledger.errors import StoreMisconfigured, StoreUnavailable
from gateway.ledger.records import Record
from gateway.ledger.rows import Row, rows_of
from gateway.ledger.schema import attempts, requests, settlements

_MIGRATIONS = Path(__file__).parent / "migrations"
# Any number will do, if all gateways on one database take the same one: two that start at once must not both
# migrate.
_MIGRATION_LOCK = 7_455_441
Insert = sqlite.Insert | postgresql.Insert


class Spent(NamedTuple):
    """What one attempt at an endpoint cost (pico-USD), and when it was dialled (UTC text)."""

    target: str
    at: str
    amount: int


class Settled(NamedTuple):
    """One attempt's part of its engine's bill in one window, in pico-USD (cost-model §3.2, §3.3)."""

    request_id: str
    n: int
    engine: str
    allocation_key: str
    rate_id: str
    attributed: int
    loaded: int


class Store:
    """One database by URL."""

    def __init__(self, url: str) -> None:
        """Opens no connection. Raises StoreMisconfigured."""
        self.engine = open_database(url)
        self._insert = sqlite.insert if self.engine.dialect.name == "sqlite" else postgresql.insert

    def migrate(self) -> None:
        """Bring the tables to this version; harmless when they are. Raises StoreUnavailable,
        StoreMisconfigured.
        """
        begin = {SQLITE_BEGIN: "BEGIN IMMEDIATE"}
        try:
            with self.engine.connect().execution_options(**begin) as connection, connection.begin():
                if connection.dialect.name == "postgresql":
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
                command.upgrade(_alembic(connection), "head")
        except CommandError as error:
            raise StoreMisconfigured(
                f"the ledger's tables are of a newer version than this gateway: {error}"
            ) from error
        except SQLAlchemyError as error:
            raise StoreUnavailable(_sentence("the ledger's database cannot be opened", error)) from error

    def write(self, records: Sequence[Record]) -> list[Record]:
        """Store these records in one transaction; those that the store will never take are returned.

        A record that is already there stays as it is, but for a request that read `interrupted`: its real
        close, where one comes, takes its place. OpenRecords are passed over. Raises StoreUnavailable, and has
        then stored nothing.
        """
        try:
            self._write(records)
        except (DataError, IntegrityError):
            return self._write_one_by_one(records)
        except SQLAlchemyError as error:
            raise StoreUnavailable(_sentence("the ledger's database takes no rows", error)) from error
        return []

    def _write_one_by_one(self, records: Sequence[Record]) -> list[Record]:
        refused = []
        for record in records:
            try:
                self._write([record])
            except (DataError, IntegrityError):
                refused.append(record)
            except SQLAlchemyError as error:
                raise StoreUnavailable(_sentence("the ledger's database takes no rows", error)) from error
        return refused

    def _write(self, records: Iterable[Record]) -> None:
        rows = rows_of(records)
        if not rows:
            return
        with self.engine.begin() as connection:
            for table, values in rows.items():
                connection.execute(self._statement(table), values)

    def _statement(self, table: Table) -> Insert:
        insert = self._insert(table)
        if table is not requests:
            return insert.on_conflict_do_nothing()
        real = {
            column.name: insert.excluded[column.name] for column in table.columns if not column.primary_key
        }
        return insert.on_conflict_do_update(
            index_elements=[table.c.request_id], set_=real, where=table.c.outcome == "interrupted"
        )

    def settle(self, window_start: str, rows: Iterable[Settled], settled_at: str) -> None:
        """Replace what is settled of one window; doing it again changes nothing. Raises StoreUnavailable."""
        values: list[Row] = [
            {"window_start": window_start, "settled_at": settled_at, **row._asdict()} for row in rows
        ]
        try:
            with self.engine.begin() as connection:
                connection.execute(delete(settlements).where(settlements.c.window_start == window_start))
                if values:
                    connection.execute(self._insert(settlements), values)
        except SQLAlchemyError as error:
            raise StoreUnavailable(_sentence("the ledger's database takes no rows", error)) from error

    def spent_since(self, since: str) -> list[Spent]:
        """What attempts at endpoints dialled since this UTC text cost, oldest first: budgets outlive a
        restart by it.

        Attempts of unknown cost are not in it. Raises StoreUnavailable.
        """
        a = attempts.c
        query = (
            select(a.target, a.t_dial, a.cash_marginal)
            .where(a.route == "overflow", a.t_dial >= since, a.cash_marginal.is_not(None))
            .order_by(a.t_dial)
        )
        try:
            with self.engine.connect() as connection:
                return [Spent(*row) for row in connection.execute(query)]
        except SQLAlchemyError as error:
            raise StoreUnavailable(_sentence("the ledger's database cannot be read", error)) from error

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def _alembic(connection: Connection) -> Config:
    config = Config()
    # Config interpolates `%`.
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _sentence(what: str, error: SQLAlchemyError) -> str:
    """The driver's first line, without the statement and the values, which belong in no log."""
    cause = str(getattr(error, "orig", None) or error).strip()
    return f"{what}: {cause.splitlines()[0] if cause else type(error).__name__}"
