"""What a report says of a ledger: every grouping the same totals, nothing unknown shown as 0, no saving
before the bill.
"""

from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import pytest
from ledger_rows import FOUR_HOURS, MIXED, SINCE, UNTIL, engine_time, local, overflow, refused

from gateway.reports.columns import COLUMNS
from gateway.reports.report import Report
from gateway.reports.rows import GROUPINGS

Reported = Callable[..., Report]
BILL = 11_200_000_000_000
IDLE = 2_800_000_000_000
EVERY_PAIR = [*((name,) for name in GROUPINGS), *combinations(GROUPINGS, 2)]


def added_up(report: Report, key: str) -> int:
    """A column's sum over the groups, of what is known."""
    column = next(c for c in COLUMNS if c.key == key)
    return sum(int(column.value(row.figures) or 0) for row in report.rows)


def test_every_grouping_adds_up_to_the_same_totals(reported: Reported) -> None:
    first = reported(*MIXED)
    summed = [c.key for c in COLUMNS if c.total == "sum" and c.key not in ("engine_bill", "idle")]
    for by in EVERY_PAIR:
        report = reported(by=by)
        assert report.totals == first.totals, by
        for key in summed:
            column = next(c for c in COLUMNS if c.key == key)
            assert added_up(report, key) == (column.value(first.totals) or 0), (by, key)


@pytest.mark.parametrize(
    "by", [("engine",), ("target",), ("hour",), ("day",), ("engine", "hour"), ("day", "target")]
)
def test_where_groups_have_a_bill_it_adds_up_too(reported: Reported, by: tuple[str, ...]) -> None:
    report = reported(*MIXED, by=by)
    assert (added_up(report, "engine_bill"), added_up(report, "idle")) == (BILL, IDLE)


@pytest.mark.parametrize("by", [("model",), ("route", "hour"), ("key",), ("tag",)])
def test_groups_that_engine_time_does_not_belong_to_have_no_bill(
    reported: Reported, by: tuple[str, ...]
) -> None:
    report = reported(*MIXED, by=by)
    assert {row.figures.engine_bill for row in report.rows} == {None}
    assert report.totals.engine_bill == BILL


def test_adjacent_periods_add_up_to_the_whole(reported: Reported) -> None:
    whole = reported(*MIXED)
    for middle in (datetime(2026, 12, 1, 9, 17, 3, 1, UTC), datetime(2026, 12, 1, 8, 10, 0, 500_000, UTC)):
        parts = [reported(until=middle), reported(since=middle)]
        for key in (
            "requests",
            "engine_bill",
            "idle",
            "overflow",
            "cash_marginal",
            "standard",
            "alternative",
        ):
            assert sum(getattr(p.totals, key) for p in parts) == getattr(whole.totals, key), key


def test_the_net_position_nets_the_bill(reported: Reported) -> None:
    totals = reported(*FOUR_HOURS, local("l"), overflow("o")).totals
    assert totals.engine_bill == BILL
    assert totals.idle == IDLE
    assert totals.overflow == 700_000_000
    assert totals.all_overflow == 640_000_000 + 700_000_000
    assert totals.net_position == 640_000_000 - BILL
    assert totals.net_position_of_known == totals.net_position


def test_a_failed_attempt_at_an_endpoint_is_paid_for_but_avoided_once(reported: Reported) -> None:
    failed = overflow("x").attempts[0]
    attempts = (failed, local("y").attempts[0])
    second = [a if n == 0 else _numbered(a, 2) for n, a in enumerate(attempts)]
    totals = reported(*FOUR_HOURS, local("l", attempts=tuple(second), cash_marginal=700_000_000)).totals
    assert (totals.overflow, totals.all_overflow) == (700_000_000, 640_000_000)
    assert totals.net_position == 640_000_000 - (BILL + 700_000_000)


def _numbered(attempt: Any, n: int) -> Any:
    return type(attempt)(**{f.name: getattr(attempt, f.name) for f in fields(attempt)} | {"n": n})


def test_an_unknown_cost_is_counted_and_never_0(reported: Reported) -> None:
    totals = reported(*FOUR_HOURS, overflow("u", None), overflow("o")).totals
    assert (totals.unpriced.requests, totals.unpriced.tokens) == (1, 1100)
    assert totals.overflow == totals.cash_marginal == totals.standard == 700_000_000
    assert totals.missing.standard == totals.missing.all_overflow == 1
    assert totals.net_position is None


def test_where_no_cost_is_known_the_sum_is_unknown(reported: Reported) -> None:
    totals = reported(*FOUR_HOURS, overflow("u", None)).totals
    assert totals.cash_marginal is totals.standard is totals.overflow is totals.all_overflow is None


def test_a_request_cut_off_by_a_crash_is_unpriced(reported: Reported) -> None:
    crashed = refused("c", "interrupted", route=None, cash_marginal=None, standard=None)
    totals = reported(*FOUR_HOURS, local("l"), crashed).totals
    assert totals.unpriced.requests == 1
    assert totals.net_position is None
    assert totals.net_position_of_known == 640_000_000 - BILL


def test_without_a_price_elsewhere_there_is_no_net_position(reported: Reported) -> None:
    totals = reported(*FOUR_HOURS, local("l"), local("n", alternative_cash=None, alternative_low=None)).totals
    assert (totals.alternative, totals.missing.alternative) == (640_000_000, 1)
    assert totals.unpriced.requests == 0
    assert totals.net_position is None


def test_what_is_not_equivalent_is_left_out_of_what_was_avoided_and_counted(reported: Reported) -> None:
    report = reported(*FOUR_HOURS, local("l"), local("other", equivalent=False))
    assert report.totals.all_overflow == report.totals.alternative == 640_000_000
    assert report.totals.left_out.not_equivalent == 1
    assert report.totals.net_position == 640_000_000 - BILL
    assert any("not equivalent" in note for note in report.notes)


def test_what_an_engine_did_not_answer_is_left_out_and_counted(reported: Reported) -> None:
    lost = local(
        "l", outcome="upstream_timeout", usage_source="none", prompt_tokens=None, cached_tokens=None,
        completion_tokens=None, alternative_cash=None, alternative_low=None,
    )  # fmt: skip
    totals = reported(*FOUR_HOURS, lost, local("ok")).totals
    assert totals.left_out.no_usage == 1
    assert totals.net_position == 640_000_000 - BILL


def test_an_engine_that_served_without_a_bill_makes_the_bill_unknown(reported: Reported) -> None:
    report = reported(*FOUR_HOURS, local("l"), local("b1", target="b"))
    assert report.totals.engine_bill is report.totals.idle is report.totals.net_position is None
    assert [engine.bill for engine in report.engines] == [BILL]
    assert any("b answered" in note for note in report.notes)


def test_engines_that_nobody_asked_have_a_bill_too(reported: Reported) -> None:
    spare = engine_time("08:00:00", "12:00:00", 5_000, engine="spare", busy=False)
    report = reported(*FOUR_HOURS, spare, local("l"), by=("engine",))
    assert (report.totals.engine_bill, report.totals.idle) == (BILL + 5_000, IDLE + 5_000)
    assert {row.key: row.figures.engine_bill for row in report.rows} == {("a",): BILL, ("spare",): 5_000}


def test_without_traffic_the_whole_bill_is_idle(reported: Reported) -> None:
    idle = engine_time("08:00:00", "12:00:00", BILL, busy=False)
    report = reported(idle)
    assert (report.totals.engine_bill, report.totals.idle) == (BILL, BILL)
    assert (report.totals.requests, report.totals.cash_marginal, report.totals.standard) == (0, 0, 0)
    assert report.totals.net_position == -BILL
    assert report.totals.coverage is None
    assert report.rows == ()


def test_shares_of_the_bill_are_unknown_before_settlement(reported: Reported) -> None:
    report = reported(*MIXED)
    for figures in (report.totals, *(row.figures for row in report.rows)):
        assert figures.attributed is figures.loaded is None
    assert any("attributed and loaded are unknown" in note for note in report.notes)


def test_an_empty_ledger_has_an_empty_report(reported: Reported) -> None:
    report = reported()
    assert (report.rows, report.totals.requests, report.engines) == ((), 0, ())
    assert "no request arrived in this period" in report.notes


def test_amounts_are_never_negative_but_for_the_net_position(reported: Reported) -> None:
    report = reported(*MIXED)
    for column in COLUMNS:
        if not column.key.startswith("net_position"):
            for figures in (report.totals, *(row.figures for row in report.rows)):
                assert (column.value(figures) or 0) >= 0, column.key


def test_sums_past_64_bits_are_exact(reported: Reported) -> None:
    most = 2**63 - 1
    dear = [overflow(f"o{n}", most, prompt_tokens=most) for n in range(4)]
    totals = reported(*FOUR_HOURS, *dear).totals
    assert totals.overflow == totals.cash_marginal == totals.standard == 4 * most
    assert totals.tokens.prompt == 4 * most
    assert totals.net_position == -BILL


def test_the_basis_orders_the_groups(reported: Reported) -> None:
    dear, cheap = local("d", model="dear", standard=900_000_000), overflow("c", 1_000_000, model="cheap")
    assert [row.key for row in reported(dear, cheap, by=("model",)).rows] == [("cheap",), ("dear",)]
    assert [row.key for row in reported(by=("model",), basis="standard").rows] == [("dear",), ("cheap",)]


def test_a_report_can_be_built_on_fewer_keys_than_were_fetched(reported: Reported, store: Any) -> None:
    from gateway.reports.query import fetch
    from gateway.reports.report import build

    coarse = reported(*MIXED, by=("key",))
    fine = fetch(store.engine, SINCE, UNTIL, ("model", "key", "hour"))
    again = build(fine, since=SINCE, until=UNTIL, by=("key",))
    assert (again.rows, again.totals) == (coarse.rows, coarse.totals)
