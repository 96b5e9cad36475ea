"""One streamed answer from a target to the client, event by event, bytes unchanged.

Status and headers are held until the first content-bearing event: an error before it can still go to another
target. `[DONE]` proves nothing after an error event; an end without finish reason or end marker is a failure.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from gateway.relay.broken import AnswerBroken, error_event_failure
from gateway.relay.underway import Underway
from gateway.routing.retry import Moment
from gateway.upstreams.base import UpstreamResponse
from gateway.upstreams.errors import UpstreamError
from gateway.wire.errors import read_error
from gateway.wire.sse import EventFacts, EventTooLarge, SseFramer, classify, payload, without_id
from gateway.wire.tail import with_closing_members
from gateway.wire.usage import merge, usage_from

# More unparsable events than this in one stream are no accident (fault-matrix U38, U39).
_BAD_EVENTS_TOLERATED = 10
# Events held back before the first content: lifecycle and role events are small; more is no stream of ours.
_HELD_BYTES = 1024 * 1024
# How long a finished answer is waited for to say its usage and its end marker (fault-matrix U46).
_TAIL_SECONDS = 2.0
_END_MARKER = b"data: [DONE]\n\n"


class StreamRelay:
    """State of one stream; each attempt has its own, so nothing of a failed one leaks into the next."""

    def __init__(self, underway: Underway) -> None:
        self._underway, self._attempt = underway, underway.attempt
        admitted = underway.admitted
        self._framer = SseFramer()
        self._kind = admitted.path.kind
        self._drop_usage = not admitted.peek.usage_asked and self._kind in ("chat", "completions")
        self._drops_ids = self._kind in ("chat", "completions")
        self._out: list[bytes] = []
        self._finish_event: bytes | None = None
        # Streams of several choices are whole when each of them has finished.
        self._choices_open = admitted.facts.choices
        self._committed = False
        self._last: bytes | None = None

    async def run(self, response: UpstreamResponse) -> None:
        """Relay to the end. Raises AnswerBroken or UpstreamError; `client.started` then tells what is still
        possible."""
        limits = self._attempt.exchange.limits
        chunks = cast(AsyncGenerator[bytes, None], response.chunks())
        try:
            async with asyncio.timeout(limits.first_byte) as until, aclosing(chunks):
                async for data in chunks:
                    try:
                        self._take(data)
                    finally:
                        # What came before a fault in the same read is the client's, once there was content.
                        if self._committed:
                            until.reschedule(None)
                            await self._pass_on(response)
                    if self._last is not None:
                        break
                    if self._attempt.finish_seen:
                        until.reschedule(asyncio.get_running_loop().time() + _TAIL_SECONDS)
        except TimeoutError as error:
            if not self._attempt.finish_seen:
                raise AnswerBroken("upstream_stall", "no content within the first-byte limit") from error
        except UpstreamError:
            # The answer is whole, only its tail is lost (fault-matrix U45).
            if not self._attempt.finish_seen:
                raise
        await self._end(response)

    def _take(self, data: bytes) -> None:
        try:
            self._look_at(self._framer.feed(data))
        except EventTooLarge as error:
            self._look_at(error.before)
            raise AnswerBroken("upstream_protocol", "an event without an end") from error

    def _look_at(self, events: list[bytes]) -> None:
        content = 0
        try:
            for event in events:
                facts = classify(event, self._kind)
                if facts.malformed:
                    self._bad_event()
                    continue
                self._note(event, facts)
                content += facts.content
                if facts.done:
                    self._flush()
                    self._last = event
                    break
                self._append(without_id(event) if self._drops_ids else event, facts)
        finally:
            if content:
                self._progress(content)
        self._hold_or_commit()

    def _progress(self, content: int) -> None:
        self._attempt.content_events += content
        self._underway.stake.progress(content)
        self._commit()

    def _append(self, event: bytes, facts: EventFacts) -> None:
        """Queue an event for the client. Where usage was asked for on its behalf, the finish event waits for
        the usage chunk: vLLM has moved the stream's closing members there."""
        if facts.usage_only and self._drop_usage:
            if self._finish_event is not None:
                self._finish_event = with_closing_members(self._finish_event, event)
            return
        self._flush()
        if facts.finish and self._drop_usage:
            self._finish_event = event
        else:
            self._out.append(event)

    def _flush(self) -> None:
        if self._finish_event is not None:
            self._out.append(self._finish_event)
            self._finish_event = None

    def _note(self, event: bytes, facts: EventFacts) -> None:
        attempt = self._attempt
        if facts.error or facts.failed:
            raise error_event_failure(read_error(payload(event)), aborted=facts.failed)
        if facts.has_usage and facts.parsed is not None:
            usage = usage_from(self._kind, facts.parsed)
            if usage is not None:
                attempt.usage = merge(attempt.usage, usage)
        if facts.finish:
            self._choices_open -= _finished_choices(facts)
            attempt.finish_seen = self._choices_open <= 0
            attempt.moment = Moment.TAIL if attempt.finish_seen else attempt.moment

    def _commit(self) -> None:
        if not self._committed:
            self._committed = True
            self._attempt.first_event_at = self._underway.clock()
            self._attempt.moment = max(self._attempt.moment, Moment.MIDSTREAM)

    def _hold_or_commit(self) -> None:
        if self._committed:
            return
        if self._attempt.finish_seen or self._last is not None:
            self._commit()
            return
        if sum(map(len, self._out)) > _HELD_BYTES:
            raise AnswerBroken("upstream_protocol", "a megabyte of events without content")

    async def _pass_on(self, response: UpstreamResponse) -> None:
        if not self._underway.client.started:
            await self._underway.client.start(response.status, self._underway.headers(response))
        if self._out:
            data = b"".join(self._out)
            self._out.clear()
            await self._underway.client.write(data)

    def _bad_event(self) -> None:
        self._attempt.bad_events += 1
        if self._attempt.bad_events > _BAD_EVENTS_TOLERATED:
            raise AnswerBroken("upstream_protocol", "too many malformed events")

    async def _end(self, response: UpstreamResponse) -> None:
        attempt = self._attempt
        if self._last is None and (rest := self._framer.rest.strip()):
            # An end marker whose empty line never came is an end marker still.
            self._look_at([rest + b"\n\n"])
        if self._last is None and not attempt.finish_seen:
            raise AnswerBroken("upstream_truncated", "the stream ended without finish reason or end marker")
        self._commit()
        self._flush()
        await self._pass_on(response)
        last = self._last if self._last is not None else self._missing_end_marker()
        attempt.moment, attempt.outcome = Moment.END, "ok"
        self._underway.complete()
        await self._underway.client.finish(last)

    def _missing_end_marker(self) -> bytes:
        """A stream that finished but lost its tail is whole for the client; Anthropic and Responses have no
        marker."""
        return _END_MARKER if self._kind in ("chat", "completions") else b""


def _finished_choices(facts: EventFacts) -> int:
    """How many choices end with this event; other kinds than chat and completions have one."""
    choices = facts.parsed.get("choices") if facts.parsed else None
    if not isinstance(choices, list):
        return 1
    return sum(bool(choice.get("finish_reason")) for choice in choices if isinstance(choice, dict))
