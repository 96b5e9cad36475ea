"""What attempts and requests cost: 0 only where it is 0, None where nobody knows, sums over attempts."""

from typing import Any

import pytest
from bench import Bench

from gateway.relay.attempt_log import RequestLog
from gateway.relay.rating import rate_attempt, request_rating
from gateway.routing.retry import Moment
from gateway.wire.usage import Usage

REPORTED = Usage(prompt=10, cached=4, completion=3, source="reported")
FAR_COST = 6 * 200_000 + 4 * 100_000 + 3 * 600_000


def test_an_engine_costs_no_cash_and_its_share_of_capacity(bench: Bench) -> None:
    admitted = bench.admit()
    attempt = bench.attempt(admitted, outcome="ok", sent=True, usage=REPORTED)
    cash = rate_attempt(bench.parts, admitted, attempt).cash
    assert cash.amount == 0
    assert rate_attempt(bench.parts, admitted, attempt).price is None
    standard = rate_attempt(bench.parts, admitted, attempt).standard.amount
    assert standard is not None
    assert standard > 0


def test_an_endpoint_costs_its_price_and_the_same_as_standard(bench: Bench) -> None:
    admitted = bench.admit()
    attempt = bench.attempt(admitted, bench.far, outcome="ok", sent=True, usage=REPORTED)
    cash = rate_attempt(bench.parts, admitted, attempt).cash
    assert cash.amount == FAR_COST
    assert rate_attempt(bench.parts, admitted, attempt).standard.amount == FAR_COST


@pytest.mark.parametrize(
    ("fields", "billable", "amount"),
    [
        ({"sent": False, "outcome": "upstream_refused"}, "no", 0),
        ({"sent": True, "status": 429, "outcome": "upstream_status"}, "no", 0),
        ({"sent": True, "status": 503, "outcome": "upstream_status"}, "no", 0),
        ({"sent": True, "status": 500, "outcome": "upstream_status"}, "unknown", None),
        ({"sent": True, "outcome": "upstream_timeout"}, "unknown", None),
        ({"sent": True, "outcome": "client_gone", "usage": REPORTED}, "yes", FAR_COST),
    ],
)
def test_what_may_have_been_billed_is_unknown_and_not_0(
    bench: Bench, fields: dict[str, Any], billable: str, amount: int | None
) -> None:
    admitted = bench.admit()
    attempt = bench.attempt(admitted, bench.far, **fields)
    assert attempt.billable() == billable
    assert rate_attempt(bench.parts, admitted, attempt).cash.amount == amount


def test_content_without_usage_is_estimated_from_its_events(bench: Bench) -> None:
    admitted = bench.admit(stream=True)
    attempt = bench.attempt(admitted, bench.far, outcome="upstream_cut", sent=True, content_events=8)
    usage = rate_attempt(bench.parts, admitted, attempt).usage
    assert usage is not None
    assert (usage.completion, usage.source) == (8, "estimated")
    assert attempt.billable() == "yes"
    cash = rate_attempt(bench.parts, admitted, attempt).cash.amount
    assert cash == (usage.prompt or 0) * 200_000 + 8 * 600_000


def test_a_librarys_usage_is_an_estimate_though_it_came_on_the_wire(bench: Bench) -> None:
    admitted = bench.admit()
    attempt = bench.attempt(admitted, bench.far, usage=REPORTED, usage_is_estimated=True)
    usage = rate_attempt(bench.parts, admitted, attempt).usage
    assert usage is not None
    assert (usage.prompt, usage.cached, usage.completion, usage.source) == (10, 4, 3, "estimated")


def test_a_request_costs_the_sum_of_its_attempts_and_one_unknown_makes_it_unknown(bench: Bench) -> None:
    admitted = bench.admit()
    refused = bench.attempt(admitted, outcome="upstream_refused")
    answered = bench.attempt(admitted, bench.far, n=2, outcome="ok", sent=True, usage=REPORTED)
    lost = bench.attempt(admitted, bench.far, outcome="upstream_cut", sent=True, moment=Moment.SENT)
    rating = request_rating(bench.parts, admitted, RequestLog(attempts=[refused, answered]))
    assert rating is not None
    assert rating.cash_marginal == FAR_COST
    unknown = request_rating(bench.parts, admitted, RequestLog(attempts=[lost, answered]))
    assert unknown is not None
    assert unknown.cash_marginal is None
    assert request_rating(bench.parts, admitted, RequestLog()) is None


def test_the_route_not_taken_is_priced_on_the_same_tokens(bench: Bench) -> None:
    admitted = bench.admit()
    local = bench.attempt(admitted, outcome="ok", sent=True, usage=REPORTED)
    rating = request_rating(bench.parts, admitted, RequestLog(attempts=[local]))
    assert rating is not None
    other = rating.alternative
    assert other.route == "overflow"
    assert (other.low or 0) <= (other.expected or 0) <= 10 * 200_000 + 3 * 600_000
