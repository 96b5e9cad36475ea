"""The ledger's rows of a request, made from its log. Written when it is admitted and, once, when it ends."""

from typing import Protocol

from gateway.costs.money import Rated
from gateway.costs.work import DEFAULT_WEIGHTS
from gateway.ledger.records import AttemptRecord, OpenRecord, Outcome, RequestRecord
from gateway.relay.admitted import Admitted
from gateway.relay.attempt_log import AttemptLog, RatedAttempt, RequestLog
from gateway.relay.parts import RelayParts
from gateway.relay.rating import request_rating
from gateway.routing.decision import Local, Overflow, route_name
from gateway.routing.reasons import Reason
from gateway.wire.paths import Path
from gateway.wire.usage import Usage

_NO_USAGE = Usage()
_NOT_ATTEMPTED = RatedAttempt(None, None, None, Rated(0), Rated(0))


class Refusable(Protocol):
    """What is known of a request that was refused before anything was dispatched."""

    path: Path
    request_id: str
    arrived_utc: str
    requested_model: str | None
    stream: bool

    @property
    def key_name(self) -> str | None:
        """The client key's name."""
        ...


def open_record(admitted: Admitted) -> OpenRecord:
    """Durable before anything is dialled."""
    return OpenRecord(
        request_id=admitted.request_id,
        t_in=admitted.arrived_utc,
        key=admitted.key,
        path=admitted.path.path,
        requested_model=admitted.requested_model,
        model=admitted.facts.model,
        stream=admitted.peek.stream,
        tags=admitted.tags,
        policy=admitted.policy.name,
    )


def rejected_record(
    arrival: Refusable, *, outcome: Outcome, status: int | None, reason: str | None = None
) -> RequestRecord:
    """A request that never reached a target: one row, no attempts, nothing spent."""
    return RequestRecord(
        request_id=arrival.request_id, t_in=arrival.arrived_utc, key=arrival.key_name, tags=None,
        path=arrival.path.path, requested_model=arrival.requested_model, model=None, policy=None,
        stream=arrival.stream, route="shed" if outcome == "shed" else None, target=None, reason=reason,
        outcome=outcome, status=status, attempts=(), prompt_tokens=None, cached_tokens=None,
        completion_tokens=None, reasoning_tokens=None, usage_source="none", cash_marginal=0, standard=0,
        work_units_milli=None, weight_set=None, price_id=None,
        price_source=None, alternative_route=None, alternative_target=None, alternative_kind=None,
        alternative_cash=None, alternative_standard=None, alternative_low=None, equivalent=None, ttft_ms=None,
        duration_ms=None, overhead_ms=None,
    )  # fmt: skip


def close_record(parts: RelayParts, admitted: Admitted, log: RequestLog) -> None:
    """Rate the request, append its closing record, count it."""
    log.rating = request_rating(parts, admitted, log)
    parts.journal.append(_request_record(parts, admitted, log))
    _count(parts, admitted, log)


def _request_record(parts: RelayParts, admitted: Admitted, log: RequestLog) -> RequestRecord:
    last, rating = log.last, log.rating
    rated = rating.attempts[-1] if rating else _NOT_ATTEMPTED
    usage, price, cash = rated.usage or _NO_USAGE, rated.price, rated.cash
    other = rating.alternative if rating else None
    route, reason = _route_and_reason(log)
    return RequestRecord(
        request_id=admitted.request_id,
        t_in=admitted.arrived_utc,
        key=admitted.key,
        tags=admitted.tags,
        path=admitted.path.path,
        requested_model=admitted.requested_model,
        model=admitted.facts.model,
        policy=admitted.policy.name,
        stream=admitted.peek.stream,
        route=route,
        target=last.target if last else None,
        reason=reason,
        outcome=log.outcome,
        status=log.status,
        attempts=_attempt_records(parts, log),
        prompt_tokens=usage.prompt,
        cached_tokens=usage.cached,
        completion_tokens=usage.completion,
        reasoning_tokens=usage.reasoning,
        usage_source=usage.source,
        cash_marginal=rating.cash_marginal if rating else 0,
        standard=rating.standard if rating else 0,
        work_units_milli=rated.work,
        weight_set=DEFAULT_WEIGHTS.weight_set,
        price_id=price.price_id if price else None,
        price_source=cash.source if price else None,
        alternative_route=other.route if other else None,
        alternative_target=other.target if other else None,
        alternative_kind=other.kind if other else None,
        alternative_cash=other.expected if other else None,
        alternative_standard=other.standard if other else None,
        alternative_low=other.low if other else None,
        equivalent=_equivalent(last, other.equivalent if other else None),
        ttft_ms=_ms(admitted.arrived_at, last.first_event_at if last else None),
        duration_ms=_ms(admitted.arrived_at, parts.clock()),
        overhead_ms=_ms(admitted.arrived_at, log.dispatched_at),
        flags=_flags(log, cash),
    )


def _attempt_records(parts: RelayParts, log: RequestLog) -> tuple[AttemptRecord, ...]:
    rated = log.rating.attempts if log.rating else ()
    return tuple(_attempt_record(parts, a, r) for a, r in zip(log.attempts, rated, strict=True))


def _attempt_record(parts: RelayParts, attempt: AttemptLog, rated: RatedAttempt) -> AttemptRecord:
    usage, price, cash = rated.usage or _NO_USAGE, rated.price, rated.cash
    exchange, started = attempt.exchange, attempt.started_at
    rate = parts.engine_rates.get(attempt.target) if isinstance(attempt.route, Local) else None
    return AttemptRecord(
        n=attempt.n,
        target=attempt.target,
        route=attempt.route_name,
        remote_model=exchange.model,
        reason=attempt.reason.value,
        moment=attempt.moment.name.lower(),
        outcome=attempt.outcome,
        status=attempt.status,
        billable=attempt.billable(),
        t_dial=attempt.dialed_utc,
        ms_to_sent=_ms(started, exchange.sent_at),
        ms_to_headers=_ms(started, exchange.headers_at),
        ms_to_first_event=_ms(started, attempt.first_event_at),
        ms_total=_ms(started, attempt.ended_at or parts.clock()),
        prompt_tokens=usage.prompt,
        cached_tokens=usage.cached,
        completion_tokens=usage.completion,
        reasoning_tokens=usage.reasoning,
        usage_source=usage.source,
        cash_marginal=cash.amount,
        standard=rated.standard.amount,
        price_id=price.price_id if price else None,
        price_source=cash.source if price else None,
        rate_id=rate.rate_id if rate else None,
        dropped_fields=",".join(exchange.dropped_fields) or None,
    )


def _route_and_reason(log: RequestLog) -> tuple[str | None, str | None]:
    if log.last is not None:
        return log.last.route_name, log.last.reason.value
    if log.decision is None:
        return None, None
    return route_name(log.decision.route), log.decision.reason.value


def _equivalent(attempt: AttemptLog | None, of_alternative: bool | None) -> bool | None:
    if attempt is not None and isinstance(attempt.route, Overflow):
        return attempt.route.equivalent
    return of_alternative


def _flags(log: RequestLog, cash: Rated) -> tuple[str, ...]:
    flags = list(cash.flags)
    flags += log.rating.alternative.flags if log.rating else ()
    if any(a.bad_events for a in log.attempts):
        flags.append("bad_events")
    if any(a.usage and a.usage.inconsistent for a in log.attempts):
        flags.append("usage_inconsistent")
    if log.decision is not None and log.decision.shadowed is not None:
        flags.append(f"shadow:{log.decision.shadowed}")
    return tuple(dict.fromkeys(flags))


def _count(parts: RelayParts, admitted: Admitted, log: RequestLog) -> None:
    counters, model = parts.counters, admitted.facts.model
    route, reason = _route_and_reason(log)
    counters.requests[model, route or "none", reason or Reason.NO_TARGET.value, log.outcome] += 1
    if log.dispatched_at is not None:
        counters.overhead.observe(log.dispatched_at - admitted.arrived_at)
    last, rating = log.last, log.rating
    if last is None or rating is None:
        return
    counters.bad_events[last.target] += last.bad_events
    if last.first_event_at is not None:
        counters.ttft[last.route_name].observe(last.first_event_at - admitted.arrived_at)
    usage = rating.attempts[-1].usage
    if usage is not None and usage.source == "estimated":
        counters.usage_estimated[last.target, "library" if last.usage_is_estimated else "missing"] += 1
    for basis, amount in (("cash_marginal", rating.cash_marginal), ("standard", rating.standard)):
        counters.cost[model, last.route_name, basis] += amount or 0
    counters.alternative_cost[model, last.route_name] += rating.alternative.expected or 0


def _ms(start: float, end: float | None) -> float | None:
    return None if end is None else round((end - start) * 1000, 3)
