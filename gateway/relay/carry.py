"""Carries a decision out, attempt after attempt, until an answer is with the client or nobody may be tried
any more.

What may be tried is routing.retry's word; what is recorded is relay.record's. Every way out of here closes
the record and gives back what was held, without awaiting anything.
"""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from gateway.ledger.records import Outcome
from gateway.relay.admitted import Admitted
from gateway.relay.attempt import Attempting
from gateway.relay.attempt_log import AttemptLog, RequestLog
from gateway.relay.client import Client
from gateway.relay.dispatch import exchange_for
from gateway.relay.failure import Failure, FailureKind
from gateway.relay.headers import answer_headers
from gateway.relay.parts import Decided, RelayParts
from gateway.relay.rating import rate_attempt
from gateway.relay.record import close_record
from gateway.relay.refusal import problem_of
from gateway.relay.stake import Stake
from gateway.relay.underway import Underway
from gateway.routing.decide import decide
from gateway.routing.decision import Decision, Hold, Overflow, Route, Shed
from gateway.routing.reasons import Reason
from gateway.routing.retry import counts_as_failure, may_leave_for, may_try_next, next_route
from gateway.upstreams.base import Header, UpstreamResponse
from gateway.vllm.errors import classify_error
from gateway.wire.errors import error_event

# While a request is held, routing is asked again this often: a release or a scrape may have made room.
_HOLD_STEP = 0.05


class Carrier:
    """One request on its way. `log` is filled as it goes and is whole when `carry` returns or raises."""

    def __init__(self, parts: RelayParts, admitted: Admitted, client: Client) -> None:
        self._parts, self._admitted, self._client = parts, admitted, client
        self.log = RequestLog()

    async def carry(self) -> RequestLog:
        """To the end. Afterwards the client has its answer, or `log.failure` says what to tell it."""
        budget = self._parts.retry_budget
        budget.in_flight += 1
        try:
            # Nothing is awaited between this decision and the stake that the attempt takes: two requests must
            # not both be promised the same blocks.
            decision = await self._decide()
            if isinstance(decision.route, Shed | Hold):
                self._shed(decision)
            else:
                await self._attempts(decision, decision.route)
        finally:
            budget.in_flight -= 1
        return self.log

    async def _decide(self) -> Decision:
        parts, admitted = self._parts, self._admitted
        deadline = parts.clock() + admitted.policy.deadlines.first_byte
        while True:
            decision = decide(admitted.facts, parts.view, admitted.policy, parts.clock(), parts.wall())
            if not isinstance(decision.route, Hold) or parts.clock() >= deadline:
                break
            await asyncio.sleep(_HOLD_STEP)
        if isinstance(decision.route, Hold):
            decision = replace(decision, route=decision.route.otherwise)
        self.log.decision = decision
        parts.decisions.append(Decided(admitted.request_id, admitted.arrived_utc, decision))
        return decision

    def _shed(self, decision: Decision) -> None:
        route = decision.route
        if isinstance(route, Shed):
            self.log.outcome = "shed"
            self.log.failure = Failure(
                FailureKind.SHED,
                status=route.status,
                retry_after=route.retry_after,
                reason=decision.reason,
                model=self._admitted.requested_model,
            )

    async def _attempts(self, decision: Decision, first: Route) -> None:
        route, reason = first, decision.reason
        tried: set[str] = set()
        retrying = False
        try:
            while True:
                attempt = await self._attempt(route, reason)
                tried.add(attempt.target)
                following = self._next(decision, attempt, tried, retrying=retrying)
                if following is None:
                    break
                route, reason = following
                if not retrying:
                    retrying = True
                    self._parts.retry_budget.retrying += 1
        finally:
            self._parts.retry_budget.retrying -= retrying
        await self._conclude(attempt)

    async def _attempt(self, route: Route, reason: Reason) -> AttemptLog:
        parts, admitted, log = self._parts, self._admitted, self.log
        n = len(log.attempts) + 1
        now = parts.clock()
        exchange = exchange_for(admitted, route, parts.view, n)
        attempt = AttemptLog(
            n, route, reason, exchange, datetime.now(UTC).isoformat(timespec="microseconds"), now
        )
        log.attempts.append(attempt)
        log.dispatched_at = log.dispatched_at or now
        expected = log.decision.expected_overflow if log.decision else None
        stake = Stake(parts, admitted, attempt, expected)
        stake.take()
        try:
            underway = Underway(
                admitted, attempt, self._client, stake, parts.clock, self._complete, self._answer_headers
            )
            await Attempting(underway).run(parts.targets[attempt.target])
        except asyncio.CancelledError:
            attempt.outcome = self._client.lost or "shutdown"
            raise
        finally:
            stake.give_back(self._spent(attempt))
            self._tell(attempt, stake)
        return attempt

    def _spent(self, attempt: AttemptLog) -> int | None:
        """What the attempt cost: already worked out where its answer closed the record."""
        if self.log.rating is not None:
            return self.log.rating.attempts[-1].cash.amount
        return rate_attempt(self._parts, self._admitted, attempt).cash.amount

    def _tell(self, attempt: AttemptLog, stake: Stake) -> None:
        """Breakers, counters and learners hear how it ended."""
        parts, now = self._parts, self._parts.clock()
        parts.counters.attempts[attempt.target, attempt.outcome] += 1
        breakers, failure = parts.view.breakers, attempt.failure
        if attempt.outcome == "ok":
            breakers.succeeded(attempt.target)
            stake.learn()
        elif failure is None or attempt.outcome == "shed":
            breakers.abandoned(attempt.target)
        elif failure.retry_after is not None:
            breakers.asked_to_wait(attempt.target, now, failure.retry_after)
        elif counts_as_failure(attempt.moment, status=failure.status):
            breakers.failed(attempt.target, now)
        else:
            breakers.abandoned(attempt.target)

    def _next(
        self, decision: Decision, attempt: AttemptLog, tried: set[str], *, retrying: bool
    ) -> tuple[Route, Reason] | None:
        """The next target and why, or None where the last failure is the answer."""
        failure, policy = attempt.failure, self._admitted.policy
        if failure is None or self._client.started or attempt.n >= policy.retry.attempts:
            return None
        if not retrying and not self._parts.retry_budget.allows(policy.retry):
            return None
        reason = self._why_next(attempt, failure)
        if reason is None:
            return None
        leaves = decision.may_overflow and (attempt.priced or may_leave_for(reason, policy))
        route = next_route(decision.fallbacks, tried, may_overflow=leaves)
        if reason is Reason.CONTEXT_TOO_LONG and not isinstance(route, Overflow):
            return None
        return None if route is None else (route, reason)

    def _why_next(self, attempt: AttemptLog, failure: Failure) -> Reason | None:
        """The reason for which another target may be tried, or None where nobody may."""
        kind = None if attempt.priced else classify_error(failure.status or 0, problem_of(failure))
        if kind == "context_too_long" and may_leave_for(Reason.CONTEXT_TOO_LONG, self._admitted.policy):
            return Reason.CONTEXT_TOO_LONG
        if not may_try_next(attempt.moment, priced=attempt.priced, status=failure.status, sent=attempt.sent):
            return None
        return Reason.ENGINE_REFUSED if kind == "refused_admission" else Reason.ATTEMPT_FAILED

    async def _conclude(self, attempt: AttemptLog) -> None:
        log, failure = self.log, attempt.failure
        if attempt.outcome == "ok":
            return
        log.outcome = attempt.outcome
        log.failure = failure and replace(
            failure, paid_twice=attempt.billable() != "no", model=self._admitted.requested_model
        )
        if self._client.started and failure is not None:
            log.status = attempt.status
            self.close()
            await self._client.write(_in_band(failure))
            self._client.break_off()

    def _complete(self) -> None:
        """The answer is whole: its record must be durable before its last byte leaves."""
        attempt = self.log.attempts[-1]
        attempt.ended_at = self._parts.clock()
        self.log.outcome, self.log.status = "ok", attempt.status
        self.close()

    def _answer_headers(self, response: UpstreamResponse) -> list[Header]:
        return answer_headers(self._admitted, self.log, response)

    def lost(self, outcome: Outcome) -> None:
        """The request was cancelled: its client left, was too slow, or the gateway stops."""
        if self.log.closed:
            return
        self.log.outcome = outcome
        if attempt := self.log.last:
            attempt.outcome = outcome
        if outcome == "shutdown":
            self.log.failure = Failure(FailureKind.SHUTDOWN)
            self.log.status = attempt.status if attempt else None
        self.close()

    def close(self) -> None:
        """Write the closing record, once."""
        if not self.log.closed:
            self.log.closed = True
            close_record(self._parts, self._admitted, self.log)


def _in_band(failure: Failure) -> bytes:
    message = failure.message or "the target failed while it answered"
    return error_event(message, failure.error_type or "server_error", failure.kind.value)
