"""Headers of an answer: the target's that may pass, and ours that say where it came from and what it cost."""

from gateway.costs.money import usd_text
from gateway.relay.admitted import Admitted
from gateway.relay.attempt_log import RequestLog
from gateway.routing.decision import Decision, route_name, target_name
from gateway.upstreams.base import Header, UpstreamResponse
from gateway.upstreams.headers import forward_response


def route_headers(admitted: Admitted, log: RequestLog) -> list[Header]:
    """x-request-id and the x-spillgate headers that every answer carries."""
    headers: list[Header] = [(b"x-request-id", admitted.request_id.encode("ascii", "replace"))]
    attempt = log.last
    if attempt is not None:
        headers += _route(attempt.route_name, attempt.reason, attempt.target)
        headers.append((b"x-spillgate-model", attempt.exchange.model.encode("utf-8", "replace")))
        if attempt.exchange.dropped_fields:
            headers.append((b"x-spillgate-dropped", ",".join(attempt.exchange.dropped_fields).encode()))
    elif log.decision is not None:
        headers += _decided(log.decision)
    headers.append((b"x-spillgate-attempts", str(len(log.attempts)).encode()))
    if log.dispatched_at is not None:
        overhead = (log.dispatched_at - admitted.arrived_at) * 1000
        headers.append((b"x-spillgate-overhead-ms", f"{overhead:.3f}".encode()))
    return headers


def answer_headers(admitted: Admitted, log: RequestLog, response: UpstreamResponse) -> list[Header]:
    """Everything a client gets beside the body. Costs only where they are known before the first byte: not
    streamed."""
    headers = [*forward_response(response.headers), *route_headers(admitted, log)]
    if log.rating is not None and admitted.shows_costs and not admitted.streams:
        headers.append((b"x-spillgate-cost-basis", b"cash_marginal"))
        headers += _amount(b"x-spillgate-cost", log.rating.cash_marginal)
        headers += _amount(b"x-spillgate-alternative-cost", log.rating.alternative.expected)
    return headers


def _amount(name: bytes, amount: int | None) -> list[Header]:
    """An unknown amount has no header: it is not 0."""
    text = usd_text(amount)
    return [] if text is None else [(name, text.encode())]


def _decided(decision: Decision) -> list[Header]:
    return _route(route_name(decision.route), decision.reason, target_name(decision.route))


def _route(route: str, reason: str, target: str | None) -> list[Header]:
    headers = [(b"x-spillgate-route", route.encode()), (b"x-spillgate-reason", reason.encode())]
    if target:
        headers.append((b"x-spillgate-target", target.encode("utf-8", "replace")))
    return headers
