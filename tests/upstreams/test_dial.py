"""Opening connections: each way to fail has its own error, and none of them tells where."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import pytest

from gateway.upstreams.dial import Dialer
from gateway.upstreams.errors import Refused, TimedOut
from gateway.upstreams.http1 import Connection
from gateway.upstreams.pool import Pool
from tests.scripted import Peer, ScriptedUpstream, black_hole, closed_port, never_answers, ok, replies

pytestmark = pytest.mark.anyio

MakePool = Callable[..., Pool]
Post = Callable[..., Any]


async def test_a_refused_connection(make_pool: MakePool, post: Post) -> None:
    """U01, U02."""
    with closed_port() as port:
        with pytest.raises(Refused, match=r"^connection refused$") as caught:
            await post(make_pool(f"http://127.0.0.1:{port}"))
        assert not caught.value.sent


async def test_a_port_that_swallows_packets(make_pool: MakePool, post: Post) -> None:
    """U03."""
    with black_hole() as port:
        with pytest.raises(TimedOut, match=r"^not connected within the limit$") as caught:
            await post(make_pool(f"http://127.0.0.1:{port}"), connect=0.2)
        assert not caught.value.sent


async def test_a_name_without_address(
    make_pool: MakePool, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U04."""

    def fails(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known: canary.invalid")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    pool = make_pool("http://canary.invalid:8000")
    for _ in range(2):
        with pytest.raises(Refused) as caught:
            await post(pool)
        assert "canary" not in str(caught.value)


async def test_a_slow_name_server_costs_one_thread_and_no_more_than_the_limit(
    make_pool: MakePool, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U04: many wait for one lookup; the loop and its thread pool stay free."""
    release, lookups = threading.Event(), []

    def slow(*_: Any, **__: Any) -> Any:
        lookups.append(threading.current_thread())
        release.wait(10)
        raise socket.gaierror(socket.EAI_AGAIN, "later")

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    pool = make_pool("http://slow.invalid")
    try:
        results = await asyncio.gather(*(post(pool, connect=0.1) for _ in range(50)), return_exceptions=True)
        assert all(isinstance(result, Refused) for result in results)
        assert len(lookups) == 1
    finally:
        release.set()
    async with asyncio.timeout(2):
        while pool._dialer._lookup is not None:
            await asyncio.sleep(0.005)


async def test_the_next_address_is_tried(
    make_pool: MakePool, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        found = [(2, 1, 6, "", (address, upstream.port)) for address in ("127.0.0.2", "127.0.0.1")]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        pool = make_pool(f"http://two.invalid:{upstream.port}")
        response, _ = await post(pool)
        assert await response.read(10) == b"{}"
        assert upstream.requests[0].header("host") == f"two.invalid:{upstream.port}"


async def test_tls(
    make_pool: MakePool, post: Post, server_tls: ssl.SSLContext, trusting_tls: ssl.SSLContext
) -> None:
    async with ScriptedUpstream(replies(ok(b"{}")), tls=server_tls) as upstream:
        pool = make_pool(f"https://localhost:{upstream.port}", ssl_context=trusting_tls)
        for _ in range(2):
            response, _ = await post(pool, b"x" * 200_000)
            assert await response.read(10) == b"{}"
        assert len(upstream.peers) == 1


async def test_tls_closed_in_mid_stream(
    make_pool: MakePool, post: Post, server_tls: ssl.SSLContext, trusting_tls: ssl.SSLContext
) -> None:
    async def streams(peer: Peer) -> None:
        await peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n")
        await peer.gone()

    async with ScriptedUpstream(streams, tls=server_tls) as upstream:
        pool = make_pool(f"https://localhost:{upstream.port}", ssl_context=trusting_tls)
        response, _ = await post(pool)
        closed_at = asyncio.get_running_loop().time()
        response.close()
        peer = await upstream.wait_until_left()
        assert peer.left_at is not None
        assert peer.left_at - closed_at < 0.25


@pytest.mark.parametrize("case", ["unknown issuer", "wrong name", "not TLS"])
async def test_a_tls_failure_names_a_code_and_no_certificate(
    make_pool: MakePool, post: Post, server_tls: ssl.SSLContext, trusting_tls: ssl.SSLContext, case: str
) -> None:
    """U05."""
    script = never_answers
    if case == "not TLS":

        async def script(peer: Peer) -> None:
            await peer.received(1)
            peer.send(b"HTTP/1.1 400 Bad\r\n\r\n")
            peer.fin()

    async with ScriptedUpstream(script, tls=None if case == "not TLS" else server_tls) as upstream:
        host = "127.0.0.1" if case == "wrong name" else "localhost"
        context = ssl.create_default_context() if case == "unknown issuer" else trusting_tls
        pool = make_pool(f"https://{host}:{upstream.port}", ssl_context=context)
        with pytest.raises(Refused) as caught:
            await post(pool)
        assert str(caught.value).startswith("TLS failed: ")
        assert len(str(caught.value)) < 50
        assert not caught.value.sent
        assert pool.open_connections == 0


async def test_a_tls_handshake_that_hangs_is_a_connect_timeout(
    make_pool: MakePool, post: Post, trusting_tls: ssl.SSLContext
) -> None:
    async with ScriptedUpstream(never_answers) as upstream:
        pool = make_pool(f"https://localhost:{upstream.port}", ssl_context=trusting_tls)
        with pytest.raises(TimedOut) as caught:
            await post(pool, connect=0.2)
        assert not caught.value.sent
        await upstream.wait_until_left()


async def test_a_peer_that_hangs_up_in_the_handshake_was_sent_nothing(
    make_pool: MakePool, post: Post, trusting_tls: ssl.SSLContext
) -> None:
    async def hangs_up(peer: Peer) -> None:
        await peer.received(1)
        peer.reset()

    async with ScriptedUpstream(hangs_up) as upstream:
        with pytest.raises(Refused) as caught:
            await post(make_pool(f"https://localhost:{upstream.port}", ssl_context=trusting_tls))
        assert not caught.value.sent


@pytest.mark.parametrize("url", ["ftp://h", "h:80", "http://", "http://user:CANARY@h", "/v1", ""])
def test_what_is_no_base_url_is_refused_at_build(url: str) -> None:
    with pytest.raises(ValueError, match="base URL") as caught:
        Dialer(url)
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://Engine.local", b"engine.local"),
        ("http://h:8000/v1", b"h:8000"),
        ("http://[::1]:8000", b"[::1]:8000"),
        ("https://b\u00fccher.example/v1", b"xn--bcher-kva.example"),
    ],
)
def test_the_host_header(url: str, host: bytes) -> None:
    assert Dialer(url).host_header == host


async def test_out_of_descriptors_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """G10: it is this process that is short, and the next attempt may do."""
    import errno

    loop = asyncio.get_running_loop()

    async def no_more(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    dialer = Dialer("http://127.0.0.1:1")
    monkeypatch.setattr(dialer, "_open", no_more)
    with pytest.raises(Refused, match="out of file descriptors"):
        await dialer.dial(lambda: Connection(loop, print, print), 1.0)
