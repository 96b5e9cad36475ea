"""Who gets which connection, and what a broken one costs."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from gateway.upstreams.errors import Cut, PoolFull, ProtocolBroken, Refused, Stalled, TimedOut, TooLarge
from gateway.upstreams.pool import Pool
from tests.scripted import (
    LAST_CHUNK,
    Peer,
    ScriptedUpstream,
    answer,
    chunk,
    closed_port,
    never_answers,
    ok,
    replies,
    replies_then_closes,
    replies_then_hangs,
    replies_then_resets,
    resets_at_once,
    stream_head,
)

pytestmark = pytest.mark.anyio

MakePool = Callable[..., Pool]
Post = Callable[..., Any]


async def finish(post: Post, pool: Pool, **settings: Any) -> Any:
    """One exchange to its end; returns the Exchange."""
    response, exchange = await post(pool, **settings)
    await response.read(1_000_000)
    return exchange


async def test_the_request_on_the_wire(make_pool: MakePool, post: Post) -> None:
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        pool = make_pool(f"{upstream.url}/proxied/")
        await finish(
            post, pool, body=b'{"a": 1}', headers=[(b"content-type", b"application/json"), (b"x-a", b"b")]
        )
        (request,) = upstream.requests
        assert request.raw_head.decode().split("\r\n") == [
            "POST /proxied/v1/chat/completions HTTP/1.1",
            f"host: 127.0.0.1:{upstream.port}",
            "user-agent: spillgate",
            "accept-encoding: identity",
            "content-type: application/json",
            "x-a: b",
            "content-length: 8",
        ]
        assert request.body == b'{"a": 1}'


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 3_000_000])
async def test_a_body_of_any_size_arrives_whole(make_pool: MakePool, post: Post, size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        await finish(post, make_pool(upstream.url), body=body)
        assert upstream.requests[0].body == body


async def test_times_are_set_in_order(make_pool: MakePool, post: Post) -> None:
    async def slow(peer: Peer) -> None:
        await peer.request()
        await peer.pause(0.05)
        peer.send(ok(b"{}"))
        await peer.gone()

    async with ScriptedUpstream(slow) as upstream:
        before = asyncio.get_running_loop().time()
        exchange = await finish(post, make_pool(upstream.url))
        assert before <= exchange.dialed_at <= exchange.sent_at < exchange.headers_at
        assert exchange.headers_at - exchange.sent_at >= 0.045
        assert exchange.redials == 0


async def test_the_connection_used_last_is_used_first(make_pool: MakePool, post: Post) -> None:
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        pool = make_pool(upstream.url)
        await asyncio.gather(*(finish(post, pool) for _ in range(5)))
        assert (pool.open_connections, pool.free_connections) == (len(upstream.peers), len(upstream.peers))
        before = [len(peer.requests) for peer in upstream.peers]
        for _ in range(6):
            await finish(post, pool)
        gains = [len(peer.requests) - old for peer, old in zip(upstream.peers, before, strict=True)]
        assert sorted(gains)[-1] == 6


@pytest.mark.parametrize("size", [2, 100_000])
@pytest.mark.parametrize(
    "ending",
    [
        pytest.param(lambda peer: peer.fin(), id="fin"),
        pytest.param(lambda peer: peer.reset(), id="reset"),
    ],
)
async def test_a_stale_connection_is_redialled_once(
    make_pool: MakePool, post: Post, ending: Any, size: int
) -> None:
    """U11: it had served before, and broke with the request on its way and no byte of an answer."""

    async def serves_one_then_breaks(peer: Peer) -> None:
        await peer.request()
        peer.send(ok(b"{}"))
        await peer.received(1)
        ending(peer)

    async with ScriptedUpstream(serves_one_then_breaks, replies(ok(b'"second"'))) as upstream:
        pool = make_pool(upstream.url)
        await finish(post, pool)
        response, exchange = await post(pool, b"x" * size)
        assert await response.read(100) == b'"second"'
        assert exchange.redials == 1
        assert len(upstream.peers) == 2
        assert upstream.peers[1].requests[0].body == b"x" * size


async def test_the_redial_does_not_try_the_next_stale_connection(make_pool: MakePool, post: Post) -> None:
    """A server that restarted has left every free connection stale: only a new one can help."""

    async def serves_one_then_resets(peer: Peer) -> None:
        await peer.request()
        peer.send(ok(b"{}"))
        await peer.received(1)
        peer.reset()

    async with ScriptedUpstream(
        serves_one_then_resets, serves_one_then_resets, replies(ok(b'"new"'))
    ) as upstream:
        pool = make_pool(upstream.url, max_connections=2)
        await asyncio.gather(finish(post, pool), finish(post, pool))
        assert pool.free_connections == 2
        response, exchange = await post(pool)
        assert await response.read(100) == b'"new"'
        assert (exchange.redials, len(upstream.peers)) == (1, 3)


async def test_a_redial_that_breaks_as_well_is_the_end(make_pool: MakePool, post: Post) -> None:
    async def serves_one_then_closes(peer: Peer) -> None:
        await peer.request()
        peer.send(ok(b"{}"))
        await peer.request()
        peer.fin()

    async with ScriptedUpstream(serves_one_then_closes, resets_at_once, replies(ok(b"{}"))) as upstream:
        pool = make_pool(upstream.url)
        await finish(post, pool)
        with pytest.raises(Cut):
            await post(pool)
        assert len(upstream.peers) == 2


@pytest.mark.parametrize("partial", [b"H", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n"])
async def test_a_reused_connection_that_said_anything_is_not_redialled(
    make_pool: MakePool, post: Post, partial: bytes
) -> None:
    async def breaks_after_a_byte(peer: Peer) -> None:
        await peer.request()
        peer.send(ok(b"{}"))
        await peer.request()
        peer.send(partial)
        peer.fin()

    async with ScriptedUpstream(breaks_after_a_byte) as upstream:
        pool = make_pool(upstream.url)
        await finish(post, pool)
        with pytest.raises(Cut):
            await post(pool)
        assert len(upstream.peers) == 1


async def test_a_silent_reused_connection_times_out_and_is_not_redialled(
    make_pool: MakePool, post: Post
) -> None:
    async def serves_one(peer: Peer) -> None:
        await peer.request()
        peer.send(ok(b"{}"))
        await peer.gone()

    async with ScriptedUpstream(serves_one) as upstream:
        pool = make_pool(upstream.url)
        await finish(post, pool)
        with pytest.raises(TimedOut):
            await post(pool, first_byte=0.1)
        assert len(upstream.peers) == 1


async def test_a_free_connection_that_the_peer_closes_is_dropped_at_once(
    make_pool: MakePool, post: Post
) -> None:
    async def closes_when_idle(peer: Peer) -> None:
        await peer.request()
        peer.send(ok(b"{}"))
        await peer.pause(0.03)
        peer.fin()

    async with ScriptedUpstream(closes_when_idle) as upstream:
        pool = make_pool(upstream.url)
        await finish(post, pool)
        assert pool.free_connections == 1
        async with asyncio.timeout(1):
            while pool.open_connections:
                await asyncio.sleep(0.005)
        exchange = await finish(post, pool)
        assert (exchange.redials, len(upstream.peers)) == (0, 2)


async def test_a_free_connection_that_speaks_unasked_is_dropped(make_pool: MakePool, post: Post) -> None:
    async def talks(peer: Peer) -> None:
        await peer.request()
        peer.send(ok(b"{}"))
        await peer.pause(0.02)
        peer.send(ok(b'"for nobody"'))
        await peer.gone()

    async with ScriptedUpstream(talks) as upstream:
        pool = make_pool(upstream.url)
        await finish(post, pool)
        async with asyncio.timeout(1):
            await upstream.wait_until_left()
        assert pool.open_connections == 0
        response, _ = await post(pool)
        assert await response.read(100) == b"{}"


async def test_a_connection_free_for_too_long_is_neither_used_nor_kept(
    make_pool: MakePool, post: Post
) -> None:
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        pool = make_pool(upstream.url, keep_alive=0.1)
        await finish(post, pool)
        await finish(post, pool)
        assert len(upstream.peers) == 1
        async with asyncio.timeout(1):
            await upstream.wait_until_left()
        assert pool.open_connections == 0
        await finish(post, pool)
        assert len(upstream.peers) == 2


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}", id="close"),
        pytest.param(b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}", id="HTTP/1.0"),
    ],
)
async def test_a_connection_that_the_peer_ends_is_not_reused(
    make_pool: MakePool, post: Post, sent: bytes
) -> None:
    async with ScriptedUpstream(replies_then_hangs(sent)) as upstream:
        pool = make_pool(upstream.url)
        await finish(post, pool)
        assert pool.open_connections == 0


async def test_a_full_pool_passes_a_freed_connection_on_in_order(make_pool: MakePool, post: Post) -> None:
    """U06."""
    order: list[int] = []

    async def one(number: int, pool: Pool) -> None:
        await finish(post, pool)
        order.append(number)

    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        pool = make_pool(upstream.url, max_connections=1)
        await asyncio.gather(*(one(number, pool) for number in range(20)))
        assert order == list(range(20))
        assert len(upstream.peers) == 1


async def test_a_full_pool_that_frees_nothing_turns_away(make_pool: MakePool, post: Post) -> None:
    """U06: this says nothing of the target, and nothing was sent."""
    async with ScriptedUpstream(replies_then_hangs(stream_head())) as upstream:
        pool = make_pool(upstream.url, max_connections=1)
        busy, _ = await post(pool)
        with pytest.raises(PoolFull) as caught:
            await post(pool, connect=0.1)
        assert (caught.value.sent, caught.value.outcome) == (False, "shed")
        busy.close()
        again, _ = await post(pool)
        assert again.status == 200
        again.close()


async def test_a_place_freed_by_a_broken_connection_goes_to_who_waits(
    make_pool: MakePool, post: Post
) -> None:
    async with ScriptedUpstream(replies_then_resets(after=0.05), replies(ok(b"{}"))) as upstream:
        pool = make_pool(upstream.url, max_connections=1)
        calls = (post(pool), finish(post, pool))
        results: list[Any] = list(await asyncio.gather(*calls, return_exceptions=True))
        assert isinstance(results[0], Cut)
        assert results[1].headers_at is not None


async def test_who_gives_up_waiting_takes_nothing_along(make_pool: MakePool, post: Post) -> None:
    """Cancelled at every stage: waiting, dialling, sent; afterwards the whole pool is there again."""
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        pool = make_pool(upstream.url, max_connections=3)
        for passes in range(12):
            calls = [asyncio.get_running_loop().create_task(finish(post, pool)) for _ in range(8)]
            for _ in range(passes):
                await asyncio.sleep(0)
            for call in calls[::2]:
                call.cancel()
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert [r for r in results[1::2] if isinstance(r, BaseException)] == []
            assert pool.open_connections <= 3
            assert pool.free_connections == pool.open_connections
        await asyncio.gather(*(finish(post, pool) for _ in range(3)))


async def test_what_is_handed_to_one_that_just_gave_up_goes_to_the_next(
    make_pool: MakePool, post: Post
) -> None:
    """In one pass of the loop: a connection or a place comes free, is handed on, its taker is cancelled."""
    loop = asyncio.get_running_loop()
    for ends in (True, False):
        head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
        go = asyncio.Event()

        async def first(peer: Peer, head: bytes = head, go: asyncio.Event = go) -> None:
            await peer.request()
            peer.send(head)
            await go.wait()
            peer.send(b"{}")
            await replies(ok(b"{}"))(peer)

        async with ScriptedUpstream(first, replies(ok(b"{}"))) as upstream:
            pool = make_pool(upstream.url, max_connections=1)
            busy, _ = await post(pool)
            quitter, heir = (loop.create_task(finish(post, pool, connect=1.0)) for _ in range(2))
            await asyncio.sleep(0.01)
            if ends:
                go.set()
                await busy.read(10)
            else:
                busy.close()
            quitter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await quitter
            await heir
            assert (pool.open_connections, pool.free_connections) == (1, 1)


async def test_a_failed_dial_gives_its_place_back(make_pool: MakePool, post: Post) -> None:
    with closed_port() as port:
        pool = make_pool(f"http://127.0.0.1:{port}", max_connections=2)
        for _ in range(5):
            results = await asyncio.gather(*(post(pool) for _ in range(4)), return_exceptions=True)
            assert all(isinstance(result, Refused) for result in results)
        assert pool.open_connections == 0


async def test_one_hung_target_does_not_hold_up_another(make_pool: MakePool, post: Post) -> None:
    """F22."""
    async with ScriptedUpstream(never_answers) as hung, ScriptedUpstream(replies(ok(b"{}"))) as good:
        slow, fast = make_pool(hung.url), make_pool(good.url)
        async with asyncio.TaskGroup() as group:
            stuck = [group.create_task(finish(post, slow)) for _ in range(100)]
            await asyncio.gather(*(finish(post, fast) for _ in range(100)))
            assert not any(call.done() for call in stuck), "all of the others' answers came meanwhile"
            for call in stuck:
                call.cancel()
        assert slow.open_connections == 0


async def test_many_streams_at_once(make_pool: MakePool, post: Post) -> None:
    """F42, small: every one of them gets its own bytes."""

    async def echoes(peer: Peer) -> None:
        while True:
            request = await peer.request()
            peer.send(stream_head())
            for _ in range(5):
                peer.send(chunk(request.body))
                await asyncio.sleep(0)
            peer.send(LAST_CHUNK)

    async def one(pool: Pool, body: bytes) -> bool:
        response, _ = await post(pool, body)
        return bool(await response.read(10_000) == body * 5)

    async with ScriptedUpstream(echoes) as upstream:
        pool = make_pool(upstream.url, max_connections=100)
        assert all(await asyncio.gather(*(one(pool, b"%d;" % n) for n in range(300))))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(make_pool: MakePool, post: Post, status: int) -> None:
    """U22, F48."""
    async with ScriptedUpstream(replies(ok(b"{}"))) as trap:
        script = replies_then_hangs(answer(status, [("location", f"{trap.url}/stolen")]))
        async with ScriptedUpstream(script) as upstream:
            with pytest.raises(ProtocolBroken, match="redirect"):
                await post(make_pool(upstream.url))
        assert trap.peers == []


@pytest.mark.parametrize("value", [b"a\r\nx-evil: 1", b"a\nb", b"a\rb"])
async def test_a_header_cannot_bring_another(make_pool: MakePool, post: Post, value: bytes) -> None:
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        with pytest.raises(ValueError, match="line break"):
            await post(make_pool(upstream.url), headers=[(b"x-a", value)])
        assert upstream.peers == []


async def test_a_query_in_the_base_url_goes_with_every_request(make_pool: MakePool, post: Post) -> None:
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        await finish(post, make_pool(f"{upstream.url}/v1?key=K"), path="/chat/completions")
        assert upstream.requests[0].path == "/v1/chat/completions?key=K"


async def test_get_reads_the_whole_and_no_more_than_allowed(make_pool: MakePool) -> None:
    async with ScriptedUpstream(replies(ok(b"x" * 1000, "text/plain"))) as upstream:
        pool = make_pool(upstream.url)
        assert await pool.get("/metrics", 1.0, 1000, [(b"authorization", b"Bearer k")]) == (200, b"x" * 1000)
        request = upstream.requests[0]
        assert (request.method, request.path, request.header("authorization")) == (
            "GET",
            "/metrics",
            "Bearer k",
        )
        assert request.header("content-length") is None
        with pytest.raises(TooLarge):
            await pool.get("/metrics", 1.0, 999)


async def test_get_is_bounded_as_a_whole(make_pool: MakePool) -> None:
    """A page that trickles passes every single wait and must still end."""

    async def trickles(peer: Peer) -> None:
        await peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        await peer.drip(b"x" * 1000, pause=0.02)

    async with ScriptedUpstream(trickles) as upstream:
        pool = make_pool(upstream.url)
        with pytest.raises(TimedOut) as caught:
            await pool.get("/metrics", 0.15, 1000)
        assert caught.value.sent
        assert pool.open_connections == 0


async def test_closing_a_pool_ends_everything_in_it(make_pool: MakePool, post: Post) -> None:
    async with ScriptedUpstream(replies_then_hangs(stream_head())) as upstream:
        pool = make_pool(upstream.url, max_connections=1)
        busy, _ = await post(pool)
        waiting = asyncio.get_running_loop().create_task(finish(post, pool))
        await asyncio.sleep(0.01)
        await pool.aclose()
        with pytest.raises(Cut):
            await busy.read(10)
        with pytest.raises(Refused):
            await waiting
        with pytest.raises(Refused):
            await post(pool)
        await upstream.wait_until_left()


async def test_a_thousand_exchanges_leave_nothing_behind(make_pool: MakePool, post: Post) -> None:
    """F40, F41: a third read, a third dropped, a third broken."""
    scripts = [replies(ok(b"{}"))] * 5 + [
        replies_then_closes(),
        replies_then_hangs(stream_head(), chunk(b"x")),
    ] * 5

    async def one(number: int, pool: Pool) -> None:
        with contextlib.suppress(Cut, Stalled):
            response, _ = await post(pool, between_reads=0.05)
            if number % 3:
                await response.read(100)
            response.close()

    async with ScriptedUpstream(*scripts) as upstream:
        pool = make_pool(upstream.url, max_connections=20)
        for _ in range(10):
            await asyncio.gather(*(one(number, pool) for number in range(60)))
        assert pool.open_connections == pool.free_connections
        await pool.aclose()
        async with asyncio.timeout(2):
            for number in range(len(upstream.peers)):
                await upstream.wait_until_left(number)
