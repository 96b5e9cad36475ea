"""How a body is waited for: silence, slow readers, limits, leaving early."""

import asyncio
import os
import socket
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from gateway.upstreams.errors import Cut, Stalled, TooLarge
from gateway.upstreams.pool import Pool
from gateway.upstreams.response import MAX_UNREAD, Response
from tests.scripted import (
    LAST_CHUNK,
    Peer,
    ScriptedUpstream,
    chunk,
    ok,
    replies,
    replies_then_hangs,
    stream_head,
)

pytestmark = pytest.mark.anyio

MakePool = Callable[..., Pool]
Post = Callable[..., Any]

HEAD = b"HTTP/1.1 200 OK\r\n"


async def body_of(response: Response) -> bytes:
    async with aclosing(response.chunks()) as chunks:
        return b"".join([chunk async for chunk in chunks])


async def test_silence_inside_a_body_is_a_stall(make_pool: MakePool, post: Post) -> None:
    """U27, U35."""
    async with ScriptedUpstream(replies_then_hangs(stream_head() + chunk(b"ab"))) as upstream:
        response, _ = await post(make_pool(upstream.url), between_reads=0.1)
        chunks = response.chunks()
        assert await anext(chunks) == b"ab"
        with pytest.raises(Stalled):
            await anext(chunks)
        await upstream.wait_until_left()


async def test_a_trickle_is_no_stall(make_pool: MakePool, post: Post) -> None:
    """U36: the limit is on each wait, not on the whole."""

    async def trickles(peer: Peer) -> None:
        await peer.request()
        peer.send(stream_head())
        for _ in range(8):
            await peer.pause(0.05)
            peer.send(chunk(b"x"))
        peer.send(LAST_CHUNK)

    async with ScriptedUpstream(trickles) as upstream:
        response, _ = await post(make_pool(upstream.url), between_reads=0.2)
        assert await body_of(response) == b"x" * 8


async def test_a_blocked_loop_is_not_taken_for_a_silent_peer(make_pool: MakePool, post: Post) -> None:
    """G09: the bytes were there in time; it was we who did not look.

    Blocked inside a callback of the poll: libuv then runs its timers before it looks at the sockets again.
    """
    loop = asyncio.get_running_loop()
    bell, ear = socket.socketpair()

    def block_while_the_rest_arrives(peer: Peer) -> None:
        loop.remove_reader(ear)
        with socket.socket(fileno=os.dup(peer.transport.get_extra_info("socket").fileno())) as held:
            held.sendall(chunk(b"x") + LAST_CHUNK)
        time.sleep(0.4)

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(stream_head())
        await peer.pause(0.1)
        loop.add_reader(ear, block_while_the_rest_arrives, peer)
        bell.send(b"!")
        await peer.gone()

    with bell, ear:
        async with ScriptedUpstream(script) as upstream:
            response, _ = await post(make_pool(upstream.url), between_reads=0.2)
            assert await body_of(response) == b"x"


async def test_closing_before_the_end_reaches_the_upstream_at_once(make_pool: MakePool, post: Post) -> None:
    async with ScriptedUpstream(replies_then_hangs(stream_head() + chunk(b"ab"))) as upstream:
        pool = make_pool(upstream.url)
        response, _ = await post(pool)
        async with aclosing(response.chunks()) as chunks:
            assert await anext(chunks) == b"ab"
        closed_at = asyncio.get_running_loop().time()
        response.close()
        response.close()
        assert pool.open_connections == 0
        peer = await upstream.wait_until_left()
        assert peer.left_at is not None
        assert peer.left_at - closed_at < 0.25


async def test_a_reader_that_waits_is_woken_by_close(make_pool: MakePool, post: Post) -> None:
    async with ScriptedUpstream(replies_then_hangs(stream_head())) as upstream:
        response, _ = await post(make_pool(upstream.url))
        asyncio.get_running_loop().call_later(0.02, response.close)
        with pytest.raises(Cut):
            await body_of(response)


async def test_close_after_the_end_keeps_the_connection(make_pool: MakePool, post: Post) -> None:
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        pool = make_pool(upstream.url)
        for _ in range(3):
            response, _ = await post(pool)
            await response.read(100)
            response.close()
        assert len(upstream.peers) == 1


async def test_an_unread_body_that_has_ended_does_not_hold_the_connection(
    make_pool: MakePool, post: Post
) -> None:
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        pool = make_pool(upstream.url)
        first, _ = await post(pool)
        second, _ = await post(pool)
        assert len(upstream.peers) == 1
        assert await second.read(10) == await first.read(10) == b"{}"


async def test_a_reader_that_pauses_holds_the_upstream_back(make_pool: MakePool, post: Post) -> None:
    """F40, U30: memory is bounded by the unread limit and the kernel's buffers, not by the body."""
    piece, times = b"x" * 65536, 400

    async def floods(peer: Peer) -> None:
        await peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(piece) * times))
        await peer.flood(piece, times)

    async with ScriptedUpstream(floods) as upstream:
        response, _ = await post(make_pool(upstream.url))
        await asyncio.sleep(0.2)
        assert response._unread <= MAX_UNREAD + 256 * 1024
        # All of it still comes, and a wait that was no silence is not taken for one.
        assert len(await response.read(len(piece) * times)) == len(piece) * times


async def test_a_body_above_the_limit_is_not_read_to_its_end(make_pool: MakePool, post: Post) -> None:
    """U30, U31."""

    async def floods(peer: Peer) -> None:
        await peer.request()
        peer.send(b"HTTP/1.1 400 B\r\n\r\n")
        await peer.flood(b"x" * 65536, 16_000)

    async with ScriptedUpstream(floods) as upstream:
        pool = make_pool(upstream.url)
        response, _ = await post(pool)
        with pytest.raises(TooLarge):
            await response.read(64 * 1024)
        assert pool.open_connections == 0
        await upstream.wait_until_left()


async def test_a_declared_length_above_the_limit_is_refused_unread(make_pool: MakePool, post: Post) -> None:
    async with ScriptedUpstream(replies_then_hangs(HEAD + b"content-length: 1000000000\r\n\r\n")) as upstream:
        response, _ = await post(make_pool(upstream.url))
        with pytest.raises(TooLarge):
            await response.read(1000)
        await upstream.wait_until_left()


async def test_a_stream_above_the_body_limit_is_cut_off(make_pool: MakePool, post: Post) -> None:
    async with ScriptedUpstream(replies_then_hangs(stream_head(), *[chunk(b"x" * 1000)] * 20)) as upstream:
        response, _ = await post(make_pool(upstream.url), max_body=10_000)
        with pytest.raises(TooLarge):
            await body_of(response)


async def test_what_comes_together_is_read_together(make_pool: MakePool, post: Post) -> None:
    async with ScriptedUpstream(
        replies_then_hangs(stream_head() + chunk(b"a") + chunk(b"b") + LAST_CHUNK)
    ) as upstream:
        response, _ = await post(make_pool(upstream.url))
        assert [piece async for piece in response.chunks()] == [b"ab"]


DONE = chunk(b"data: [DONE]\n\n")


async def read_to_done(response: Response) -> None:
    async with aclosing(response.chunks()) as chunks:
        async for piece in chunks:
            if piece.endswith(b"[DONE]\n\n"):
                break


@pytest.mark.parametrize("tail", [LAST_CHUNK, chunk(b": late\n\n") + LAST_CHUNK])
async def test_a_reader_that_stops_at_the_end_marker_keeps_the_connection(
    make_pool: MakePool, post: Post, tail: bytes
) -> None:
    """vLLM's last chunk comes in a packet of its own, after `[DONE]`."""

    async def ends_late(peer: Peer) -> None:
        while True:
            await peer.request()
            peer.send(stream_head(), DONE)
            await peer.pause(0.02)
            peer.send(tail)

    async with ScriptedUpstream(ends_late) as upstream:
        pool = make_pool(upstream.url)
        for _ in range(3):
            response, _ = await post(pool)
            await read_to_done(response)
            response.finish()
            response.close()
            async with asyncio.timeout(0.2):
                while not pool.free_connections:
                    await asyncio.sleep(0.001)
        assert len(upstream.peers) == 1


async def test_a_body_that_never_ends_after_its_end_marker_is_aborted(
    make_pool: MakePool, post: Post
) -> None:
    """U49."""
    async with ScriptedUpstream(replies_then_hangs(stream_head(), DONE)) as upstream:
        pool = make_pool(upstream.url)
        response, _ = await post(pool)
        await read_to_done(response)
        response.finish()
        assert [piece async for piece in response.chunks()] == []
        async with asyncio.timeout(1):
            await upstream.wait_until_left()
        assert pool.open_connections == 0


async def test_a_flood_after_the_end_marker_is_aborted_unread(make_pool: MakePool, post: Post) -> None:
    """U48: nothing of it is kept, and not much of it is read."""

    async def floods(peer: Peer) -> None:
        await peer.request()
        peer.send(stream_head(), DONE)
        await peer.flood(chunk(b"x" * 60_000), 100)
        await peer.gone()

    async with ScriptedUpstream(floods) as upstream:
        pool = make_pool(upstream.url)
        response, _ = await post(pool)
        async with aclosing(response.chunks()) as chunks:
            await anext(chunks)
        response.finish()
        finished_at = asyncio.get_running_loop().time()
        peer = await upstream.wait_until_left()
        assert peer.left_at is not None
        assert peer.left_at - finished_at < 0.2
        assert pool.open_connections == 0


async def test_finishing_an_answer_that_has_ended_is_closing_it(make_pool: MakePool, post: Post) -> None:
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        pool = make_pool(upstream.url)
        response, _ = await post(pool)
        await response.read(10)
        response.finish()
        response.finish()
        assert pool.free_connections == 1


async def test_closing_the_pool_does_not_wait_for_a_tail(make_pool: MakePool, post: Post) -> None:
    async with ScriptedUpstream(replies_then_hangs(stream_head(), DONE)) as upstream:
        pool = make_pool(upstream.url)
        response, _ = await post(pool)
        await read_to_done(response)
        response.finish()
        await pool.aclose()
        assert pool.open_connections == 0
        await upstream.wait_until_left()
