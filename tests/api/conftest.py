"""A whole gateway between fakes, one for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from stack import Stack, running_stack


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running_stack(tmp_path) as stack:
        await stack.ready()
        yield stack
