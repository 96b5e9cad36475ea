"""A gateway while it runs: what an earlier process left is recovered, background work outlives its faults."""

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from stack import ENVIRON, running_stack, write_config
from streams import quiet

from gateway import running
from gateway.app import build
from gateway.config.load import load
from gateway.ledger.errors import StoreUnavailable
from gateway.ledger.records import OpenRecord
from gateway.routing.budgets import HOUR
from gateway.running import keep_running

pytestmark = pytest.mark.anyio

URLS = ("http://127.0.0.1:1", "http://127.0.0.1:2/v1")
OPEN = OpenRecord(
    "left-open", "2026-12-01T00:00:00.000000+00:00", None, "/v1/chat/completions", "tiny", "tiny", True
)


async def test_what_an_earlier_process_left_open_reads_interrupted(tmp_path: Path) -> None:
    earlier = build(load(write_config(tmp_path, *URLS), ENVIRON))
    earlier.journal.append(OPEN)
    earlier.journal.close()
    earlier.store.close()
    async with running_stack(tmp_path) as stack:
        [row] = stack.rows()
        assert (row["request_id"], row["outcome"]) == ("left-open", "interrupted")
        assert (await stack.gateway.find_request("left-open") or {})["attempts"] == []
        assert await stack.gateway.find_request("none") is None


async def test_a_budget_outlives_a_restart(tmp_path: Path) -> None:
    async with running_stack(tmp_path) as stack:
        answers = [await stack.chat(headers={"x-spillgate-overflow": "only"}) for _ in range(2)]
        await quiet(stack)
        spent = stack.gateway.parts.view.budgets.spent("serverless", HOUR, stack.gateway.parts.wall())
        assert spent == round(sum(float(a.headers["x-spillgate-cost"]) for a in answers) * 1e12) > 0
    async with running_stack(tmp_path) as stack:
        assert stack.gateway.parts.view.budgets.spent("serverless", HOUR, stack.gateway.parts.wall()) == spent


async def test_after_a_stop_everything_is_in_the_store_and_nothing_is_open(tmp_path: Path) -> None:
    async with running_stack(tmp_path) as stack:
        await stack.ready()
        for _ in range(3):
            await stack.chat()
        gateway = stack.gateway
    assert gateway.background.writer.pending == 0
    assert list(gateway.journal.folder.glob("segment-*")) == []
    assert all(target.open_connections == 0 for target in gateway.parts.targets.values())  # type: ignore[attr-defined]
    again = build(load(tmp_path / "spillgate.yaml", ENVIRON))
    again.prepare()
    with again.store.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM requests").scalar() == 3
        seconds = connection.exec_driver_sql("SELECT sum(seconds), sum(bill) FROM engine_seconds").one()
    assert seconds[0] > 0
    assert seconds[1] == pytest.approx(seconds[0] * 2.8 / 3600 * 1e12, rel=0.01)
    again.journal.close()
    again.store.close()


async def test_background_work_that_fails_is_started_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(running, "_RESTART_AFTER", 0.0)
    starts: list[int] = []

    async def work() -> None:
        starts.append(1)
        if len(starts) < 3:
            raise RuntimeError("a fault in the scraper")
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(keep_running, "scraper", work)
        with anyio.fail_after(2):
            while len(starts) < 3:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert [r.getMessage() for r in caplog.records].count(
        "background work 'scraper' failed; starting it again"
    ) == 2


async def test_a_database_that_starts_late_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = build(load(write_config(tmp_path, *URLS), ENVIRON))
    tries: list[int] = []

    def migrate() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise StoreUnavailable("not yet")

    monkeypatch.setattr(gateway.store, "migrate", migrate)
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)
    gateway.prepare()
    assert len(tries) == 3
    tries.clear()

    def never() -> None:
        tries.append(1)
        raise StoreUnavailable("never")

    monkeypatch.setattr(gateway.store, "migrate", never)
    with pytest.raises(StoreUnavailable):
        gateway.prepare()
    assert len(tries) == 5
    gateway.journal.close()
    gateway.store.close()
