"""The demo's stage: everything starts, one engine dies and is back, the third never boots."""

from pathlib import Path

import anyio
import pytest

from gateway.demo.config import BIG_MODEL, MODEL
from gateway.demo.scene import capacity, on_stage
from gateway.demo.sdk import openai_client
from gateway.routing.view import EngineState

pytestmark = pytest.mark.anyio


async def test_the_scene_plays_and_the_table_shows_it(tmp_path: Path) -> None:
    from rich.console import Console

    from gateway.demo.live import live_view
    from gateway.demo.traffic import Sent

    async with on_stage(tmp_path, 5.0, 0) as scene, openai_client(scene.url) as ask:
        view = scene.gateway.parts.view
        with anyio.fail_after(10):
            while view.snapshots["l4-a"].state is not EngineState.READY or (
                view.snapshots["l4-c"].state is not EngineState.UNBOOTABLE
            ):
                await anyio.sleep(0.02)
        await ask(MODEL, "hello", 4)
        await ask(BIG_MODEL, "hello", 4)
        routes = {(route, outcome) for _, route, _, outcome in scene.gateway.parts.counters.requests}
        assert routes == {("local", "ok"), ("overflow", "ok")}
        console = Console(width=120, record=True, file=(tmp_path / "out").open("w"))
        console.print(live_view(scene, Sent(total=2), 1.0, 5.0))
        console.file.close()
        shown = console.export_text()
        assert "unbootable" in shown
        assert "sent 2" in shown
        assert "engine_unbootable" in shown
        await scene.engines[1].kill()
        with anyio.fail_after(10):
            while view.snapshots["l4-b"].state is not EngineState.UNREACHABLE:
                await anyio.sleep(0.02)
        await scene.engines[1].restart()
    assert (tmp_path / "spillgate.yaml").exists()


async def test_an_engine_dies_at_two_thirds_and_is_back_before_the_end(tmp_path: Path) -> None:
    from gateway.simulator.fake_vllm import FakeVLLM

    events: list[str] = []

    class Watched(FakeVLLM):
        async def kill(self) -> None:
            events.append("kill")

        async def restart(self) -> None:
            events.append("restart")

    async with on_stage(tmp_path, 1.0, 0) as scene:
        from dataclasses import replace

        await replace(scene, engines=(scene.engines[0], Watched())).direct(0.01)
    assert events == ["kill", "restart"]


def test_capacity_is_a_figure_of_the_simulated_engine() -> None:
    assert 1000 < capacity() < 20_000
