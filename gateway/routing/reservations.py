"""Blocks promised to requests in flight on one engine, and the prefill work still ahead of it.

A scrape tells what was; this book knows what was promised. It is mutable and pure: every change is one
synchronous method, so a shell may call it between two awaits without a lock. A reservation lives exactly as
long as its request.

Two figures per request: what it holds now (prompt, plus what has streamed) and what it is expected to hold at
its end. `promised_blocks` sums the second and is kept incrementally: a decision never walks the requests in
flight.
"""

from dataclasses import dataclass
from math import ceil


def blocks_for(tokens: float, block_size: int) -> int:
    """Whole KV blocks that `tokens` tokens occupy (vLLM 0.32 v1/core/kv_cache_manager.py allocates whole
    blocks)."""
    return ceil(tokens / block_size)


@dataclass(slots=True, eq=False)
class Reservation:
    """One request's promise. Output counts are tokens per choice; `streamed` is over all choices."""

    prompt_tokens: int
    expected_output: int
    max_output: int | None
    choices: int
    block_size: int
    reserved_at: float
    streams: bool
    streamed: float = 0.0
    has_first_token: bool = False
    promised: int = 0

    def peak_blocks(self) -> int:
        """Blocks at the expected end. Choices share prompt blocks only while those are cached: counted for
        each."""
        return self.choices * blocks_for(self.prompt_tokens + self.expected_output, self.block_size)

    def held_blocks(self, now: float, decode_rate: float) -> int:
        """Blocks held now. A request that does not stream shows no progress: it is assumed to decode at the
        learned rate."""
        if self.streams:
            output = self.streamed / self.choices
        else:
            output = min(self.expected_output, (now - self.reserved_at) * decode_rate)
        return self.choices * blocks_for(self.prompt_tokens + output, self.block_size)


# Tokens per second of one request before any has been measured: slow enough that foreign traffic is not
# hidden.
_DECODE_RATE_UNKNOWN = 20.0
_RATE_WEIGHT = 0.1


class ReservationBook:
    """All reservations on one engine."""

    def __init__(self) -> None:
        self._open: set[Reservation] = set()
        self.promised_blocks = 0
        self.prefill_backlog = 0
        self.sent = 0
        self.finished = 0
        self.decode_rate = _DECODE_RATE_UNKNOWN

    def __len__(self) -> int:
        return len(self._open)

    def reserve(
        self,
        *,
        prompt_tokens: int,
        expected_output: int,
        max_output: int | None,
        choices: int,
        block_size: int,
        streams: bool,
        now: float,
    ) -> Reservation:
        """Promise the blocks of one request; the caller gives the reservation back with `release`."""
        reservation = Reservation(
            prompt_tokens, expected_output, max_output, choices, block_size, now, streams
        )
        reservation.promised = reservation.peak_blocks()
        self.promised_blocks += reservation.promised
        self.prefill_backlog += prompt_tokens
        self.sent += 1
        self._open.add(reservation)
        return reservation

    def release(self, reservation: Reservation) -> None:
        """End a reservation, whatever became of its request. A second call does nothing."""
        if reservation not in self._open:
            return
        self._open.remove(reservation)
        self.first_token(reservation)
        self.promised_blocks -= reservation.promised
        self.finished += 1

    def first_token(self, reservation: Reservation) -> None:
        """Its prefill is done: the work ahead of the next request is smaller by its prompt."""
        if not reservation.has_first_token:
            reservation.has_first_token = True
            self.prefill_backlog -= reservation.prompt_tokens

    def outgrow(self, reservation: Reservation, expected_output: int) -> None:
        """A request streams past its expectation: promise it more, never more than its own max_tokens."""
        if reservation.max_output is not None:
            expected_output = min(expected_output, reservation.max_output)
        reservation.expected_output = max(reservation.expected_output, expected_output)
        grown = reservation.peak_blocks()
        self.promised_blocks += grown - reservation.promised
        reservation.promised = grown

    def held_blocks(self, now: float) -> int:
        """Blocks that our own requests hold now: walks them, so for scrapes (one a second), not for
        decisions."""
        return sum(r.held_blocks(now, self.decode_rate) for r in self._open)

    def learn_decode_rate(self, tokens: int, seconds: float) -> None:
        """Fold one finished request's own tokens per second into the running mean."""
        if tokens > 0 and seconds > 0:
            self.decode_rate += _RATE_WEIGHT * (tokens / seconds - self.decode_rate)
