"""What attempts and requests cost, and what the other route would have: facts of the log put to the cost
arithmetic."""

from gateway.costs.alternative import Alternative, alternative_of_local, alternative_of_overflow
from gateway.costs.money import Rated
from gateway.costs.prices import TokenPrice
from gateway.costs.rate import rate
from gateway.costs.work import EngineRate, standard, work_units
from gateway.relay.admitted import Admitted
from gateway.relay.attempt_log import AttemptLog, Rating, RequestLog
from gateway.relay.parts import RelayParts
from gateway.routing.decision import Local, Overflow
from gateway.wire.usage import Usage

_NOTHING = Rated(0)
_UNKNOWN = Rated(None, "billed or not, the target did not say")


def usage_of(parts: RelayParts, admitted: Admitted, attempt: AttemptLog) -> Usage | None:
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


def price_of(parts: RelayParts, attempt: AttemptLog) -> TokenPrice | None:
    """The price in force for this attempt's endpoint; None for engines and unpriced endpoints."""
    match attempt.route:
        case Overflow(endpoint=endpoint, remote_model=model):
            return parts.view.prices.get((endpoint, model))
        case Local():
            return None


def attempt_cash(parts: RelayParts, admitted: Admitted, attempt: AttemptLog) -> Rated:
    """`cash_marginal` of one attempt: 0 on an engine that is paid for anyway, and where nothing can have been
    billed."""
    billable = attempt.billable()
    if billable == "no":
        return _NOTHING
    usage = usage_of(parts, admitted, attempt)
    if billable == "unknown" and usage is None:
        return _UNKNOWN
    return rate(usage, price_of(parts, attempt), generates=admitted.path.generates)


def attempt_standard(parts: RelayParts, admitted: Admitted, attempt: AttemptLog, cash: Rated) -> Rated:
    """`standard` of one attempt: work at practical capacity on an engine, the token bill at an endpoint."""
    if not isinstance(attempt.route, Local):
        return cash
    usage = usage_of(parts, admitted, attempt)
    if usage is None:
        return _NOTHING if not attempt.content_events else Rated(None, "tokens unknown")
    work = work_units(usage, generates=admitted.path.generates)
    return standard(work, parts.engine_rates.get(attempt.route.engine))


def alternative(parts: RelayParts, admitted: Admitted, log: RequestLog, attempt: AttemptLog) -> Alternative:
    """The route not taken, on the tokens of the attempt that answered."""
    usage = usage_of(parts, admitted, attempt)
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
    cash = [attempt_cash(parts, admitted, a) for a in log.attempts]
    standards = [attempt_standard(parts, admitted, a, c) for a, c in zip(log.attempts, cash, strict=True)]
    return Rating(_sum(cash), _sum(standards), alternative(parts, admitted, log, last))


def _sum(amounts: list[Rated]) -> int | None:
    known = [rated.amount for rated in amounts if rated.amount is not None]
    return sum(known) if len(known) == len(amounts) else None
