"""What `build` wires: parts that know each other, and refusals before anything runs."""

from pathlib import Path

import pytest
from stack import ENVIRON, write_config

from gateway.app import build
from gateway.config.findings import ConfigErrors
from gateway.config.load import load
from gateway.ledger.errors import JournalInUse
from gateway.running import Gateway

URLS = ("http://127.0.0.1:1", "http://127.0.0.1:2/v1")


def built(folder: Path, extra: str = "", old: str = "", new: str = "") -> Gateway:
    path = write_config(folder, *URLS, extra=extra)
    path.write_text(path.read_text().replace(old, new) if old else path.read_text())
    return build(load(path, ENVIRON))


def close(gateway: Gateway) -> None:
    gateway.journal.close()
    gateway.store.close()


def test_every_target_of_the_configuration_is_there(tmp_path: Path) -> None:
    gateway = built(tmp_path)
    parts = gateway.parts
    assert set(parts.targets) == {"a", "serverless"}
    assert set(parts.view.snapshots) == set(parts.view.books) == set(parts.view.rates) == {"a"}
    assert set(parts.engine_rates) == {"a"}
    assert set(parts.view.prices) == {("serverless", "tiny-remote")}
    assert gateway.gate.max_body == 2**20
    assert (gateway.in_flight, gateway.gate.draining) == (0, False)
    close(gateway)


def test_prices_and_rates_in_force_are_the_first_records(tmp_path: Path) -> None:
    gateway = built(tmp_path)
    gateway.prepare()
    assert gateway.background.writer.move_now()
    with gateway.store.engine.connect() as connection:
        counted = [
            connection.exec_driver_sql(f"SELECT count(*) FROM {t}").scalar()
            for t in ("prices", "engine_rates")
        ]
    assert counted == [1, 1]
    close(gateway)


def test_the_journal_lies_beside_an_sqlite_ledger_or_where_it_is_told_to(tmp_path: Path) -> None:
    gateway = built(tmp_path)
    assert gateway.journal.folder == tmp_path / "ledger.db.journal"
    close(gateway)
    gateway = built(tmp_path, old='ledger.db"', new=f'ledger.db", journal: {tmp_path}/elsewhere')
    assert gateway.journal.folder == tmp_path / "elsewhere"
    close(gateway)


def test_a_second_gateway_on_the_same_journal_is_refused(tmp_path: Path) -> None:
    gateway = built(tmp_path)
    with pytest.raises(JournalInUse):
        built(tmp_path)
    close(gateway)


def test_keys_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "keys.yaml").write_text("keys: [oops]\n")
    with pytest.raises(ConfigErrors):
        built(tmp_path, extra="clients: {keys_file: keys.yaml}")
