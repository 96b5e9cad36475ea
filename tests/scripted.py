"""An upstream made of raw bytes: a TCP server on loopback that does to each connection what a script says,
and remembers.

HTTP libraries refuse to send what broken servers send; this one sends anything. A script is a coroutine over
one `Peer`; the ready-made ones below cover the common cases. Connection n runs script n, later ones run the
last script again.

    async with ScriptedUpstream(replies(ok(b"{}"))) as upstream:
        ...  # talk to upstream.url
        assert upstream.peers[0].requests[0].path == "/v1/models"
"""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self, cast

Script = Callable[["Peer"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came in. Header names are lower-case; `raw_head` is exactly what was sent."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    raw_head: bytes
    at: float

    def header(self, name: str) -> str | None:
        """The first value of this header."""
        return next((value for key, value in self.headers if key == name), None)

    def header_names(self) -> set[str]:
        return {name for name, _ in self.headers}


class Gone(Exception):  # noqa: N818 - the end of a script, not an error
    """The other side left while a script still wanted to read or write: the script ends here."""


@dataclass(slots=True)
class Peer:
    """One accepted connection: what a script does to it, and what was seen of the other side. Times are
    loop.time().
    """

    transport: asyncio.Transport
    opened_at: float
    requests: list[Received] = field(default_factory=list)
    # When the other side was seen to leave, and how: "fin", "reset", or None where our own script ended it.
    left_at: float | None = None
    left_by: str | None = None
    closed_by_script: bool = False
    inbox: bytearray = field(default_factory=bytearray)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def request(self) -> Received:
        """The next request, head and body (content-length only). Raises Gone."""
        head = await self._until(lambda: self._split_head())
        lines = head.decode("latin-1").split("\r\n")
        method, path, _ = lines[0].split(" ", 2)
        pairs = (line.partition(":") for line in lines[1:] if line)
        headers = tuple((name.strip().lower(), value.strip()) for name, _, value in pairs)
        length = int(next((value for name, value in headers if name == "content-length"), "0"))
        body = await self._until(lambda: self._take(length))
        received = Received(method, path, headers, body, head, asyncio.get_running_loop().time())
        self.requests.append(received)
        return received

    async def received(self, size: int) -> bytes:
        """The next `size` raw bytes, whatever they are. Raises Gone."""
        return await self._until(lambda: self._take(size))

    def send(self, *pieces: bytes) -> None:
        """Write now, without waiting for room. Raises Gone."""
        for piece in pieces:
            self._look()
            self.transport.write(piece)

    async def drip(self, data: bytes, *, size: int = 1, pause: float = 0.0) -> None:
        """Write in pieces of `size` bytes, letting the loop (or `pause` seconds) pass in between."""
        for start in range(0, len(data), size):
            self.send(data[start : start + size])
            await asyncio.sleep(pause)

    async def flood(self, piece: bytes, times: int) -> None:
        """Write `piece` many times, never holding more than one in memory. Raises Gone."""
        for _ in range(times):
            while self.transport.get_write_buffer_size() > 0:
                self._look()
                await asyncio.sleep(0.001)
            self.send(piece)

    async def pause(self, seconds: float) -> None:
        """Stay silent. Raises Gone as soon as the other side leaves."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.gone()
                raise Gone

    async def gone(self) -> None:
        """Stay silent until the other side leaves."""
        while self.left_at is None:
            self.news.clear()
            await self.news.wait()

    def stop_reading(self) -> None:
        """Leave the other side's bytes in the kernel's buffers from now on."""
        self.transport.pause_reading()

    def fin(self) -> None:
        """Close in good order, after what was written."""
        self.closed_by_script = True
        self.transport.close()

    def half_close(self) -> None:
        """FIN of our sending side; goes on reading."""
        self.transport.write_eof()

    def reset(self) -> None:
        """RST: what was written and not yet sent is lost."""
        self.closed_by_script = True
        held = self.transport.get_extra_info("socket")
        held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _look(self) -> None:
        if self.left_at is not None or self.transport.is_closing():
            raise Gone

    async def _until(self, take: Callable[[], bytes | None]) -> bytes:
        while (found := take()) is None:
            self._look()
            self.news.clear()
            await self.news.wait()
        return found

    def _split_head(self) -> bytes | None:
        end = self.inbox.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self.inbox[:end])
        del self.inbox[: end + 4]
        return head

    def _take(self, size: int) -> bytes | None:
        if len(self.inbox) < size:
            return None
        body = bytes(self.inbox[:size])
        del self.inbox[:size]
        return body


class ScriptedUpstream:
    """The server. `url` has no path; `peers` are the connections in the order in which they came."""

    def __init__(self, *scripts: Script, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.peers: list[Peer] = []
        self._scripts = scripts
        self._tls = tls
        self._host = host
        self._server: asyncio.Server | None = None
        self._errors: list[BaseException] = []
        self._running: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self.port}"

    @property
    def requests(self) -> list[Received]:
        """Every request of every connection, in order of arrival."""
        return sorted(
            (request for peer in self.peers for request in peer.requests), key=lambda request: request.at
        )

    @property
    def open_peers(self) -> list[Peer]:
        return [peer for peer in self.peers if peer.left_at is None and not peer.closed_by_script]

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _PeerProtocol(self), self._host, self.port, ssl=self._tls
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        if self._errors:
            raise self._errors[0]

    async def stop(self) -> None:
        """Close the listener and every connection; the port stays the same if entered again."""
        assert self._server is not None
        self._server.close()
        for task in tuple(self._running):
            task.cancel()
        for peer in self.peers:
            peer.closed_by_script = True
            peer.transport.abort()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def wait_for_peers(self, count: int) -> None:
        """Until so many connections have come (the test's own time limit applies)."""
        while len(self.peers) < count:
            self._news.clear()
            await self._news.wait()

    async def wait_until_left(self, number: int = 0) -> Peer:
        """Until the other side of connection `number` left (the test's own time limit applies)."""
        await self.wait_for_peers(number + 1)
        await self.peers[number].gone()
        return self.peers[number]

    def start(self, peer: Peer) -> None:
        script = self._scripts[min(len(self.peers), len(self._scripts) - 1)]
        self.peers.append(peer)
        self._news.set()
        # A test's server outlives no test: __aexit__ awaits every script.
        task = asyncio.get_running_loop().create_task(self._play(script, peer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _play(self, script: Script, peer: Peer) -> None:
        try:
            await script(peer)
        except Gone:
            pass
        except Exception as error:  # noqa: BLE001 - kept, and raised by __aexit__ in the test's own task
            self._errors.append(error)


class _PeerProtocol(asyncio.Protocol):
    def __init__(self, upstream: ScriptedUpstream) -> None:
        self._upstream = upstream
        self._peer: Peer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods and not the base class.
        self._peer = Peer(cast("asyncio.Transport", transport), asyncio.get_running_loop().time())
        self._upstream.start(self._peer)

    def data_received(self, data: bytes) -> None:
        assert self._peer is not None
        self._peer.inbox += data
        self._peer.news.set()

    def eof_received(self) -> bool:
        self._left("fin")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        assert self._peer is not None
        if not self._peer.closed_by_script:
            self._left("reset" if exc is not None else "fin")
        elif self._peer.left_at is None:
            self._peer.left_at = asyncio.get_running_loop().time()
            self._peer.news.set()

    def _left(self, how: str) -> None:
        assert self._peer is not None
        if self._peer.left_at is None:
            self._peer.left_at = asyncio.get_running_loop().time()
            self._peer.left_by = how
        self._peer.news.set()


# Ready-made bytes


def answer(status: int, headers: Iterable[tuple[str, str]] = (), body: bytes = b"") -> bytes:
    """An answer with a content-length."""
    lines = [
        f"HTTP/1.1 {status} X",
        *(f"{name}: {value}" for name, value in headers),
        f"content-length: {len(body)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def ok(body: bytes, content_type: str = "application/json") -> bytes:
    """A 200 with a content-length."""
    return answer(200, [("content-type", content_type)], body)


def stream_head(*headers: tuple[str, str]) -> bytes:
    """The head of a chunked event stream, as vLLM sends it."""
    lines = [
        "HTTP/1.1 200 OK",
        "content-type: text/event-stream; charset=utf-8",
        "transfer-encoding: chunked",
    ]
    return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers)]).encode() + b"\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


# Ready-made scripts


def replies(*answers: bytes) -> Script:
    """Each request on the connection gets the next answer (the last one again and again)."""

    async def script(peer: Peer) -> None:
        served = 0
        while True:
            await peer.request()
            peer.send(answers[min(served, len(answers) - 1)])
            served += 1

    return script


def replies_then_closes(*pieces: bytes) -> Script:
    """One request, these bytes, FIN."""

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(*pieces)
        peer.fin()

    return script


def replies_then_hangs(*pieces: bytes) -> Script:
    """One request, these bytes, then silence until the other side leaves."""

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(*pieces)
        await peer.gone()

    return script


def replies_then_resets(*pieces: bytes, after: float = 0.02) -> Script:
    """One request, these bytes, a moment for them to arrive, RST."""

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(*pieces)
        await peer.pause(after)
        peer.reset()

    return script


async def never_answers(peer: Peer) -> None:
    """Accepts, reads everything, says nothing."""
    await peer.gone()


async def resets_at_once(peer: Peer) -> None:
    """RST right after accept."""
    peer.reset()


# Ports where nobody answers


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """A port that refuses connections."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@contextlib.contextmanager
def black_hole() -> Iterator[int]:
    """A port that swallows SYN: its accept queue is full, and Linux then drops what comes."""
    with contextlib.ExitStack() as held:
        listener = held.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = held.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
