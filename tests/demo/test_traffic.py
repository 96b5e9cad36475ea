"""The demo's traffic: the same each time, past capacity in the middle, every answer waited for."""

import asyncio
from collections import Counter

import anyio
import pytest

from gateway.demo.config import BIG_MODEL, MODEL
from gateway.demo.traffic import Sent, arrivals_of, send_all
from gateway.workload.arrivals import Arrival

pytestmark = pytest.mark.anyio


def test_arrivals_are_the_same_each_time_in_order_and_within_the_time() -> None:
    arrivals = arrivals_of(20.0)
    assert arrivals == arrivals_of(20.0)
    times = [a.at for a in arrivals]
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] <= 20.0
    assert set(Counter(a.model for a in arrivals)) == {MODEL, BIG_MODEL}


def test_traffic_grows_to_a_plateau_and_falls_again() -> None:
    seconds = 60.0
    small = [a.at for a in arrivals_of(seconds) if a.model == MODEL]
    counts = Counter(int(at // (seconds / 6)) for at in small)
    assert counts[0] < counts[3] > counts[5]


async def test_everything_is_sent_and_waited_for_and_failures_are_kept() -> None:
    asked: list[tuple[str, int]] = []

    async def ask(model: str, text: str, max_tokens: int) -> None:
        await asyncio.sleep(0.001)
        asked.append((model, max_tokens))
        if len(asked) % 2:
            raise RuntimeError("no luck " + "x" * 500)

    sent = Sent()
    arrivals = [Arrival(0.0, 10, 7, 5, model="m") for _ in range(20)]
    with anyio.fail_after(5):
        await send_all(arrivals, ask, sent, asyncio.get_running_loop().time)
    assert (sent.total, sent.open, sent.failed, len(asked)) == (20, 0, 10, 20)
    assert len(sent.errors) == 5
    assert all(error.startswith("RuntimeError: no luck") and len(error) <= 200 for error in sent.errors)


async def test_each_is_sent_at_its_time() -> None:
    now = [0.0]
    at: list[float] = []

    async def ask(model: str, text: str, max_tokens: int) -> None:
        at.append(now[0])

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    await send_all([Arrival(0.0, 1, 1, 1), Arrival(0.5, 1, 1, 1)], ask, Sent(), clock)
    assert at == sorted(at)
