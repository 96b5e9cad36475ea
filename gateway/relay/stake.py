"""What an attempt holds while it runs (blocks on an engine, money at an endpoint) and what its end teaches.

Taken and given back in one place, synchronously, so that no way out of an attempt leaks.
"""

from gateway.relay.admitted import Admitted
from gateway.relay.attempt_log import AttemptLog
from gateway.relay.parts import RelayParts
from gateway.routing.decision import Local, Overflow
from gateway.routing.reservations import Reservation
from gateway.routing.value import value_of


class Stake:
    """The reservation or promise of one attempt."""

    def __init__(
        self, parts: RelayParts, admitted: Admitted, attempt: AttemptLog, expected_overflow: int | None
    ) -> None:
        """`expected_overflow`: what the request would cost at an endpoint (pico-USD), None where unknown."""
        self._parts, self._admitted, self._attempt = parts, admitted, attempt
        self._expected_overflow = expected_overflow
        self._reservation: Reservation | None = None
        self._promise = 0
        self._tokens_ahead = 0
        self._tokens_per_event = parts.view.lengths.tokens_per_event(admitted.facts.model)

    def take(self) -> None:
        """Reserve blocks, or promise money, and tell breaker, affinity and gauges."""
        view, attempt = self._parts.view, self._attempt
        view.breakers.dispatched(attempt.target, self._parts.clock())
        self._parts.counters.inflight[attempt.target] += 1
        match attempt.route:
            case Local() as local:
                self._reserve(local)
            case Overflow(endpoint=endpoint, promise=promise):
                self._promise = promise or 0
                view.budgets.promise(endpoint, self._promise)

    def _reserve(self, local: Local) -> None:
        view, need, facts = self._parts.view, local.need, self._admitted.facts
        book = view.books[local.engine]
        self._tokens_ahead = book.prefill_backlog
        self._reservation = book.reserve(
            prompt_tokens=need.prompt_tokens if facts.generates else 0,
            expected_output=need.expected_output,
            max_output=facts.max_tokens,
            choices=need.choices,
            block_size=need.block_size,
            streams=self._admitted.streams,
            now=self._parts.clock(),
        )
        view.affinity.served(facts.affinity_key, local.engine)
        value = value_of(self._expected_overflow, need.blocks, need.expected_output)
        if value is not None:
            view.values.add(value)

    def progress(self, events: int) -> None:
        """`events` content events passed: the request holds more now, and may outgrow its promise."""
        reservation = self._reservation
        if reservation is None:
            return
        reservation.streamed += events * self._tokens_per_event
        if not reservation.has_first_token:
            self._parts.view.books[self._attempt.target].first_token(reservation)
        if reservation.streamed > reservation.expected_output * reservation.choices:
            self._outgrow(reservation)

    def _outgrow(self, reservation: Reservation) -> None:
        view, facts = self._parts.view, self._admitted.facts
        streamed = int(reservation.streamed / reservation.choices)
        longer = view.lengths.expected_output(
            facts.model, max_tokens=facts.max_tokens, quantile=0.5, streamed=streamed
        )
        view.books[self._attempt.target].outgrow(reservation, max(longer, streamed + reservation.block_size))

    def give_back(self, spent: int | None) -> None:
        """End it, whatever became of the attempt. `spent`: pico-USD at an endpoint, None where unknown."""
        view, attempt = self._parts.view, self._attempt
        self._parts.counters.inflight[attempt.target] -= 1
        if self._reservation is not None:
            view.books[attempt.target].release(self._reservation)
        if isinstance(attempt.route, Overflow):
            view.budgets.settle(attempt.target, self._promise, spent, self._parts.wall())

    def learn(self) -> None:
        """A whole answer teaches lengths, rates and tokens per event."""
        attempt, admitted, view = self._attempt, self._admitted, self._parts.view
        usage, facts = attempt.usage, admitted.facts
        if usage is None or usage.source != "reported" or not facts.generates:
            return
        if usage.prompt:
            view.lengths.learn_prompt(facts.model, admitted.peek.text_bytes, usage.prompt)
        if usage.completion:
            view.lengths.learn_output(facts.model, usage.completion // facts.choices)
            view.lengths.learn_events(facts.model, attempt.content_events, usage.completion)
        if isinstance(attempt.route, Local):
            self._learn_rates(attempt.route.engine, usage.prompt or 0, usage.completion or 0)

    def _learn_rates(self, engine: str, prompt: int, completion: int) -> None:
        attempt, view = self._attempt, self._parts.view
        if attempt.ended_at is None:
            return
        first = attempt.first_event_at
        per_choice = completion // self._admitted.facts.choices
        if first is not None and self._admitted.streams:
            view.rates[engine].learn(
                tokens_ahead=self._tokens_ahead, prompt_tokens=prompt, seconds=first - attempt.started_at
            )
        view.books[engine].learn_decode_rate(per_choice, attempt.ended_at - (first or attempt.started_at))
