"""The list of columns: every figure has its place, its unit and its meaning, and money names its basis."""

from dataclasses import fields

from gateway.reports.columns import BY_KEY, COLUMNS
from gateway.reports.figures import NOTHING_TO_BILL, Figures, figures_of

NOTHING = figures_of([], [], NOTHING_TO_BILL)


def test_every_figure_has_a_column_and_every_column_a_figure() -> None:
    assert {column.key.partition(".")[0] for column in COLUMNS} == {field.name for field in fields(Figures)}
    for column in COLUMNS:
        column.value(NOTHING)


def test_keys_and_headers_are_there_once() -> None:
    assert len(BY_KEY) == len(COLUMNS) == len({column.csv_name for column in COLUMNS})


def test_money_names_its_basis_and_its_currency() -> None:
    for column in (c for c in COLUMNS if c.unit == "USD"):
        assert column.basis is not None
        assert column.basis in column.csv_name
        assert column.csv_name.endswith("_usd")


def test_no_column_is_called_a_saving() -> None:
    assert not any("saving" in (column.key + column.csv_name) for column in COLUMNS)


def test_money_is_an_exact_text_and_unknown_stays_unknown() -> None:
    assert BY_KEY["engine_bill"].plain(NOTHING) == "0"
    assert BY_KEY["loaded"].plain(NOTHING) is None
    assert BY_KEY["coverage"].plain(NOTHING) is None
    assert BY_KEY["requests"].plain(NOTHING) == 0
