"""The scheduler against the loop's clock: nothing early, nothing lost, frozen while paused."""

import asyncio

import pytest

from gateway.simulator.engine import BlockScheduler, EngineShape, StepTime
from gateway.simulator.real_time import Progress, RealTimeEngine

SHAPE = EngineShape(num_blocks=64, block_size=16)


class Watched:
    """An engine whose progress is kept with the time it came."""

    def __init__(self, step_seconds: float) -> None:
        self.scheduler = BlockScheduler(SHAPE, StepTime(step_seconds, 0.0))
        self.engine = RealTimeEngine(self.scheduler, self.on_progress)
        self.came: list[tuple[float, Progress]] = []
        self.began = asyncio.Event()
        self.idle = asyncio.Event()

    def on_progress(self, progress: Progress) -> None:
        self.came.append((asyncio.get_running_loop().time(), progress))
        self.began.set()
        if not self.engine.is_busy:
            self.idle.set()

    async def until_idle(self) -> None:
        async with asyncio.timeout(10):
            await self.idle.wait()

    def tokens(self, request_id: str) -> int:
        return sum(progress.emitted.get(request_id, 0) for _, progress in self.came)


@pytest.mark.anyio
async def test_tokens_come_when_their_step_ends_and_all_of_them_come() -> None:
    watched = Watched(0.005)
    began = asyncio.get_running_loop().time()
    watched.scheduler.add("a", 4, 20)
    watched.engine.wake()
    await watched.until_idle()
    assert watched.came[0][0] - began >= 0.004
    assert watched.came[-1][0] - began >= 20 * 0.005 - 0.002
    assert watched.tokens("a") == 20
    assert watched.came[-1][1].finished == {"a": "length"}


@pytest.mark.anyio
async def test_a_late_loop_gets_the_tokens_that_are_due_at_once() -> None:
    watched = Watched(0.001)
    watched.scheduler.add("a", 4, 100)
    watched.engine.wake()
    end = asyncio.get_running_loop().time() + 0.05
    while asyncio.get_running_loop().time() < end:
        pass
    await asyncio.sleep(0.002)
    # 50 steps were due; a turn that is this late does them in one go.
    assert watched.came[0][1].emitted["a"] >= 40
    await watched.until_idle()
    assert watched.tokens("a") == 100


@pytest.mark.anyio
async def test_published_gauges_move_only_when_a_step_ends() -> None:
    watched = Watched(0.02)
    watched.scheduler.add("a", 40, 2)
    watched.engine.wake()
    assert watched.scheduler.stats().running == 1
    assert watched.engine.published.running == 0
    await watched.until_idle()
    assert watched.engine.published.generation_tokens == 2


@pytest.mark.anyio
async def test_a_paused_engine_makes_nothing_and_publishes_nothing_until_resumed() -> None:
    watched = Watched(0.002)
    watched.scheduler.add("a", 4, 50)
    watched.scheduler.add("b", 4, 50)
    watched.engine.wake()
    await watched.began.wait()
    watched.engine.pause()
    seen, published = len(watched.came), watched.engine.published
    watched.scheduler.add("c", 4, 1)
    watched.engine.wake()
    watched.engine.abort("b")
    await asyncio.sleep(0.03)
    assert (len(watched.came), watched.engine.published) == (seen, published)
    watched.engine.resume()
    await watched.until_idle()
    assert (watched.tokens("a"), watched.tokens("c")) == (50, 1)


@pytest.mark.anyio
async def test_an_abort_shows_at_once_although_no_step_follows() -> None:
    watched = Watched(0.002)
    watched.scheduler.add("a", 40, 50)
    watched.engine.wake()
    await watched.began.wait()
    watched.engine.abort("a")
    assert watched.engine.published.used_blocks == 0


@pytest.mark.anyio
async def test_a_halted_engine_stays_halted() -> None:
    watched = Watched(0.001)
    watched.scheduler.add("a", 4, 50)
    watched.engine.wake()
    watched.engine.halt()
    watched.engine.wake()
    await asyncio.sleep(0.01)
    assert watched.came == []
