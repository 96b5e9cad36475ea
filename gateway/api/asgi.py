"""The ASGI application: data-plane paths are served here, ahead of any framework; everything else goes to the
control plane."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import unquote

from gateway.api.auth import authenticate
from gateway.api.client import AsgiClient, Interest, Receive, Scope, Send
from gateway.api.errors import ErrorAnswer, Rejected, answer_for, rejection
from gateway.api.intake import Arrival, Intake, arrival_of
from gateway.api.limits import ClientLeft, header_map, read_body
from gateway.api.models import ModelList
from gateway.config.keys import KeyRing
from gateway.ledger.errors import JournalFull
from gateway.ledger.records import Outcome
from gateway.relay.admitted import Admitted
from gateway.relay.carry import Carrier
from gateway.relay.failure import Failure, FailureKind
from gateway.relay.headers import route_headers
from gateway.relay.parts import RelayParts
from gateway.relay.record import open_record, rejected_record
from gateway.routing.reasons import Reason
from gateway.upstreams.base import Header
from gateway.wire.paths import PATHS, Path, find

_log = logging.getLogger(__name__)
_JSON: Header = (b"content-type", b"application/json")
_MODELS = "/v1/models"
_KNOWN = frozenset(path.path for path in PATHS)

App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(slots=True)
class Gate:
    """What is let in: limits, and whether the gateway still takes work."""

    max_body: int
    max_in_flight: int
    draining: bool = False


class DataPlane:
    """Serves the data-plane paths; hands every other request, and lifespan, to `control`."""

    def __init__(
        self,
        parts: RelayParts,
        intake: Intake,
        models: ModelList,
        keys: KeyRing | None,
        gate: Gate,
        control: App,
    ) -> None:
        self._parts, self._intake, self._models = parts, intake, models
        self._keys, self.gate, self._control = keys, gate, control

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._control(scope, receive, send)
            return
        method, path = scope["method"], scope["path"]
        row = find(method, path)
        if row is not None:
            await self._serve(row, scope, receive, send)
        elif path == _MODELS or path.startswith(_MODELS + "/") or path in _KNOWN:
            await self._answer_plainly(scope, send)
        else:
            await self._control(scope, receive, send)

    async def _answer_plainly(self, scope: Scope, send: Send) -> None:
        """The model list, or a known path asked for with a method that it does not take."""
        headers = header_map(scope["headers"])
        try:
            authenticate(self._keys, headers)
            body = self._model_answer(scope["method"], scope["path"])
            await _send_all(send, 200, body, [])
        except Rejected as refused:
            await _send_error(send, refused.answer, [])

    def _model_answer(self, method: str, path: str) -> bytes:
        if method != "GET" or not path.startswith(_MODELS):
            raise rejection("method_not_allowed", method)
        name = unquote(path[len(_MODELS) :].strip("/"))
        return self._models.one(name) if name else self._models.list()

    async def _serve(self, row: Path, scope: Scope, receive: Receive, send: Send) -> None:
        headers = header_map(scope["headers"])
        arrival = arrival_of(row, scope["headers"], headers, self._parts.clock())
        try:
            arrival.key = authenticate(self._keys, headers)
            self._let_in(arrival)
            body = await read_body(receive, headers, self.gate.max_body)
            admitted = self._intake.admit(arrival, body)
            self._open_record(admitted)
        except Rejected as refused:
            self._record_refusal(arrival, refused)
            await _send_error(send, refused.answer, [(b"x-request-id", arrival.request_id.encode())])
        except ClientLeft:
            self._parts.journal.append(rejected_record(arrival, outcome="client_gone", status=None))
        else:
            await self._carry(admitted, receive, send)

    def _let_in(self, arrival: Arrival) -> None:
        if self.gate.draining:
            refusal = Failure(FailureKind.SHED, status=503, retry_after=5.0, reason=Reason.DRAINING)
            raise Rejected(answer_for(refusal), Reason.DRAINING.value)
        if self._parts.retry_budget.in_flight >= self.gate.max_in_flight:
            refusal = Failure(FailureKind.SHED, status=503, retry_after=1.0, reason=Reason.OVERLOADED)
            raise Rejected(answer_for(refusal), Reason.OVERLOADED.value)

    def _record_refusal(self, arrival: Arrival, refused: Rejected) -> None:
        shed = refused.why in (Reason.DRAINING, Reason.OVERLOADED)
        outcome: Outcome = "shed" if shed else "rejected"
        self._parts.counters.rejected[refused.why] += 1
        self._parts.journal.append(
            rejected_record(
                arrival, outcome=outcome, status=refused.answer.status, reason=refused.why if shed else None
            )
        )

    def _open_record(self, admitted: Admitted) -> None:
        try:
            self._parts.journal.append(open_record(admitted))
        except JournalFull:
            raise rejection("ledger_full") from None

    async def _carry(self, admitted: Admitted, receive: Receive, send: Send) -> None:
        async with Interest(receive, self._parts.clock) as interest:
            interest.limit_stalls(admitted.policy.deadlines.client_stall)
            client = AsgiClient(send, interest)
            carrier = Carrier(self._parts, admitted, client)
            try:
                await self._answer(admitted, carrier, client)
            except asyncio.CancelledError:
                carrier.lost(client.lost or "shutdown")
                if client.lost is not None:
                    raise
                # The server stops and this task with it: there is only the client left to tell.
                await _tell_failure(admitted, carrier, client)
            finally:
                carrier.close()

    async def _answer(self, admitted: Admitted, carrier: Carrier, client: AsgiClient) -> None:
        try:
            await carrier.carry()
        except Exception:  # noqa: BLE001 -- whatever it is, client and ledger must learn of it
            _log.exception("request %s failed inside the gateway", admitted.request_id)
            carrier.log.failure = Failure(FailureKind.INTERNAL)
        await _tell_failure(admitted, carrier, client)


async def _tell_failure(admitted: Admitted, carrier: Carrier, client: AsgiClient) -> None:
    """Close the record, then tell the client of a failure that it has not heard of yet."""
    log = carrier.log
    if log.failure is None or client.ended:
        return
    answer = answer_for(log.failure)
    if client.started:
        carrier.close()
        if admitted.streams:
            await client.write(b"data: %b\n\n" % answer.body)
        client.break_off()
        return
    log.status = answer.status
    carrier.close()
    await _send_error_to(client, answer, route_headers(admitted, log))


async def _send_error_to(client: AsgiClient, answer: ErrorAnswer, headers: list[Header]) -> None:
    length: Header = (b"content-length", str(len(answer.body)).encode())
    await client.start(answer.status, [_JSON, length, *headers, *answer.headers])
    await client.finish(answer.body)


async def _send_error(send: Send, answer: ErrorAnswer, headers: list[Header]) -> None:
    await _send_all(send, answer.status, answer.body, [*headers, *answer.headers])


async def _send_all(send: Send, status: int, body: bytes, headers: list[Header]) -> None:
    length: Header = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})
