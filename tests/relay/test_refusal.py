"""What of a target's error status the client may see."""

import json

import pytest

from gateway.relay.failure import FailureKind
from gateway.relay.refusal import problem_of, refusal_of

OPENAI = json.dumps({"error": {"message": "m", "type": "t", "param": "p", "code": 400}}).encode()


def test_an_error_in_openais_shape_is_kept_to_the_byte() -> None:
    failure = refusal_of(400, (), OPENAI, priced=False)
    assert (failure.kind, failure.status, failure.body) == (FailureKind.TARGET_STATUS, 400, OPENAI)
    assert problem_of(failure) == ("m", "t", "p", 400)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><title>Bad gateway</title>",
        b'{"error": "Unauthorized"}',
        b'{"detail": "no"}',
        b"[1]",
        b"\xff",
        b'{"error": {"message": "no param, no code"}}',
        b"null",
    ],
)
def test_any_other_body_is_read_and_not_passed(body: bytes) -> None:
    failure = refusal_of(500, (), body, priced=True)
    assert (failure.kind, failure.body) == (FailureKind.TARGET_STATUS, None)
    assert failure.message


@pytest.mark.parametrize("status", [401, 403])
def test_our_own_credentials_are_our_affair(status: int) -> None:
    for priced, kind in ((True, FailureKind.OVERFLOW_AUTH), (False, FailureKind.ENGINE_AUTH)):
        failure = refusal_of(status, (), OPENAI, priced=priced)
        assert (failure.kind, failure.message, failure.body) == (kind, None, None)


def test_a_404_of_an_engine_for_its_model_is_the_configurations_fault() -> None:
    body = json.dumps({"error": {"message": "m", "type": "t", "param": "model", "code": 404}}).encode()
    assert refusal_of(404, (), body, priced=False).kind is FailureKind.ENGINE_MODEL_MISSING
    assert refusal_of(404, (), body, priced=True).kind is FailureKind.TARGET_STATUS
    assert refusal_of(404, (), OPENAI, priced=False).kind is FailureKind.TARGET_STATUS


@pytest.mark.parametrize("status", [300, 302, 308])
def test_a_redirect_is_no_answer(status: int) -> None:
    assert refusal_of(status, (), b"", priced=False).kind is FailureKind.TARGET_PROTOCOL


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (b"2", 2.0),
        (b"0.5", 0.5),
        (b"86400", 300.0),
        (b"-1", 0.0),
        (b"inf", 300.0),
        (b"nan", None),
        (b"soon", None),
        (b"Fri, 31 Dec 2027 23:59:59 GMT", None),
    ],
)
def test_the_time_to_wait_is_bounded_and_never_nonsense(given: bytes, seconds: float | None) -> None:
    assert refusal_of(429, ((b"retry-after", given),), OPENAI, priced=True).retry_after == seconds
    assert refusal_of(429, (), OPENAI, priced=True).retry_after is None
