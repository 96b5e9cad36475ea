"""A stream is one where it was asked for and the path has one."""

import pytest
from bench import Bench


@pytest.mark.parametrize(
    ("path", "asked", "streams"),
    [
        ("/v1/chat/completions", True, True),
        ("/v1/chat/completions", False, False),
        ("/v1/chat/completions", None, False),
        ("/v1/embeddings", True, False),
    ],
)
def test_who_gets_a_stream(bench: Bench, path: str, asked: bool | None, streams: bool) -> None:
    assert bench.admit(path, stream=asked, input="x").streams is streams
