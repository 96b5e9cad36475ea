"""Bodies are read within bounds; what is too large is refused before it is read."""

from typing import Any

import pytest

from gateway.api import limits
from gateway.api.errors import Rejected
from gateway.api.limits import ClientLeft, header_map, read_body

pytestmark = pytest.mark.anyio


class Body:
    """A request body in pieces; counts what was asked for."""

    def __init__(self, *pieces: bytes | None) -> None:
        self.pieces = list(pieces)
        self.read = 0

    async def receive(self) -> dict[str, Any]:
        piece = self.pieces.pop(0)
        if piece is None:
            return {"type": "http.disconnect"}
        self.read += len(piece)
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces)}


@pytest.mark.parametrize("pieces", [(b"",), (b"abc",), (b"a", b"", b"bc")])
async def test_a_body_is_joined_whole(pieces: tuple[bytes, ...]) -> None:
    assert await read_body(Body(*pieces).receive, {}, 10) == b"".join(pieces)


async def test_a_length_above_the_limit_is_refused_unread() -> None:
    body = Body(b"x" * 11)
    with pytest.raises(Rejected) as refused:
        await read_body(body.receive, {b"content-length": b"11"}, 10)
    assert (refused.value.answer.status, body.read) == (413, 0)


async def test_a_body_without_a_length_is_refused_where_it_passes_the_limit() -> None:
    body = Body(*[b"x" * 6] * 100)
    with pytest.raises(Rejected) as refused:
        await read_body(body.receive, {}, 10)
    assert (refused.value.answer.status, body.read) == (413, 12)


@pytest.mark.parametrize("encoding", [b"gzip", b"br", b"GZIP", b"identity, gzip"])
async def test_compressed_bodies_are_refused(encoding: bytes) -> None:
    with pytest.raises(Rejected) as refused:
        await read_body(Body(b"x").receive, {b"content-encoding": encoding}, 10)
    assert refused.value.answer.status == 415
    assert await read_body(Body(b"x").receive, {b"content-encoding": b"Identity"}, 10) == b"x"


async def test_a_body_that_does_not_come_is_a_408(monkeypatch: pytest.MonkeyPatch) -> None:
    import anyio

    async def never() -> dict[str, Any]:
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(limits, "_BODY_SECONDS", 0.02)
    with pytest.raises(Rejected) as refused:
        await read_body(never, {}, 10)
    assert refused.value.answer.status == 408


async def test_a_client_that_leaves_inside_its_body_is_told_nothing() -> None:
    with pytest.raises(ClientLeft):
        await read_body(Body(b"x", None).receive, {}, 10)


def test_of_repeated_headers_the_first_counts() -> None:
    assert header_map([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]) == {b"a": b"1", b"b": b"2"}
