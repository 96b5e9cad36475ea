"""Every error a client can see: one shape, a status, words without addresses."""

import json

import pytest

from gateway.api.errors import _REJECTIONS, answer_for, rejection
from gateway.relay.failure import Failure, FailureKind
from gateway.routing.reasons import Reason


@pytest.mark.parametrize("code", _REJECTIONS)
def test_every_refusal_of_ours_has_openais_shape(code: str) -> None:
    answer = rejection(code, "what was sent", param="p").answer
    error = json.loads(answer.body)["error"]
    assert (error["code"], error["param"]) == (code, "p")
    assert 400 <= answer.status < 600
    assert error["message"].endswith(".")
    assert "{" not in error["message"]


@pytest.mark.parametrize("kind", FailureKind)
def test_every_failure_has_a_row(kind: FailureKind) -> None:
    answer = answer_for(Failure(kind, reason=Reason.KV_FULL if kind is FailureKind.SHED else None, model="m"))
    error = json.loads(answer.body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert answer.status >= 500
    assert error["message"].endswith(".")
    assert (dict(answer.headers).get(b"retry-after") is not None) == (answer.status in (429, 503))


def test_a_targets_own_status_and_body_stand() -> None:
    failure = Failure(FailureKind.TARGET_STATUS, status=422, body=b'{"error":{}}')
    assert (answer_for(failure).status, answer_for(failure).body) == (422, b'{"error":{}}')


@pytest.mark.parametrize("kind", ["OVERFLOW_AUTH", "ENGINE_AUTH", "ENGINE_MODEL_MISSING"])
def test_what_is_our_fault_is_a_502_whatever_the_target_said(kind: str) -> None:
    answer = answer_for(Failure(FailureKind[kind], status=401, message="sk-provider-text"))
    assert answer.status == 502
    assert b"sk-provider" not in answer.body


@pytest.mark.parametrize(("wait", "whole", "exact"), [(0.0, "1", "0"), (0.2, "1", "200"), (6.6, "7", "6600")])
def test_the_wait_is_told_in_seconds_and_milliseconds(wait: float, whole: str, exact: str) -> None:
    headers = dict(answer_for(Failure(FailureKind.SHED, retry_after=wait, reason=Reason.OVERLOADED)).headers)
    assert (headers[b"retry-after"].decode(), headers[b"retry-after-ms"].decode()) == (whole, exact)


def test_a_retry_that_might_be_billed_again_is_advised_against() -> None:
    for paid, header in ((True, b"false"), (False, None)):
        answer = answer_for(Failure(FailureKind.TARGET_CUT, paid_twice=paid))
        assert dict(answer.headers).get(b"x-should-retry") == header


def test_a_spent_budget_is_a_rate_limit_by_its_reason() -> None:
    answer = answer_for(Failure(FailureKind.SHED, status=429, reason=Reason.BUDGET_SPENT, retry_after=60))
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["type"], error["code"]) == (429, "rate_limit_error", "budget_spent")
