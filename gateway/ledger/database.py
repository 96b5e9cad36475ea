"""Opening the ledger's database: SQLite or PostgreSQL by URL, its pragmas and time limits. Knows no
tables.
"""

from sqlite3 import Connection as SqliteConnection
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry

from gateway.ledger.errors import StoreMisconfigured

# Execution option: how a transaction on SQLite begins. One that reads before it writes must take the write
# lock first, or it fails at once (not after the busy timeout) when another process has written in between.
SQLITE_BEGIN = "sqlite_begin"

_BUSY_SECONDS = 5.0
_PRAGMAS = (
    # First: the others may have to wait for a lock themselves.
    f"busy_timeout={int(_BUSY_SECONDS * 1000)}",
    "journal_mode=WAL",
    # With WAL, a power cut may lose the last commits but never corrupts; the journal still has what was not
    # yet removed.
    "synchronous=NORMAL",
)
# libpq: seconds to connect; milliseconds that sent data may stay unacknowledged; server-side limits in
# milliseconds.
_POSTGRESQL: dict[str, Any] = {
    "connect_timeout": 5,
    "tcp_user_timeout": 15_000,
    "options": "-c statement_timeout=30000 -c lock_timeout=10000 -c timezone=UTC",
}


def open_database(url: str) -> Engine:
    """An engine for `sqlite:///file` or `postgresql://...`. Opens no connection yet.

    Raises StoreMisconfigured for another database, a URL that is none, or a driver that is not installed.
    """
    parsed = _parse(url)
    kind = parsed.get_backend_name()
    if kind not in ("sqlite", "postgresql"):
        raise StoreMisconfigured(f"the ledger works with sqlite:/// and postgresql:// URLs, not {kind!r}")
    if kind == "postgresql":
        return _create(parsed, connect_args=_POSTGRESQL, pool_pre_ping=True)
    engine = _create(parsed)
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin)
    return engine


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except ArgumentError as error:
        # The text itself is not repeated: it may hold a password.
        raise StoreMisconfigured(
            "the ledger's url is not a database URL, such as sqlite:///spillgate.db"
        ) from error


def _create(url: URL, **options: Any) -> Engine:
    try:
        return create_engine(url, **options)
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        name = getattr(error, "name", None) or url.drivername
        raise StoreMisconfigured(
            f"the ledger's url {url.drivername}:// needs the Python package {name}: install it"
        ) from error


def _set_pragmas(connection: SqliteConnection, _entry: ConnectionPoolEntry) -> None:
    # sqlite3 would otherwise begin transactions by itself, and not before DDL.
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(SQLITE_BEGIN, "BEGIN"))
