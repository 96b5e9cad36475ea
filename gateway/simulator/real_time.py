"""Runs a `BlockScheduler` against the loop's clock: each step's tokens are handed over when the step would
have ended.

Knows no requests beyond their ids. Runs on loop timers, without a task. When the machine is late, the steps
that are due are computed together and their tokens handed over at once, so that being late costs chunks, not
tokens.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from gateway.simulator.engine import BlockScheduler, FinishReason, Stats, StepResult

# Behind by more than this the engine gives up catching up: the lost time is lost, as on any busy machine.
_LATE_SECONDS = 0.25
_MOST_STEPS_A_TURN = 64


class Progress(NamedTuple):
    """Tokens made since the last call, by request, and the requests that ended with the last of them."""

    emitted: dict[str, int]
    finished: dict[str, FinishReason]


class RealTimeEngine:
    """Steps while there is work. `on_progress` is called once a turn, with the tokens of all steps that ended
    by then.

    `published` is what an engine's metrics would say: it moves when a step ends, and when a request is
    aborted.
    """

    def __init__(self, scheduler: BlockScheduler, on_progress: Callable[[Progress], None]) -> None:
        self.scheduler = scheduler
        self.published: Stats = scheduler.stats()
        self.paused = False
        self._on_progress = on_progress
        self._step: StepResult | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a step is under way."""
        return self._step is not None

    def wake(self) -> None:
        """There may be work: to be called after every add."""
        if self._step is None and not self.paused:
            self._begin(asyncio.get_running_loop().time())
            self._arm()

    def abort(self, request_id: str) -> None:
        """Drop a request; its blocks are free at once."""
        if self.scheduler.abort(request_id) and not self.paused:
            self.published = self.scheduler.stats()

    def pause(self) -> None:
        """Stop in the middle of a step: nothing more is made and nothing published until `resume`."""
        self.paused = True
        self._disarm()

    def resume(self) -> None:
        """Finish the step under way and go on."""
        self.paused = False
        if self._step is None:
            self.wake()
        else:
            self._arm()

    def halt(self) -> None:
        """Stop for good."""
        self.paused = True
        self._disarm()
        self._step = None

    def _begin(self, at: float) -> None:
        step = self.scheduler.step(at) if self.scheduler.has_work else None
        self._step = step if step is not None and step.scheduled_tokens else None

    def _arm(self) -> None:
        self._disarm()
        if self._step is not None:
            self._timer = asyncio.get_running_loop().call_at(self._step.ends_at, self._turn)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _turn(self) -> None:
        now = asyncio.get_running_loop().time()
        progress = Progress({}, {})
        emitted = progress.emitted
        for _ in range(_MOST_STEPS_A_TURN):
            step = self._step
            # The timer may ring a clock tick early, so a step within a millisecond counts as ended.
            if step is None or step.ends_at > now + 0.001:
                break
            for request_id, tokens in step.emitted.items():
                emitted[request_id] = emitted.get(request_id, 0) + tokens
            progress.finished.update(step.finished)
            self.published = self.scheduler.stats()
            self._begin(max(step.ends_at, now - _LATE_SECONDS))
        self._arm()
        self._on_progress(progress)
