"""The rows that requests leave: opened before anything is dialled, closed once, counted as they are
written."""

import json
from dataclasses import asdict

from bench import Bench

from gateway.api.intake import arrival_of
from gateway.ledger.records import OpenRecord, RequestRecord
from gateway.relay.admitted import Admitted
from gateway.relay.attempt_log import RequestLog
from gateway.relay.record import close_record, open_record, rejected_record
from gateway.routing.retry import Moment
from gateway.wire.paths import find
from gateway.wire.usage import Usage

REPORTED = Usage(prompt=10, completion=3, source="reported")


def closed(bench: Bench, admitted: Admitted, log: RequestLog) -> RequestRecord:
    close_record(bench.parts, admitted, log)
    record = bench.sink.records[-1]
    assert isinstance(record, RequestRecord)
    return record


def test_an_opening_record_has_no_text_of_the_request(bench: Bench) -> None:
    record = open_record(bench.admit(model="small", stream=True, user="somebody"))
    assert isinstance(record, OpenRecord)
    assert (record.requested_model, record.model, record.stream) == ("small", "tiny", True)
    assert not {"hello", "somebody"} & set(json.dumps(asdict(record)).split('"'))


def test_a_refused_request_has_a_row_and_has_spent_nothing() -> None:
    path = find("POST", "/v1/chat/completions")
    assert path is not None
    arrival = arrival_of(path, [], {}, 0.0)
    record = rejected_record(arrival, outcome="shed", status=503, reason="draining")
    assert (record.route, record.reason, record.outcome, record.status) == ("shed", "draining", "shed", 503)
    assert (record.attempts, record.cash_marginal, record.usage_source) == ((), 0, "none")
    assert rejected_record(arrival, outcome="rejected", status=400).route is None


def test_a_closing_record_tells_of_every_attempt_and_what_it_cost(bench: Bench) -> None:
    admitted = bench.admit()
    first = bench.attempt(admitted, outcome="upstream_cut", sent=True, moment=Moment.SENT)
    first.ended_at = bench.times[0] + 0.25
    second = bench.attempt(
        admitted, bench.far, n=2, outcome="ok", sent=True, moment=Moment.END, usage=REPORTED
    )
    second.first_event_at = bench.times[0] + 0.5
    bench.pass_time(1.0)
    log = RequestLog(
        attempts=[first, second], outcome="ok", status=200, dispatched_at=admitted.arrived_at + 0.001
    )
    record = closed(bench, admitted, log)
    assert [(a.n, a.target, a.moment, a.outcome, a.billable) for a in record.attempts] == [
        (1, "a", "sent", "upstream_cut", "no"),
        (2, "serverless", "end", "ok", "yes"),
    ]
    assert record.attempts[0].ms_total == 250
    assert (
        record.cash_marginal
        == sum(a.cash_marginal or 0 for a in record.attempts)
        == 10 * 200_000 + 3 * 600_000
    )
    assert (record.route, record.target, record.ttft_ms) == ("overflow", "serverless", 500)
    assert (record.duration_ms, record.overhead_ms) == (1000, 1)
    assert record.price_id == record.attempts[1].price_id is not None
    assert record.attempts[0].rate_id is not None


def test_counters_move_with_the_record(bench: Bench) -> None:
    admitted = bench.admit()
    attempt = bench.attempt(admitted, bench.far, outcome="ok", sent=True, usage=REPORTED, bad_events=2)
    attempt.first_event_at = bench.times[0] + 0.03
    closed(bench, admitted, RequestLog(attempts=[attempt], outcome="ok", dispatched_at=bench.times[0]))
    counters = bench.parts.counters
    assert counters.requests["tiny", "overflow", "headroom", "ok"] == 1
    assert counters.cost["tiny", "overflow", "cash_marginal"] == 10 * 200_000 + 3 * 600_000
    assert counters.bad_events["serverless"] == 2
    assert sum(counters.ttft["overflow"].counts) == sum(counters.overhead.counts) == 1
    assert not counters.usage_estimated


def test_an_estimate_is_counted_by_why(bench: Bench) -> None:
    admitted = bench.admit(stream=True)
    for library, why in ((False, "missing"), (True, "library")):
        attempt = bench.attempt(
            admitted, outcome="ok", sent=True, content_events=3, usage_is_estimated=library
        )
        record = closed(bench, admitted, RequestLog(attempts=[attempt], outcome="ok"))
        assert record.usage_source == "estimated"
        assert bench.parts.counters.usage_estimated["a", why] == 1


def test_flags_name_what_was_odd_once_each(bench: Bench) -> None:
    admitted = bench.admit()
    odd = Usage(prompt=10, completion=3, source="reported", inconsistent=True)
    attempts = [bench.attempt(admitted, bench.far, n=n, usage=odd, bad_events=1, sent=True) for n in (1, 2)]
    flags = closed(bench, admitted, RequestLog(attempts=attempts)).flags
    assert {"bad_events", "usage_inconsistent"} <= set(flags)
    assert len(flags) == len(set(flags))


def test_a_request_that_was_never_decided_has_a_row_all_the_same(bench: Bench) -> None:
    record = closed(bench, bench.admit(), RequestLog(outcome="client_gone"))
    assert (record.outcome, record.route, record.target, record.attempts) == ("client_gone", None, None, ())
    assert bench.parts.counters.requests["tiny", "none", "no_target", "client_gone"] == 1
