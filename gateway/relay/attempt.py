"""One attempt: send to one target, carry its answer to the client or fill in how it failed. Decides
nothing."""

import json
from contextlib import suppress

from gateway.relay.broken import AnswerBroken, upstream_failure
from gateway.relay.refusal import refusal_of
from gateway.relay.stream import StreamRelay
from gateway.relay.underway import Underway
from gateway.routing.retry import Moment
from gateway.upstreams.base import Target, UpstreamResponse
from gateway.upstreams.errors import UpstreamError
from gateway.wire.usage import usage_from

_EVENT_STREAM = b"text/event-stream"
_JSON = b"application/json"


class Attempting:
    """One attempt under way."""

    def __init__(self, underway: Underway) -> None:
        self._underway, self._attempt, self._admitted = underway, underway.attempt, underway.admitted

    async def run(self, target: Target) -> None:
        """Afterwards `attempt.outcome` is ok and the answer is with the client, or `attempt.failure` says why
        not."""
        attempt = self._attempt
        response: UpstreamResponse | None = None
        try:
            response = await target.send(attempt.exchange)
            attempt.moment, attempt.status, attempt.sent = Moment.HEADERS, response.status, True
            attempt.usage_is_estimated = response.usage_is_estimated
            await self._answer(response)
            # vLLM sends the body's own end a moment after its end marker: with it the connection can serve
            # again.
            response.finish()
        except UpstreamError as error:
            self._failed(error)
        except AnswerBroken as broken:
            attempt.outcome, attempt.failure = broken.outcome, broken.failure
        finally:
            attempt.sent = attempt.sent or attempt.exchange.sent_at is not None
            attempt.ended_at = attempt.ended_at or self._underway.clock()
            if response is not None:
                response.close()

    def _failed(self, error: UpstreamError) -> None:
        attempt = self._attempt
        attempt.sent = attempt.sent or error.sent
        if error.sent and attempt.moment < Moment.SENT:
            attempt.moment = Moment.SENT
        attempt.outcome, attempt.failure = error.outcome, upstream_failure(error)

    async def _answer(self, response: UpstreamResponse) -> None:
        if response.status >= 300:
            await self._refused(response)
        elif self._admitted.streams:
            await self._stream(response)
        else:
            await self._whole(response)

    async def _refused(self, response: UpstreamResponse) -> None:
        limits = self._attempt.exchange.limits
        body = b""
        with suppress(UpstreamError):  # an error's status counts, whatever becomes of its body
            body = await response.read(limits.max_error_body)
        self._attempt.outcome = "upstream_status"
        self._attempt.failure = refusal_of(
            response.status, response.headers, body, priced=self._attempt.priced
        )

    async def _stream(self, response: UpstreamResponse) -> None:
        if not _content_type(response).startswith(_EVENT_STREAM):
            raise AnswerBroken("upstream_protocol", "a stream was asked for, something else came")
        await StreamRelay(self._underway).run(response)

    async def _whole(self, response: UpstreamResponse) -> None:
        attempt = self._attempt
        body = await response.read(attempt.exchange.limits.max_body)
        attempt.first_event_at = self._underway.clock()
        if _content_type(response).startswith(_JSON):
            self._read_usage(body)
        elif self._admitted.path.generates:
            raise AnswerBroken("upstream_protocol", "JSON was expected, something else came")
        attempt.moment, attempt.outcome = Moment.END, "ok"
        self._underway.complete()
        headers = self._underway.headers(response)
        headers.append((b"content-length", str(len(body)).encode()))
        await self._underway.client.start(response.status, headers)
        await self._underway.client.finish(body)

    def _read_usage(self, body: bytes) -> None:
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise AnswerBroken("upstream_protocol", "the answer is not JSON") from error
        if isinstance(answer, dict):
            self._attempt.usage = usage_from(self._admitted.path.kind, answer)


def _content_type(response: UpstreamResponse) -> bytes:
    return next((value for name, value in response.headers if name == b"content-type"), b"").lower()
