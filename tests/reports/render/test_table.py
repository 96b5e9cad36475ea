"""The table for people. Renew its golden file with SPILLGATE_RENEW=1, and look at what changed."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from ledger_rows import FOUR_HOURS, MIXED, local, overflow

from gateway.reports.render.table import count_text, money_text, render, summary
from gateway.reports.report import Report

Reported = Callable[..., Report]
GOLDEN = Path(__file__).parent / "table.txt"


def test_the_table_is_the_one_that_was_looked_at(reported: Reported) -> None:
    text = render(reported(*MIXED))
    if os.environ.get("SPILLGATE_RENEW"):
        GOLDEN.write_text(text, "utf-8")
    assert text == GOLDEN.read_text("utf-8"), "look at it, then renew it with SPILLGATE_RENEW=1"


def test_the_head_names_period_basis_prices_and_what_is_unpriced(reported: Reported) -> None:
    head = render(reported(*MIXED)).partition("\n\n")[0]
    for words in (
        "2026-12-01 08:00:00 to 2026-12-01 12:00:00 UTC",
        "basis cash_marginal, in USD",
        "unpriced: 2 requests",
        "price p1: serverless org/m: in 0.2",
        "usage reported for",
    ):
        assert words in head


@pytest.mark.parametrize(
    ("basis", "money"),
    [("cash_marginal", ["0.000000", "0.000350"]), ("standard", ["0.000350", "0.000000"])],
)
def test_the_basis_is_the_first_column_of_money(reported: Reported, basis: str, money: list[str]) -> None:
    text = render(reported(*FOUR_HOURS, local("l"), basis=basis))
    total = next(line for line in text.splitlines() if line.startswith("total"))
    assert total.split()[4:6] == money


def test_a_sum_that_lacks_something_is_marked_and_an_unknown_one_is_no_number(reported: Reported) -> None:
    part = render(reported(*FOUR_HOURS, overflow("u", None), overflow("o"), by=("route",)))
    assert "0.000700+" in part
    assert "net position unknown" in part


def test_what_is_unknown_is_no_number(reported: Reported) -> None:
    text = render(reported(*FOUR_HOURS, overflow("u", None), by=("route",)))
    total = next(line for line in text.splitlines() if line.startswith("total"))
    assert total.split()[4:6] == ["-", "-"]
    assert "would have cost an unknown amount" in text


@pytest.mark.parametrize("width", [100, 120, 160])
def test_lines_are_no_longer_than_the_terminal(reported: Reported, width: int) -> None:
    long = local("l", model="organisation/a-model-with-a-very-long-name-" + "x" * 60, tags="t" * 80)
    for by in (("model", "route", "reason"), ("model", "tag"), ("model", "key", "hour", "outcome")):
        text = render(reported(*MIXED, long, by=by), width=width)
        assert max(map(len, text.splitlines())) <= width
        assert "".join(text.split()).count("x") >= 60


def test_it_is_plain_unless_colour_is_asked_for(reported: Reported) -> None:
    report = reported(*MIXED)
    assert "\x1b" not in render(report)
    coloured = render(report, color=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured).split() == render(report).split()


def test_no_name_of_a_client_moves_the_cursor(reported: Reported) -> None:
    text = render(reported(local("l", tags="\x1b[2J[bold]x[/bold]\r\n\u202e"), by=("tag",)))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]x[/bold]" in text


def test_the_result_names_the_bill_before_it_compares(reported: Reported) -> None:
    lines = summary(reported(*FOUR_HOURS, local("l"), overflow("o")))
    text = " ".join(lines)
    assert (
        text.index("engines")
        < text.index("the same traffic all at the endpoint")
        < text.index("net position")
    )
    assert "11.200700" in text
    assert "0.001340" in text
    assert "-11.199360" in text
    assert "sav" not in render(reported()).lower()


def test_an_empty_period_says_so(reported: Reported) -> None:
    assert "no requests in this period" in render(reported())


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (None, "-"),
        (0, "0.000000"),
        (1, "<0.000001"),
        (-1, ">-0.000001"),
        (1_000_000, "0.000001"),
        (1_500_000, "0.000002"),
        (2_500_000, "0.000002"),
        (-2_800_640_000_000, "-2.800640"),
        (1_234_567_000_000_000_000, "1,234,567.000000"),
    ],
)
def test_money_has_six_decimals_and_is_never_rounded_to_nothing(amount: int | None, text: str) -> None:
    assert money_text(amount) == text


@pytest.mark.parametrize("count", [0, 999, 1000, 12_345, 999_999, 1_999_999, 10**12, 123 * 10**12])
def test_counts_are_short_and_never_too_high(count: int) -> None:
    text = count_text(count)
    factor = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}.get(text[-1], 1)
    value = float(text.rstrip("kMGT")) * factor
    assert len(text) <= 6
    assert value <= count <= value * 1.01
