"""Every way in which an answer can be no good has a failure that names it."""

from typing import get_args

import pytest

from gateway.ledger.records import Outcome
from gateway.relay.broken import AnswerBroken, error_event_failure, upstream_failure
from gateway.relay.failure import FailureKind
from gateway.upstreams import errors
from gateway.upstreams.errors import UpstreamError
from gateway.wire.errors import UpstreamProblem

RAISED = [
    errors.Refused("r"),
    errors.PoolFull("p"),
    errors.TimedOut("t", sent=True),
    errors.Stalled("s", sent=True),
    errors.Cut("c", sent=True),
    errors.ProtocolBroken("b", sent=True),
    errors.TooLarge("l", sent=True),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda e: type(e).__name__)
def test_every_transport_error_is_a_failure_of_its_own_kind(error: UpstreamError) -> None:
    failure = upstream_failure(error)
    assert failure.kind is not FailureKind.INTERNAL
    assert failure.message == str(error)
    assert error.outcome in get_args(Outcome)


def test_the_list_above_is_complete() -> None:
    assert {type(e) for e in RAISED} == set(UpstreamError.__subclasses__())


@pytest.mark.parametrize(
    ("code", "status"),
    [(429, 429), (503, 503), (500, 500), (200, None), ("rate_limited", None), (None, None), (99999, None)],
)
def test_only_an_error_status_inside_an_event_is_taken_for_one(
    code: int | str | None, status: int | None
) -> None:
    broken = error_event_failure(UpstreamProblem("slow down", "t", "p", code), aborted=False)
    assert broken.outcome == "upstream_error_event"
    assert (broken.failure.status, broken.failure.message, broken.failure.param) == (status, "slow down", "p")


def test_an_abort_says_that_it_was_one() -> None:
    broken = error_event_failure(UpstreamProblem("nothing"), aborted=True)
    assert broken.failure.kind is FailureKind.TARGET_ERROR_EVENT
    assert broken.failure.message is not None
    assert "aborted" in broken.failure.message


def test_a_broken_answer_brings_its_words_along() -> None:
    broken = AnswerBroken("upstream_truncated", "it ended early")
    assert (broken.failure.kind, broken.failure.message) == (FailureKind.TARGET_TRUNCATED, "it ended early")
