"""Streams as real vLLM wrote them."""

from collections.abc import Callable
from pathlib import Path

import pytest

_STREAMS = Path(__file__).parent.parent / "captures" / "streams"


@pytest.fixture
def captured_stream() -> Callable[[str], bytes]:
    """The body of a captured answer without its transfer coding: `captured_stream("chat-0.32.0")`."""
    return lambda name: (_STREAMS / f"{name}.sse").read_bytes()
