"""One connection, one answer: what is believed, what is refused, and when it is given up."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from gateway.upstreams.errors import Cut, ProtocolBroken, TimedOut, TooLarge, UpstreamError
from gateway.upstreams.pool import Pool
from gateway.upstreams.response import Response
from tests.scripted import (
    LAST_CHUNK,
    Peer,
    ScriptedUpstream,
    answer,
    chunk,
    never_answers,
    ok,
    replies_then_closes,
    replies_then_hangs,
    replies_then_resets,
    resets_at_once,
    stream_head,
)

pytestmark = pytest.mark.anyio

MakePool = Callable[..., Pool]
Post = Callable[..., Any]

HEAD = b"HTTP/1.1 200 OK\r\n"


async def body_of(response: Response) -> bytes:
    async with aclosing(response.chunks()) as chunks:
        return b"".join([chunk async for chunk in chunks])


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        pytest.param(ok(b'{"a":1}'), b'{"a":1}', id="content-length"),
        pytest.param(stream_head() + chunk(b"ab") + chunk(b"c") + LAST_CHUNK, b"abc", id="chunked"),
        pytest.param(
            HEAD + b"transfer-encoding: chunked\r\n\r\n2;x=y\r\nab\r\n0\r\nTrailer: t\r\n\r\n",
            b"ab",
            id="trailer",
        ),
        pytest.param(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\n" + ok(b"ab"),
            b"ab",
            id="interim",
        ),
        pytest.param(b"HTTP/1.1 204 No\r\n\r\n", b"", id="204"),
        pytest.param(answer(429, [("retry-after", "2")], b"{}"), b"{}", id="error status"),
        pytest.param(answer(200, [("content-encoding", "identity")], b"ab"), b"ab", id="identity"),
    ],
)
async def test_a_body_ends_where_its_framing_says(
    make_pool: MakePool, post: Post, sent: bytes, body: bytes
) -> None:
    async with ScriptedUpstream(replies_then_hangs(sent)) as upstream:
        pool = make_pool(upstream.url)
        response, _ = await post(pool)
        assert await body_of(response) == body
        assert not response.close_delimited
        # U49: the peer keeps the connection open, and neither the reader nor the pool waits for it.
        assert pool.free_connections == 1


async def test_every_split_of_the_bytes_reads_the_same(make_pool: MakePool, post: Post) -> None:
    sent = b"HTTP/1.1 100 C\r\n\r\n" + stream_head() + chunk(b"data: x\n\n") + chunk(b"y") + LAST_CHUNK

    async def dripping(peer: Peer) -> None:
        for size in (1, 2, 3, 7, 11):
            await peer.request()
            await peer.drip(sent, size=size)

    async with ScriptedUpstream(dripping) as upstream:
        pool = make_pool(upstream.url)
        for _ in range(5):
            response, _ = await post(pool)
            assert await body_of(response) == b"data: x\n\ny"
            assert response.headers[0] == (b"content-type", b"text/event-stream; charset=utf-8")


async def test_a_body_without_length_ends_with_the_connection_and_says_so(
    make_pool: MakePool, post: Post
) -> None:
    async with ScriptedUpstream(replies_then_closes(HEAD + b"\r\nabc")) as upstream:
        pool = make_pool(upstream.url)
        response, _ = await post(pool)
        assert response.close_delimited
        assert await body_of(response) == b"abc"
        assert pool.open_connections == 0


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"garbage\r\n\r\n", id="status line"),
        pytest.param(b"\x16\x03\x01\x00\x05hello", id="TLS to a plain port"),
        pytest.param(b"HTTP/1.1 200 OK\ncontent-length: 0\n\n", id="bare LF"),
        pytest.param(HEAD + b"a: b\r\n c\r\ncontent-length: 0\r\n\r\n", id="folded header"),
        pytest.param(HEAD + b"a : b\r\ncontent-length: 0\r\n\r\n", id="space before colon"),
        pytest.param(
            HEAD + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            id="length and chunked",
        ),
        pytest.param(
            HEAD + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n",
            id="chunked and length",
        ),
        pytest.param(HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\nab", id="two lengths"),
        pytest.param(HEAD + b"content-length: -2\r\n\r\nab", id="negative length"),
        pytest.param(HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", id="other transfer coding"),
        pytest.param(HEAD + b"transfer-encoding: gzip\r\n\r\nabc", id="no chunked at all"),
        pytest.param(answer(200, [("content-encoding", "gzip")], b"\x1f\x8b"), id="compressed"),
        pytest.param(
            b"HTTP/1.1 101 S\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n", id="switching protocols"
        ),
        pytest.param(b"HTTP/1.1 999 X\r\ncontent-length: 0\r\n\r\n", id="status"),
    ],
)
async def test_what_is_not_plain_http_is_refused(make_pool: MakePool, post: Post, sent: bytes) -> None:
    """U23, F52."""
    async with ScriptedUpstream(replies_then_hangs(sent)) as upstream:
        pool = make_pool(upstream.url)
        with pytest.raises(ProtocolBroken) as caught:
            await post(pool)
        assert caught.value.sent
        assert pool.open_connections == 0
        await upstream.wait_until_left()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(HEAD + b"x: " + b"y" * 2_000_000, id="one endless value"),
        pytest.param(HEAD + b"x: y\r\n" * 200_000, id="many headers"),
        pytest.param(b"HTTP/1.1 200 " + b"O" * 2_000_000, id="endless reason"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000, id="interim answers for ever"),
    ],
)
async def test_a_head_without_end_is_cut_off(make_pool: MakePool, post: Post, sent: bytes) -> None:
    async with ScriptedUpstream(replies_then_hangs(sent)) as upstream:
        with pytest.raises(TooLarge):
            await post(make_pool(upstream.url))
        await upstream.wait_until_left()


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b"5;" + b"x" * 2_000_000, id="endless chunk extension"),
        pytest.param(b"0\r\nt: " + b"x" * 2_000_000, id="endless trailer"),
    ],
)
async def test_framing_without_body_is_cut_off(make_pool: MakePool, post: Post, tail: bytes) -> None:
    async with ScriptedUpstream(replies_then_hangs(stream_head() + chunk(b"ab"), tail)) as upstream:
        response, _ = await post(make_pool(upstream.url))
        with pytest.raises(TooLarge):
            await body_of(response)


@pytest.mark.parametrize("status", [400, 429, 503])
async def test_a_compressed_error_keeps_its_status_and_loses_its_text(
    make_pool: MakePool, post: Post, status: int
) -> None:
    """F44: never decompressed, and a 429 must not turn into a broken protocol."""
    sent = answer(status, [("content-encoding", "gzip"), ("retry-after", "2")], b"\x1f\x8b" * 500)
    async with ScriptedUpstream(replies_then_hangs(sent)) as upstream:
        pool = make_pool(upstream.url)
        response, _ = await post(pool)
        assert (response.status, await body_of(response)) == (status, b"")
        assert (b"retry-after", b"2") in response.headers
        assert pool.open_connections == 0


@pytest.mark.parametrize(
    ("sent", "came"),
    [
        pytest.param(HEAD + b"content-length: 10\r\n\r\nabc", b"abc", id="fewer than the content-length"),
        pytest.param(stream_head() + chunk(b"abc"), b"abc", id="no last chunk"),
        pytest.param(stream_head() + b"5\r\nab", b"ab", id="inside a chunk"),
    ],
)
@pytest.mark.parametrize("ending", [replies_then_closes, replies_then_resets])
async def test_an_end_where_more_was_promised_is_a_cut(
    make_pool: MakePool, post: Post, sent: bytes, came: bytes, ending: Any
) -> None:
    """U29, U32, U33: what came is delivered first, then the error."""
    async with ScriptedUpstream(ending(sent)) as upstream:
        pool = make_pool(upstream.url)
        response, _ = await post(pool)
        chunks = response.chunks()
        assert await anext(chunks) == came
        with pytest.raises(Cut) as caught:
            await anext(chunks)
        assert caught.value.sent
        assert pool.open_connections == 0


async def test_a_body_longer_than_its_length_is_not_passed_as_whole(make_pool: MakePool, post: Post) -> None:
    """U29."""
    async with ScriptedUpstream(replies_then_hangs(HEAD + b'content-length: 5\r\n\r\n{"a":1}')) as upstream:
        response, _ = await post(make_pool(upstream.url))
        with pytest.raises(ProtocolBroken, match="longer than its content-length"):
            await response.read(1000)


async def test_bytes_after_a_chunked_end_cost_the_connection_only(make_pool: MakePool, post: Post) -> None:
    """U48."""
    sent = (
        stream_head()
        + chunk(b"data: [DONE]\n\n")
        + LAST_CHUNK
        + b"HTTP/1.1 500 Evil\r\ncontent-length: 0\r\n\r\n"
    )
    async with ScriptedUpstream(replies_then_hangs(sent)) as upstream:
        pool = make_pool(upstream.url)
        response, _ = await post(pool)
        assert await body_of(response) == b"data: [DONE]\n\n"
        assert pool.open_connections == 0


@pytest.mark.parametrize(
    "script", [resets_at_once, replies_then_closes(), replies_then_resets(), replies_then_closes(b"HTTP")]
)
async def test_a_fresh_connection_that_breaks_before_an_answer_is_never_retried(
    make_pool: MakePool, post: Post, script: Any
) -> None:
    """U07, U09, U10."""
    async with ScriptedUpstream(script) as upstream:
        with pytest.raises(Cut) as caught:
            await post(make_pool(upstream.url))
        assert caught.value.sent
        assert len(upstream.peers) == 1


async def test_a_reset_while_a_large_body_is_sent_is_a_cut(make_pool: MakePool, post: Post) -> None:
    """U07, U08."""

    async def resets_midway(peer: Peer) -> None:
        await peer.received(100_000)
        peer.reset()

    async with ScriptedUpstream(resets_midway) as upstream:
        with pytest.raises(Cut) as caught:
            await post(make_pool(upstream.url), b"x" * 20_000_000)
        assert caught.value.sent


async def test_an_answer_before_the_body_was_read_is_an_answer(make_pool: MakePool, post: Post) -> None:
    async def refuses_early(peer: Peer) -> None:
        await peer.received(1000)
        peer.stop_reading()
        peer.send(answer(413, [], b"{}"))
        await asyncio.Event().wait()

    async with ScriptedUpstream(refuses_early) as upstream:
        pool = make_pool(upstream.url)
        response, _ = await post(pool, b"x" * 20_000_000)
        assert (response.status, await response.read(10)) == (413, b"{}")
        # Half of the request still lies in our buffers: nothing else may be sent behind it.
        assert pool.open_connections == 0


async def test_no_answer_within_the_limit_is_a_timeout_after_sending(make_pool: MakePool, post: Post) -> None:
    """U12, U13."""
    async with ScriptedUpstream(never_answers) as upstream:
        pool = make_pool(upstream.url)
        started = asyncio.get_running_loop().time()
        with pytest.raises(TimedOut) as caught:
            await post(pool, first_byte=0.1)
        assert caught.value.sent
        assert asyncio.get_running_loop().time() - started >= 0.1
        assert pool.open_connections == 0
        await upstream.wait_until_left()


async def test_half_a_head_does_not_hold_off_the_first_byte_limit(make_pool: MakePool, post: Post) -> None:
    async with ScriptedUpstream(replies_then_hangs(b"HTTP/1.1 200 OK\r\ncontent-")) as upstream:
        with pytest.raises(TimedOut):
            await post(make_pool(upstream.url), first_byte=0.1)


async def test_an_answer_that_comes_as_its_caller_leaves_is_closed(make_pool: MakePool, post: Post) -> None:
    """In one pass of the loop: the head arrives, and the task that waits for it is cancelled."""
    async with ScriptedUpstream(replies_then_hangs(stream_head())) as upstream:
        pool = make_pool(upstream.url)
        call = asyncio.get_running_loop().create_task(post(pool))
        while not any(connection.answered for connection in pool._connections):
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert pool.open_connections == 0
        await upstream.wait_until_left()


async def test_cancelling_a_wait_for_the_answer_reaches_the_upstream_at_once(
    make_pool: MakePool, post: Post
) -> None:
    async with ScriptedUpstream(never_answers) as upstream:
        pool = make_pool(upstream.url)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await post(pool)
        assert pool.open_connections == 0
        await upstream.wait_until_left()


async def test_no_error_names_an_address_or_a_secret(make_pool: MakePool, post: Post) -> None:
    """F46."""
    scripts = [
        replies_then_closes(b"nonsense"),
        resets_at_once,
        never_answers,
        replies_then_hangs(stream_head()),
    ]

    async def whole(pool: Pool) -> bytes:
        secret = [(b"authorization", b"Bearer CANARY")]
        response, _ = await post(pool, headers=secret, first_byte=0.05, between_reads=0.05)
        return await body_of(response)

    for script in scripts:
        async with ScriptedUpstream(script) as upstream:
            pool = make_pool(f"{upstream.url}/hidden?key=CANARY")
            with pytest.raises(UpstreamError) as caught:
                await whole(pool)
            for text in (str(caught.value), repr(caught.value)):
                assert not any(word in text for word in ("CANARY", "127.0.0.1", str(upstream.port), "hidden"))
