"""What attempts and requests cost, and what the other route would have: facts of the log put to the cost
arithmetic."""

from gateway.costs.alternative import Alternative, alternative_of_local, alternative_of_overflow
from gateway.costs.money import Rated, add_up
from gateway.costs.prices import TokenPrice
from gateway.costs.rate import rate
from gateway.costs.work import EngineRate, standard, work_units
from gateway.relay.admitted import Admitted
from gateway.relay.attempt_log import AttemptLog, RatedAttempt, Rating, RequestLog
from gateway.relay.parts import RelayParts
from gateway.routing.decision import Local, Overflow
from gateway.wire.usage import Usage

_NOTHING = Rated(0)
_UNKNOWN = Rated(None, "billed or not, the target did not say")


def _usage(parts: RelayParts, admitted: Admitted, attempt: AttemptLog) -> Usage | None:
    """What the wire reported; else, where content passed, an estimate that says so; else None."""
    reported = attempt.usage
    if reported is not None:
        return _as_estimate(reported) if attempt.usage_is_estimated else reported
    answered = attempt.outcome == "ok" and admitted.facts.generates
    if not attempt.content_events and not answered:
        return None
    tokens = round(attempt.content_events * parts.view.lengths.tokens_per_event(admitted.facts.model))
    known = attempt.content_events > 0
    return Usage(
        prompt=admitted.facts.prompt_tokens, completion=tokens if known else None, source="estimated"
    )


def _as_estimate(usage: Usage) -> Usage:
    return Usage(
        usage.prompt, usage.cached, usage.completion, usage.reasoning, "estimated", usage.inconsistent
    )


def _price(parts: RelayParts, attempt: AttemptLog) -> TokenPrice | None:
    """The price in force for this attempt's endpoint; None for engines and unpriced endpoints."""
    match attempt.route:
        case Overflow(endpoint=endpoint, remote_model=model):
            return parts.view.prices.get((endpoint, model))
        case Local():
            return None


def rate_attempt(parts: RelayParts, admitted: Admitted, attempt: AttemptLog) -> RatedAttempt:
    """Everything that an attempt's rows and sums are made of, worked out once."""
    generates = admitted.path.generates
    usage, price = _usage(parts, admitted, attempt), _price(parts, attempt)
    work = work_units(usage, generates=generates)
    cash = _cash(attempt, usage, price, generates=generates)
    return RatedAttempt(usage, price, work, cash, _standard(parts, attempt, usage, work, cash))


def _cash(attempt: AttemptLog, usage: Usage | None, price: TokenPrice | None, *, generates: bool) -> Rated:
    """`cash_marginal`: 0 on an engine that is paid for anyway, and where nothing can have been billed."""
    billable = attempt.billable()
    if billable == "no":
        return _NOTHING
    if billable == "unknown" and usage is None:
        return _UNKNOWN
    return rate(usage, price, generates=generates)


def _standard(
    parts: RelayParts, attempt: AttemptLog, usage: Usage | None, work: int | None, cash: Rated
) -> Rated:
    """`standard`: work at practical capacity on an engine, the token bill at an endpoint."""
    if not isinstance(attempt.route, Local):
        return cash
    if usage is None:
        return _NOTHING if not attempt.content_events else Rated(None, "tokens unknown")
    return standard(work, parts.engine_rates.get(attempt.route.engine))


def _alternative(
    parts: RelayParts, admitted: Admitted, log: RequestLog, attempt: AttemptLog, usage: Usage | None
) -> Alternative:
    """The route not taken, on the tokens of the attempt that answered."""
    targets = parts.view.models[admitted.facts.model]
    generates = admitted.path.generates
    if isinstance(attempt.route, Local):
        if not targets.endpoints:
            return alternative_of_local(usage, None, generates=generates)
        first = targets.endpoints[0]
        price = parts.view.prices.get((first.name, first.remote_model))
        return alternative_of_local(usage, price, equivalent=first.equivalent, generates=generates)
    engine_rate = _first_rate(parts, targets.engines)
    reason = log.decision.reason if log.decision else attempt.reason
    return alternative_of_overflow(reason.value, usage, engine_rate, generates=generates)


def _first_rate(parts: RelayParts, engines: tuple[str, ...]) -> EngineRate | None:
    return next((parts.engine_rates[e] for e in engines if e in parts.engine_rates), None)


def request_rating(parts: RelayParts, admitted: Admitted, log: RequestLog) -> Rating | None:
    """The sum over attempts (cost-model I8): unknown if any part is. None where nothing was attempted."""
    last = log.last
    if last is None:
        return None
    rated = tuple(rate_attempt(parts, admitted, attempt) for attempt in log.attempts)
    other = _alternative(parts, admitted, log, last, rated[-1].usage)
    cash, standards = (r.cash.amount for r in rated), (r.standard.amount for r in rated)
    return Rating(add_up(cash).exact, add_up(standards).exact, other, rated)
