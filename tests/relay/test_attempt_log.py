"""What an attempt proves about money: yes, no, or nobody knows."""

from typing import Any

import pytest
from bench import Bench

from gateway.relay.attempt_log import RequestLog
from gateway.relay.failure import Failure, FailureKind
from gateway.wire.usage import Usage


def inside(status: int | None) -> dict[str, Any]:
    """An error object inside a 200."""
    return {"status": 200, "failure": Failure(FailureKind.TARGET_ERROR_EVENT, status=status)}


@pytest.mark.parametrize(
    ("fields", "billable"),
    [
        ({}, "no"),
        ({"sent": True}, "unknown"),
        ({"sent": True, "outcome": "ok"}, "yes"),
        ({"sent": True, "content_events": 1, "status": 200}, "yes"),
        ({"sent": True, "usage": Usage(prompt=3, completion=1)}, "yes"),
        ({"sent": True, "usage": Usage(prompt=3, completion=0)}, "unknown"),
        ({"sent": True, "status": 400}, "no"),
        ({"sent": True, "status": 503}, "no"),
        ({"sent": True, "status": 500}, "unknown"),
        ({"sent": True, "status": 200}, "unknown"),
        ({"sent": True} | inside(429), "no"),
        ({"sent": True} | inside(500), "unknown"),
        ({"sent": True} | inside(None), "unknown"),
        ({"sent": True, "content_events": 1} | inside(429), "yes"),
    ],
)
def test_only_a_per_token_endpoint_can_bill_and_only_proof_says_that_it_did_not(
    bench: Bench, fields: dict[str, Any], billable: str
) -> None:
    admitted = bench.admit()
    assert bench.attempt(admitted, bench.far, **fields).billable() == billable
    assert bench.attempt(admitted, bench.local, **fields).billable() == "no"


def test_names_come_from_the_route(bench: Bench) -> None:
    admitted = bench.admit()
    near, far = bench.attempt(admitted), bench.attempt(admitted, bench.far, n=2)
    assert (near.target, near.route_name, near.priced) == ("a", "local", False)
    assert (far.target, far.route_name, far.priced) == ("serverless", "overflow", True)
    assert RequestLog().last is None
    assert RequestLog(attempts=[near, far]).last is far
