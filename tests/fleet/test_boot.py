"""Following boot logs."""

from pathlib import Path
from typing import Any

import pytest

from gateway.fleet.boot import BootWatcher
from gateway.fleet.registry import Registry
from gateway.routing.view import EngineState
from gateway.simulator.boot_failure import BootFailureLog

pytestmark = pytest.mark.anyio


@pytest.fixture
def watcher(registry: Registry, tmp_path: Path, clock: Any) -> BootWatcher:
    registry.on_failure("b", "refused")
    return BootWatcher(registry, {"a": tmp_path, "b": tmp_path / "boot.log"}, clock)


async def test_a_failed_start_makes_the_engine_unbootable_with_its_cause(
    registry: Registry, watcher: BootWatcher, tmp_path: Path
) -> None:
    await watcher.look()
    assert registry.snapshots()["b"].state is not EngineState.UNBOOTABLE
    BootFailureLog().write(tmp_path / "boot.log")
    await watcher.look()
    seen = registry.snapshots()["b"]
    assert seen.state is EngineState.UNBOOTABLE
    assert "max_model_len" in (seen.cause or "") or "max-model-len" in (seen.cause or "")


async def test_lines_may_come_in_pieces(registry: Registry, watcher: BootWatcher, tmp_path: Path) -> None:
    BootFailureLog().write(tmp_path / "whole.log")
    whole = (tmp_path / "whole.log").read_bytes()
    for end in range(0, len(whole) + 97, 97):
        with (tmp_path / "boot.log").open("ab") as log:
            log.write(whole[max(0, end - 97) : end])
        await watcher.look()
    assert registry.snapshots()["b"].state is EngineState.UNBOOTABLE


async def test_a_log_written_anew_is_a_new_start(
    registry: Registry, watcher: BootWatcher, tmp_path: Path
) -> None:
    BootFailureLog().write(tmp_path / "boot.log")
    await watcher.look()
    (tmp_path / "boot.log").write_text(
        "INFO 12-01 04:00:00 [core.py:1] Initializing a V1 LLM engine (v0.32.0) with config: x\n"
    )
    await watcher.look()
    assert registry.snapshots()["b"].state is EngineState.BOOTING


async def test_a_start_that_falls_silent_is_no_start_any_more(
    registry: Registry, watcher: BootWatcher, tmp_path: Path, clock: Any
) -> None:
    (tmp_path / "boot.log").write_text(
        "INFO 12-01 04:00:00 [core.py:1] Initializing a V1 LLM engine (v0.32.0) with config: x\n"
    )
    await watcher.look()
    registry.on_failure("b", "refused")
    assert registry.snapshots()["b"].state is EngineState.BOOTING
    clock.now += 1000
    await watcher.look()
    registry.on_failure("b", "refused")
    assert registry.snapshots()["b"].state is EngineState.UNREACHABLE


async def test_an_old_failure_does_not_come_back_after_the_engine_has_served(
    registry: Registry, watcher: BootWatcher, tmp_path: Path, page: Any
) -> None:
    BootFailureLog().write(tmp_path / "boot.log")
    await watcher.look()
    registry.on_page("b", page())
    with (tmp_path / "boot.log").open("a") as log:
        log.write("INFO: a line\n")
    await watcher.look()
    for _ in range(2):
        registry.on_failure("b", "refused")
    assert registry.snapshots()["b"].state is EngineState.UNREACHABLE
