"""Captures of real engines: metrics pages, error bodies, boot logs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CAPTURES = Path(__file__).parent.parent / "captures" / "vllm"


@pytest.fixture
def page() -> Callable[[str], bytes]:
    """The metrics page of that name."""
    return lambda name: (CAPTURES / "metrics" / f"{name}.txt").read_bytes()


@pytest.fixture
def boot_log() -> Callable[[str], list[str]]:
    """The lines of the boot log of that name."""
    return lambda name: (CAPTURES / "boot" / f"{name}.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def error_captures() -> dict[tuple[str, str], tuple[int, bytes]]:
    """Status and body by version and name."""
    lines = (CAPTURES / "errors.jsonl").read_text(encoding="utf-8").splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return {(row["version"], row["name"]): (row["status"], row["body"].encode()) for row in rows}
