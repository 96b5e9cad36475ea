"""Who may be tried next: every moment, both kinds of target, every kind of answer."""

import pytest

from gateway.routing.decision import Local, Overflow
from gateway.routing.need import need_of
from gateway.routing.policy import OverflowRules, Policy, Retry
from gateway.routing.reasons import Reason
from gateway.routing.retry import (
    Moment,
    RetryBudget,
    counts_as_failure,
    may_leave_for,
    may_try_next,
    next_route,
)

STATUSES = [None, 400, 401, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504]


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("priced", [False, True])
@pytest.mark.parametrize("moment", list(Moment))
def test_the_table_of_moments(moment: Moment, priced: bool, status: int | None) -> None:
    may = may_try_next(moment, priced=priced, status=status)
    if moment >= Moment.MIDSTREAM:
        assert not may, "never a second generation after content"
    elif moment <= Moment.CONNECTING:
        assert may, "nothing was sent"
    elif status in (400, 409, 413, 422):
        assert not may, "another target would say the same"
    elif priced:
        assert may == (status in (401, 404, 408, 429, 503)), (
            "a priced target must prove that it generated nothing"
        )
    else:
        assert may


def test_what_was_never_sent_may_always_go_elsewhere() -> None:
    assert may_try_next(Moment.SENT, priced=True, status=None, sent=False)


@pytest.mark.parametrize(
    ("status", "counts"), [(None, True), (500, True), (502, True), (503, False), (429, False), (400, False)]
)
def test_saturation_and_bad_requests_are_no_failures(status: int | None, counts: bool) -> None:
    assert counts_as_failure(Moment.SENT, status=status) is counts


def test_the_budget_is_a_share_with_a_floor() -> None:
    budget = RetryBudget()
    budget.in_flight, budget.retrying = 1, 2
    assert budget.allows(Retry())
    budget.retrying = 3
    assert not budget.allows(Retry())
    budget.in_flight = 100
    assert budget.allows(Retry(share=0.2))
    budget.retrying = 20
    assert not budget.allows(Retry(share=0.2))


def test_each_target_once_and_no_endpoint_for_what_may_not_leave() -> None:
    need = need_of(10, 10, 1, 16)
    fallbacks = (Local("a", need), Overflow("e", "m", True, None), Local("b", need))
    assert next_route(fallbacks, {"a"}, may_overflow=True) == fallbacks[1]
    assert next_route(fallbacks, {"a"}, may_overflow=False) == fallbacks[2]
    assert next_route(fallbacks, {"a", "b"}, may_overflow=False) is None


def test_a_failure_is_a_cause_to_leave_for_only_where_the_policy_names_it() -> None:
    narrow = Policy("p", overflow=OverflowRules(when=("headroom", "queue")))
    assert may_leave_for(Reason.ENGINE_REFUSED, narrow)
    assert not may_leave_for(Reason.ATTEMPT_FAILED, narrow)
    assert not may_leave_for(Reason.CONTEXT_TOO_LONG, narrow)
    assert may_leave_for(Reason.ATTEMPT_FAILED, Policy("p"))
    assert may_leave_for(
        Reason.ATTEMPT_FAILED, Policy("handover", overflow=OverflowRules(when=()), pin="overflow")
    )
