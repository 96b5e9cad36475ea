"""Each record once, however often and in whichever order it is written."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, select
from sqlalchemy.dialects import postgresql

from gateway.ledger.errors import StoreUnavailable
from gateway.ledger.records import (
    AttemptRecord,
    EngineSpan,
    OpenRecord,
    PriceRow,
    RateRow,
    Record,
    RequestRecord,
)
from gateway.ledger.schema import attempts, engine_rates, engine_seconds, prices, requests, settlements
from gateway.ledger.segments import interrupted
from gateway.ledger.store import Settled, Spent, Store

Requests = Callable[..., RequestRecord]
Attempts = Callable[..., AttemptRecord]
Opens = Callable[..., OpenRecord]


def rows(store: Store, table: Table) -> list[dict[str, Any]]:
    with store.engine.connect() as connection:
        return [dict(row) for row in connection.execute(select(table)).mappings()]


def test_a_request_and_its_attempts_are_read_as_they_were_written(
    store: Store, request_record: Requests, attempt_record: Attempts
) -> None:
    record = request_record(
        "a",
        attempts=(attempt_record(n=1, outcome="upstream_cut"), attempt_record(n=2)),
        flags=("late", "odd"),
    )
    assert store.write([record]) == []
    (row,) = rows(store, requests)
    assert row.pop("flags") == "late,odd"
    assert row == {name: getattr(record, name) for name in row}
    stored = rows(store, attempts)
    assert [(row.pop("request_id"), row["n"], row["outcome"]) for row in stored] == [
        ("a", 1, "upstream_cut"),
        ("a", 2, "ok"),
    ]
    assert stored[1] == {name: getattr(record.attempts[1], name) for name in stored[1]}


def test_unknown_amounts_are_null(store: Store, request_record: Requests) -> None:
    store.write([request_record(cash_marginal=None, standard=None)])
    (row,) = rows(store, requests)
    assert (row["cash_marginal"], row["standard"]) == (None, None)


def test_writing_again_repeats_nothing(
    store: Store, request_record: Requests, span: EngineSpan, price_version: PriceRow, rate_version: RateRow
) -> None:
    records: list[Record] = [request_record("a"), request_record("b"), span, price_version, rate_version]
    store.write(records)
    once = {
        table.name: rows(store, table) for table in (requests, attempts, engine_seconds, prices, engine_rates)
    }
    store.write(records)
    store.write([*records, *records])
    for table in (requests, attempts, engine_seconds, prices, engine_rates):
        assert rows(store, table) == once[table.name]
    assert [len(found) for found in once.values()] == [2, 2, 1, 1, 1]


def test_what_is_stored_is_never_changed(
    store: Store, request_record: Requests, price_version: PriceRow
) -> None:
    store.write([request_record("a", status=200)])
    store.write([request_record("a", status=500, outcome="internal")])
    assert [(row["status"], row["outcome"]) for row in rows(store, requests)] == [(200, "ok")]


@pytest.mark.parametrize("real_first", [True, False])
def test_a_real_close_wins_over_an_interrupted_one(
    store: Store, request_record: Requests, open_record: Opens, real_first: bool
) -> None:
    real, lost = request_record("a"), interrupted(open_record("a"))
    for record in (real, lost) if real_first else (lost, real):
        store.write([record])
    (row,) = rows(store, requests)
    assert (row["outcome"], row["cash_marginal"], row["route"]) == ("ok", 0, "local")
    assert len(rows(store, attempts)) == 1


def test_both_closes_in_one_batch_leave_the_real_one(
    store: Store, request_record: Requests, open_record: Opens
) -> None:
    store.write([interrupted(open_record("a")), request_record("a")])
    assert [row["outcome"] for row in rows(store, requests)] == ["ok"]


def test_an_opening_is_not_stored(store: Store, open_record: Opens) -> None:
    assert store.write([open_record("a")]) == []
    assert rows(store, requests) == []


def test_a_record_that_the_store_never_takes_does_not_hold_up_the_others(
    store: Store, request_record: Requests
) -> None:
    bad = request_record("bad", path=None)
    assert store.write([request_record("a"), bad, request_record("b")]) == [bad]
    assert [row["request_id"] for row in rows(store, requests)] == ["a", "b"]


def test_a_locked_database_takes_nothing_and_says_so(
    store: Store, sqlite_path: str, request_record: Requests
) -> None:
    with store.engine.connect() as connection:
        # The pooled connection that `write` will get: it need not wait its five seconds here.
        connection.exec_driver_sql("PRAGMA busy_timeout=10")
    other = sqlite3.connect(sqlite_path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="database is locked"):
        store.write([request_record("a")])
    other.execute("ROLLBACK")
    other.close()
    assert rows(store, requests) == []
    store.write([request_record("a")])
    assert len(rows(store, requests)) == 1


def test_a_full_database_takes_nothing_and_says_so(
    store: Store, sqlite_path: str, request_record: Requests
) -> None:
    with store.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreUnavailable, match="full"):
        store.write([request_record(f"r{i}") for i in range(200)])
    assert rows(store, requests) == []


def test_the_message_holds_no_statement_and_no_values(store: Store, request_record: Requests) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE attempts")
    with pytest.raises(StoreUnavailable) as raised:
        store.write([request_record("a", key="team-a")])
    assert "attempts" in str(raised.value)
    assert not {"INSERT", "VALUES", "team-a"} & set(str(raised.value).split())


def test_a_settled_window_is_replaced_as_a_whole(store: Store) -> None:
    def settled(request_id: str, loaded: int) -> Settled:
        return Settled(request_id, 1, "h100-a", "weighted_tokens", "0123456789abcdef", 1, loaded)

    store.settle("2026-12-01T00", [settled("a", 5), settled("b", 6)], "2026-12-01T01:00:00Z")
    store.settle("2026-12-01T01", [settled("c", 7)], "2026-12-01T02:00:00Z")
    for _ in range(2):
        store.settle("2026-12-01T00", [settled("a", 11)], "2026-12-01T03:00:00Z")
    found = {(row["window_start"], row["request_id"]): row["loaded"] for row in rows(store, settlements)}
    assert found == {("2026-12-01T00", "a"): 11, ("2026-12-01T01", "c"): 7}


def test_an_empty_window_can_be_settled(store: Store) -> None:
    store.settle("2026-12-01T00", [], "2026-12-01T01:00:00Z")
    assert rows(store, settlements) == []


def test_spending_is_what_endpoints_cost_since_then(
    store: Store, request_record: Requests, attempt_record: Attempts
) -> None:
    def overflow(name: str, at: str, amount: int | None) -> RequestRecord:
        attempt = attempt_record(target="serverless", route="overflow", t_dial=at, cash_marginal=amount)
        return request_record(name, attempts=(attempt,))

    store.write(
        [
            overflow("late", "2026-12-01T02:00:00Z", 7),
            overflow("early", "2026-12-01T01:00:00Z", 5),
            overflow("too early", "2026-11-30T23:59:59Z", 3),
            overflow("unpriced", "2026-12-01T02:00:00Z", None),
            request_record("local"),
        ]
    )
    assert store.spent_since("2026-12-01T00:00:00Z") == [
        Spent("serverless", "2026-12-01T01:00:00Z", 5),
        Spent("serverless", "2026-12-01T02:00:00Z", 7),
    ]


def test_reading_a_database_without_tables_says_so(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'empty.db'}")
    with pytest.raises(StoreUnavailable, match="no such table"):
        store.spent_since("2026-12-01T00:00:00Z")
    store.close()


def test_postgresql_is_asked_in_its_own_words(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_insert", postgresql.insert)
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call] # sqlalchemy leaves it untyped
    statement = str(store._statement(requests).compile(dialect=dialect))
    assert "ON CONFLICT (request_id) DO UPDATE SET" in statement
    assert "WHERE requests.outcome =" in statement
    assert "ON CONFLICT DO NOTHING" in str(store._statement(attempts).compile(dialect=dialect))
