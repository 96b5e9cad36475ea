"""CSV: groups and their total, told apart, with the same figures as JSON."""

import csv
import io
from collections.abc import Callable

import pytest
from ledger_rows import FOUR_HOURS, MIXED, local

from gateway.reports.columns import COLUMNS
from gateway.reports.render.csv_ import render
from gateway.reports.render.json_ import as_object
from gateway.reports.report import Report

Reported = Callable[..., Report]


def lines(report: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render(report))))


@pytest.mark.parametrize("by", [("model", "route", "reason"), ("hour",), ("engine", "tag")])
def test_the_same_figures_as_in_json(reported: Reported, by: tuple[str, ...]) -> None:
    report = reported(*MIXED, by=by)
    value = as_object(report)
    found = lines(report)
    for line, expected in zip(found, [*value["rows"], value["totals"]], strict=True):
        for column in COLUMNS:
            place = expected
            for step in column.key.split("."):
                place = place[step]
            assert line[column.csv_name] == ("" if place is None else str(place)), column.key


def test_the_total_is_told_from_the_groups(reported: Reported) -> None:
    assert [line["record"] for line in lines(reported(*MIXED, by=("route",)))] == [*["group"] * 4, "total"]


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x", "@x", "\tx"])
def test_no_text_of_a_client_is_a_formula(reported: Reported, text: str) -> None:
    line = lines(reported(*FOUR_HOURS, local("l", tags=text), by=("tag",)))[0]
    assert line["tag"] == f"'{text}"


def test_an_empty_period_is_a_total_of_nothing(reported: Reported) -> None:
    (line,) = lines(reported())
    assert (line["record"], line["requests"], line["cash_marginal_usd"]) == ("total", "0", "0")
