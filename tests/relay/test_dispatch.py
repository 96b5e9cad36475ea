"""What leaves for a target: the client's bytes but for what must differ."""

import json
from dataclasses import replace

from bench import Bench

from gateway.relay.dispatch import exchange_for


def test_a_request_that_needs_no_edit_leaves_to_the_byte(bench: Bench) -> None:
    admitted = bench.admit(x_future_field={"a": [1, 2.50]})
    exchange = exchange_for(admitted, bench.local, bench.parts.view, 1)
    assert exchange.body is admitted.body
    assert (exchange.method, exchange.path, exchange.model) == ("POST", "/v1/chat/completions", "tiny")
    assert exchange.stream is False


def test_an_alias_becomes_the_engines_name_and_nothing_else_changes(bench: Bench) -> None:
    admitted = bench.admit(model="small", temperature=0.50)
    exchange = exchange_for(admitted, bench.local, bench.parts.view, 1)
    assert exchange.body == admitted.body.replace(b'"small"', b'"tiny"')


def test_usage_is_asked_for_in_streams_that_did_not(bench: Bench) -> None:
    for fields in ({"stream": True}, {"stream": True, "stream_options": {"continuous_usage_stats": False}}):
        sent = json.loads(exchange_for(bench.admit(**fields), bench.local, bench.parts.view, 1).body)
        assert sent["stream_options"]["include_usage"] is True
    admitted = bench.admit(stream=True, stream_options={"include_usage": True})
    assert exchange_for(admitted, bench.local, bench.parts.view, 1).body is admitted.body


def test_usage_is_not_asked_for_where_the_field_does_not_exist(bench: Bench) -> None:
    admitted = bench.admit("/v1/responses", stream=True, input="x")
    assert b"stream_options" not in exchange_for(admitted, bench.local, bench.parts.view, 1).body


def test_an_endpoint_is_told_its_own_model_name_and_makes_its_own_edits(bench: Bench) -> None:
    admitted = bench.admit(model="small")
    exchange = exchange_for(admitted, bench.far, bench.parts.view, 1)
    assert (exchange.model, exchange.body) == ("tiny-remote", admitted.body)


def test_each_attempt_has_an_id_of_its_own(bench: Bench) -> None:
    admitted = bench.admit()
    ids = [exchange_for(admitted, bench.local, bench.parts.view, n).request_id for n in (1, 2, 3)]
    assert ids[0] == admitted.request_id
    assert len(set(ids)) == 3


def test_deadlines_are_the_policys(bench: Bench) -> None:
    admitted = bench.admit()
    deadlines = replace(admitted.policy.deadlines, connect=0.1, first_byte=0.2, between_events=0.3)
    admitted = replace(admitted, policy=replace(admitted.policy, deadlines=deadlines))
    limits = exchange_for(admitted, bench.local, bench.parts.view, 1).limits
    assert (limits.connect, limits.first_byte, limits.between_reads) == (0.1, 0.2, 0.3)
