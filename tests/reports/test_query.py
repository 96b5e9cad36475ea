"""Reading the ledger: exact periods, one file that must be there, and clear errors."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from ledger_rows import FOUR_HOURS, MIXED, PRICE, RATE, SINCE, UNTIL, local, overflow

from gateway.ledger.errors import LedgerError, StoreMisconfigured, StoreUnavailable
from gateway.ledger.store import Store
from gateway.reports.query import fetch, open_ledger
from gateway.reports.rows import GROUPINGS, LedgerRows

HOUR = datetime(2026, 12, 1, 8, tzinfo=UTC)


def requests_in(rows: LedgerRows) -> int:
    return sum(group.requests for group in rows.requests)


@pytest.mark.parametrize("at", ["08:00:00+00:00", "08:00:00.000000Z", "08:00:00.000000+00:00"])
def test_the_first_moment_is_in_a_period_and_the_last_is_not(store: Store, at: str) -> None:
    store.write([local("r", t_in=f"2026-12-01T{at}")])
    assert requests_in(fetch(store.engine, HOUR, HOUR + timedelta(seconds=1))) == 1
    assert requests_in(fetch(store.engine, HOUR - timedelta(seconds=1), HOUR)) == 0
    assert requests_in(fetch(store.engine, HOUR + timedelta(microseconds=1), UNTIL)) == 0


def test_a_period_in_another_zone_is_the_same_period(store: Store) -> None:
    store.write([local("r", t_in="2026-12-01T08:00:00+00:00")])
    east = timezone(timedelta(hours=5, minutes=30))
    start = HOUR.astimezone(east)
    assert requests_in(fetch(store.engine, start, start + timedelta(seconds=1))) == 1


def test_every_name_can_be_grouped_by(store: Store) -> None:
    store.write([local("r", tags="batch, night"), overflow("o")])
    values = {
        name: {group.key[0] for group in fetch(store.engine, SINCE, UNTIL, (name,)).requests}
        for name in GROUPINGS
    }
    assert values["model"] == {"llama-70b"}
    assert values["route"] == {"local", "overflow"}
    assert values["engine"] == {"a", None}
    assert values["endpoint"] == {"serverless", None}
    assert values["policy"] == {"balanced"}
    assert values["outcome"] == {"ok"}
    assert values["target"] == {"a", "serverless"}
    assert values["tag"] == {"batch, night", None}
    assert values["hour"] == {"2026-12-01T08:00Z"}
    assert values["day"] == {"2026-12-01"}


def test_engine_time_is_cut_at_the_ends_of_the_period_to_the_pico_dollar(store: Store) -> None:
    store.write(FOUR_HOURS)
    whole = sum(span.bill for span in FOUR_HOURS)
    cut = HOUR + timedelta(hours=1, minutes=7, seconds=1, microseconds=333_333)
    bills = [
        sum(span.bill for span in fetch(store.engine, *period).spans)
        for period in ((HOUR, cut), (cut, UNTIL))
    ]
    assert sum(bills) == whole
    assert all(0 < bill < whole for bill in bills)


def test_prices_and_rates_that_the_period_rests_on_come_with_it(store: Store) -> None:
    store.write(MIXED)
    rows = fetch(store.engine, SINCE, UNTIL)
    assert [(p.price_id, p.input, p.source) for p in rows.prices] == [("p1", PRICE.input, "contract")]
    assert [(r.rate_id, r.usd_per_hour) for r in rows.rates] == [("rate-a", RATE.usd_per_hour)]
    earlier = fetch(store.engine, HOUR - timedelta(days=2), HOUR - timedelta(days=1))
    assert (earlier.prices, earlier.rates) == ((), ())


def test_a_price_that_is_not_on_record_is_still_named(store: Store) -> None:
    store.write([overflow("o")])
    (price,) = fetch(store.engine, SINCE, UNTIL).prices
    assert (price.price_id, price.input) == ("p1", None)


def test_a_ledger_is_read_while_its_gateway_writes_and_never_written(store: Store, tmp_path: Path) -> None:
    store.write([local("r1")])
    engine = open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    assert requests_in(fetch(engine, SINCE, UNTIL)) == 1
    store.write([local("r2")])
    assert requests_in(fetch(engine, SINCE, UNTIL)) == 2
    with engine.connect() as connection, pytest.raises(Exception, match="readonly"):
        connection.exec_driver_sql("DELETE FROM requests")
    engine.dispose()


@pytest.mark.parametrize(
    "url", ["sqlite:///{}/none.db", "sqlite:///{}", "sqlite://", "sqlite:///:memory:", "mysql://h/d", "x"]
)
def test_where_no_ledger_can_be_it_says_so_and_makes_none(tmp_path: Path, url: str) -> None:
    with pytest.raises(StoreMisconfigured):
        open_ledger(url.format(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"no database at all, but as long as the header of one is" * 3])
def test_a_file_without_a_ledger_is_an_error_of_the_ledger(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)
    engine = open_ledger(f"sqlite:///{path}")
    with pytest.raises(LedgerError):
        fetch(engine, SINCE, UNTIL)
    engine.dispose()
    assert path.read_bytes() == content


def test_a_server_that_does_not_answer_is_an_error_of_the_ledger() -> None:
    pytest.importorskip("psycopg")
    engine = open_ledger("postgresql://user:hunter2@127.0.0.1:1/none")
    with pytest.raises(StoreUnavailable) as caught:
        fetch(engine, SINCE, UNTIL)
    assert "hunter2" not in str(caught.value)
