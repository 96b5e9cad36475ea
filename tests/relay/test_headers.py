"""The headers of an answer: whose may pass, and what ours say."""

from bench import Bench

from gateway.costs.alternative import Alternative
from gateway.relay.attempt_log import Rating, RequestLog
from gateway.relay.headers import answer_headers, route_headers
from gateway.routing.decide import decide
from gateway.routing.decision import Shed


class _Response:
    status = 200
    usage_is_estimated = False
    headers = (
        (b"content-type", b"application/json"),
        (b"content-length", b"7"),
        (b"set-cookie", b"a=b"),
        (b"server", b"uvicorn"),
        (b"x-ratelimit-remaining-tokens", b"9"),
    )


def test_route_reason_target_and_model_come_from_the_attempt_that_answered(bench: Bench) -> None:
    admitted = bench.admit()
    log = RequestLog(attempts=[bench.attempt(admitted), bench.attempt(admitted, bench.far, n=2)])
    log.attempts[1].exchange.dropped_fields = ["top_k"]
    log.dispatched_at = admitted.arrived_at + 0.0125
    found = dict(route_headers(admitted, log))
    assert found == {
        b"x-request-id": b"r1",
        b"x-spillgate-route": b"overflow",
        b"x-spillgate-reason": b"headroom",
        b"x-spillgate-target": b"serverless",
        b"x-spillgate-model": b"tiny-remote",
        b"x-spillgate-dropped": b"top_k",
        b"x-spillgate-attempts": b"2",
        b"x-spillgate-overhead-ms": b"12.500",
    }


def test_without_an_attempt_the_decision_speaks(bench: Bench) -> None:
    admitted = bench.admit(headers=((b"x-spillgate-overflow", b"never"),))
    decision = decide(admitted.facts, bench.parts.view, admitted.policy, bench.times[0], 0.0)
    assert not isinstance(decision.route, Shed)
    found = dict(route_headers(admitted, RequestLog(decision=decision)))
    assert found[b"x-spillgate-route"] == b"local"
    assert found[b"x-spillgate-attempts"] == b"0"
    assert dict(route_headers(admitted, RequestLog()))[b"x-spillgate-attempts"] == b"0"


def test_costs_are_told_where_known_and_an_unknown_one_is_not_0(bench: Bench) -> None:
    other = Alternative(
        "overflow", "serverless", "cash", low=None, expected=2_500_000, high=None, standard=None
    )
    log = RequestLog(attempts=[bench.attempt(bench.admit())], rating=Rating(None, 1, other, ()))
    found = dict(answer_headers(bench.admit(), log, _Response()))  # type: ignore[arg-type]  # a response without a body
    assert b"x-spillgate-cost" not in found
    assert found[b"x-spillgate-alternative-cost"] == b"0.0000025"
    assert found[b"x-spillgate-cost-basis"] == b"cash_marginal"
    streamed = dict(answer_headers(bench.admit(stream=True), log, _Response()))  # type: ignore[arg-type]
    assert b"x-spillgate-cost-basis" not in streamed


def test_of_a_targets_headers_only_the_listed_ones_pass(bench: Bench) -> None:
    admitted = bench.admit()
    log = RequestLog(attempts=[bench.attempt(admitted)])
    found = dict(answer_headers(admitted, log, _Response()))  # type: ignore[arg-type]
    assert found[b"content-type"] == b"application/json"
    assert found[b"x-ratelimit-remaining-tokens"] == b"9"
    assert not {b"set-cookie", b"server", b"content-length"} & found.keys()
