"""Fixtures for every room."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def restored_logging() -> Iterator[None]:
    """Leaves the process's logging as it was, whatever a test sets up."""
    root, access = logging.getLogger(), logging.getLogger("uvicorn.access")
    ours = logging.getLogger("gateway")
    before = (root.level, list(root.handlers), access.disabled, ours.level)
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    access.disabled = before[2]
    ours.setLevel(before[3])
