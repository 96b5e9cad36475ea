"""Admission rules: what an engine must show before it is given a request.

Each rule is one class: its fields are its YAML keys, `verdict` is the rule. A verdict is None (admitted) or
the reason code; the numbers that it looked at go into the decision beside it.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from annotated_types import Ge, Gt, Le

from gateway.routing.facts import RequestFacts
from gateway.routing.need import Need
from gateway.routing.reasons import Reason
from gateway.routing.reservations import ReservationBook
from gateway.routing.units import Seconds
from gateway.routing.view import EngineSnapshot, EngineState
from gateway.routing.wait import PrefillRate

# While an engine's capacity is unknown (no vllm series yet, or --disable-log-stats) this many of our own
# requests may be on it: enough to serve, too few to make a small pool preempt.
_CAUTIOUS_IN_FLIGHT = 4


class EngineView(NamedTuple):
    """What one rule may look at, for one engine and one request. `share` is the ramp after a return, 0..1."""

    snapshot: EngineSnapshot
    book: ReservationBook
    rate: PrefillRate
    need: Need
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class HeadroomRule:
    """Its blocks must fit beside what is promised and what others hold.

    `reserve: expected` promises the learned output length at `quantile`; `max_tokens` promises the caller's
    limit. `limit` is the share of the usable blocks that may be promised in all.
    """

    reserve: Literal["expected", "max_tokens"] = "expected"
    quantile: Annotated[float, Gt(0), Le(1)] = 0.5
    limit: Annotated[float, Gt(0), Le(1)] = 0.95

    def verdict(self, engine: EngineView) -> Reason | None:
        """KV_FULL where promised + foreign + needed blocks pass limit x usable; SIGNAL_STALE where capacity
        is unknown."""
        capacity = capacity_blocks(engine, self.limit)
        if capacity is None:
            return None if len(engine.book) < _CAUTIOUS_IN_FLIGHT else Reason.SIGNAL_STALE
        return Reason.KV_FULL if committed_blocks(engine) + engine.need.blocks > capacity else None


@dataclass(frozen=True, slots=True)
class QueueRule:
    """No more than `max_waiting` requests may wait in the engine's own queue."""

    max_waiting: Annotated[int, Ge(0)] = 4

    def verdict(self, engine: EngineView) -> Reason | None:
        """QUEUE_LONG above the limit; an unknown queue does not refuse (the signal rule judges age)."""
        waiting = engine.snapshot.waiting
        return Reason.QUEUE_LONG if waiting is not None and waiting > self.max_waiting else None


@dataclass(frozen=True, slots=True)
class TtftRule:
    """Its first token must be predicted within `slo`."""

    slo: Annotated[Seconds, Gt(0)] = 2.0

    def verdict(self, engine: EngineView) -> Reason | None:
        """TTFT_SLO where the predicted wait passes the objective; no prediction yet means no objection."""
        predicted = predicted_ttft(engine)
        return Reason.TTFT_SLO if predicted is not None and predicted > self.slo else None


@dataclass(frozen=True, slots=True)
class PreemptionRule:
    """More than `max` preemptions in `window` hold new work back for `hold` after the last one."""

    max: Annotated[int, Ge(0)] = 0
    window: Annotated[Seconds, Gt(0)] = 30.0
    hold: Seconds = 15.0

    def verdict(self, engine: EngineView, now: float) -> Reason | None:
        """PREEMPTING while the engine is held back."""
        seen = engine.snapshot.preemptions
        if not seen or now - seen[-1][0] > self.hold:
            return None
        recent = sum(count for when, count in seen if now - when <= self.window)
        return Reason.PREEMPTING if recent > self.max else None


@dataclass(frozen=True, slots=True)
class SignalRule:
    """Signals older than `stale_after` are unknown, never free.

    `own_reservations` then admits by what the gateway itself has promised, `overflow` admits nothing, `local`
    everything.
    """

    stale_after: Annotated[Seconds, Gt(0)] = 3.0
    when_stale: Literal["own_reservations", "overflow", "local"] = "own_reservations"

    def is_stale(self, snapshot: EngineSnapshot, now: float) -> bool:
        """Has the last good scrape aged past the limit, or was there none?"""
        return snapshot.scraped_at is None or now - snapshot.scraped_at > self.stale_after


_DOWN: dict[EngineState, Reason] = {
    EngineState.UNREACHABLE: Reason.ENGINE_UNREACHABLE,
    EngineState.HUNG: Reason.ENGINE_UNREACHABLE,
    EngineState.ASLEEP: Reason.ENGINE_UNREACHABLE,
    EngineState.BOOTING: Reason.ENGINE_BOOTING,
    EngineState.UNBOOTABLE: Reason.ENGINE_UNBOOTABLE,
    EngineState.DRAINING: Reason.DRAINING,
}


def state_verdict(state: EngineState) -> Reason | None:
    """Why an engine in this state takes nothing; None for those that can serve (unknown ones are asked)."""
    return _DOWN.get(state)


def context_verdict(facts: RequestFacts, snapshot: EngineSnapshot) -> Reason | None:
    """CONTEXT_TOO_LONG where the prompt alone passes the engine's window.

    vLLM 0.32+ clamps max_tokens to the window (entrypoints/openai), so only the prompt decides; prompt tokens
    are an estimate here, so a prompt is sent elsewhere only when it is over by a clear margin.
    """
    limit = snapshot.max_model_len
    return Reason.CONTEXT_TOO_LONG if limit is not None and facts.prompt_tokens_each > limit * 1.1 else None


def foreign_blocks(snapshot: EngineSnapshot) -> int:
    """Blocks held by traffic that did not come through us, as of the last scrape."""
    return max(0, (snapshot.used_blocks or 0) - snapshot.own_blocks)


def committed_blocks(engine: EngineView) -> int:
    """Blocks promised to our own requests in flight, plus what others hold."""
    return engine.book.promised_blocks + foreign_blocks(engine.snapshot)


def capacity_blocks(engine: EngineView, limit: float) -> float | None:
    """Blocks that may be promised in all; None while the engine's pool is unknown."""
    usable = engine.snapshot.usable_blocks
    return None if usable is None else usable * limit * engine.share


def predicted_ttft(engine: EngineView) -> float | None:
    """Seconds to the first token of this request on this engine; None while unknown."""
    foreign = max(0, (engine.snapshot.waiting or 0) - len(engine.book))
    return engine.rate.predicted_ttft(
        backlog=engine.book.prefill_backlog, foreign_waiting=foreign, prompt_tokens=engine.need.prompt_tokens
    )
