"""Scripted targets that stream as vLLM does, and a client of raw bytes: what tests of the relay are made
of."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
from scripted import LAST_CHUNK, Peer, Received, ScriptedUpstream, chunk, ok, stream_head
from stack import Stack

from gateway.vllm.metrics import CacheFacts, RankMetrics, expose

DONE = b"data: [DONE]\n\n"
_HEAD = '"id":"c1","object":"chat.completion.chunk","created":1,"model":"tiny"'


def delta(text: str, reason: str | None = None) -> bytes:
    """A chat content event, spelled as vLLM 0.32 does."""
    finish = json.dumps(reason)
    content = json.dumps(text, ensure_ascii=False)
    return (
        f'data: {{{_HEAD},"choices":[{{"index":0,"delta":{{"content":{content}}},"logprobs":null,'
        f'"finish_reason":{finish}}}]}}\n\n'
    ).encode()


ROLE = (
    f'data: {{{_HEAD},"choices":[{{"index":0,"delta":{{"role":"assistant","content":""}},"logprobs":null,'
    '"finish_reason":null}]}\n\n'
).encode()
FINISH = delta("", "stop")
USAGE = (
    f'data: {{{_HEAD},"choices":[],"usage":{{"prompt_tokens":7,'
    '"total_tokens":10,"completion_tokens":3}}\n\n'
).encode()
BAD = b"data: {oops\n\n"
ENGINE_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
WHOLE = json.dumps({
    "id": "c1", "object": "chat.completion", "created": 1, "model": "tiny",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "abc"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}).encode()  # fmt: skip
FULL = (ROLE, delta("a"), delta("b"), delta("c"), FINISH, USAGE, DONE)


def error_object(code: int, message: str = "too busy", kind: str = "server_error") -> bytes:
    """An error event as vLLM sends it inside a 200."""
    error = {"message": message, "type": kind, "param": None, "code": code}
    return b"data: %b\n\n" % json.dumps({"error": error}).encode()


Act = Callable[[Peer, Received], Awaitable[None]]


def says(*pieces: bytes, pause: float = 0.0) -> Act:
    """A whole chunked stream, one chunk for each piece."""

    async def act(peer: Peer, _: Received) -> None:
        peer.send(stream_head())
        for piece in pieces:
            peer.send(chunk(piece))
            await asyncio.sleep(pause)
        peer.send(LAST_CHUNK)

    return act


def answers(raw: bytes) -> Act:
    """These bytes, and the connection stays."""

    async def act(peer: Peer, _: Received) -> None:
        peer.send(raw)

    return act


def hangs(*pieces: bytes, head: bool = True) -> Act:
    """These pieces of a stream, then silence."""

    async def act(peer: Peer, _: Received) -> None:
        if head:
            peer.send(stream_head())
        for piece in pieces:
            peer.send(chunk(piece))
        await peer.gone()

    return act


def ends(*pieces: bytes, head: bool = True, reset: bool = False, wait: float = 0.05) -> Act:
    """These pieces of a stream, then FIN or RST without the body's end."""

    async def act(peer: Peer, _: Received) -> None:
        if head:
            peer.send(stream_head())
        for piece in pieces:
            peer.send(chunk(piece))
        await peer.pause(wait)
        peer.reset() if reset else peer.fin()

    return act


def floods(piece: bytes, times: int) -> Act:
    """As much as the other side takes."""

    async def act(peer: Peer, _: Received) -> None:
        peer.send(stream_head())
        await peer.flood(chunk(piece), times)
        await peer.gone()

    return act


def drips(data: bytes) -> Act:
    """The stream, one byte for each write."""

    async def act(peer: Peer, _: Received) -> None:
        peer.send(stream_head())
        for start in range(len(data)):
            peer.send(chunk(data[start : start + 1]))
            await asyncio.sleep(0)
        peer.send(LAST_CHUNK)

    return act


@dataclass
class Target:
    """An upstream that answers the scraper as a healthy engine does, and each generation by the next act."""

    upstream: ScriptedUpstream
    served: int = 0

    @property
    def url(self) -> str:
        return self.upstream.url

    @property
    def base_url(self) -> str:
        """As an endpoint's."""
        return f"{self.url}/v1"

    @property
    def posts(self) -> list[Received]:
        return [r for r in self.upstream.requests if r.method == "POST"]

    async def post_peer(self, number: int = 0) -> Peer:
        """The connection of generation `number`, as soon as its request is whole."""
        with anyio.fail_after(5):
            while len(self._posting()) <= number:
                await anyio.sleep(0.002)
        return self._posting()[number]

    def _posting(self) -> list[Peer]:
        found = [
            (r.at, i) for i, p in enumerate(self.upstream.peers) for r in p.requests if r.method == "POST"
        ]
        return [self.upstream.peers[i] for _, i in sorted(found)]


@asynccontextmanager
async def target(*acts: Act) -> AsyncIterator[Target]:
    """One scripted target; act n answers generation n, the last one all later ones."""

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            if request.method == "GET":
                peer.send(ok(*_page(request.path)))
                continue
            act = acts[min(found.served, len(acts) - 1)]
            found.served += 1
            await act(peer, request)

    found = Target(ScriptedUpstream(script))
    async with found.upstream:
        yield found


def _page(path: str) -> tuple[bytes, str]:
    if path == "/metrics":
        rank = RankMetrics(
            rank="0", kv_usage=0.0, running=0, waiting=0, waiting_capacity=0, preemptions=0, prompt_tokens=0,
            generation_tokens=0, success=0, cached_prompt_tokens=0, awake=True,
            cache=CacheFacts(512, 16, 8192, False),
        )  # fmt: skip
        return expose((rank,), "tiny", 0).encode(), "text/plain; version=1.0.0"
    if path == "/version":
        return b'{"version":"0.32.0"}', "application/json"
    return b'{"data":[{"id":"tiny","max_model_len":4096}]}', "application/json"


@dataclass
class Exchanged:
    """What a raw client got: the head, and the body's bytes as they were on the wire."""

    head: bytes
    wire: bytes
    left: bool = False

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1])

    def header(self, name: str) -> str | None:
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.strip().lower() == name.encode():
                return value.strip().decode()
        return None

    @property
    def is_whole(self) -> bool:
        """Did the chunked body end as it should?"""
        return self.wire.endswith(LAST_CHUNK)

    @property
    def body(self) -> bytes:
        """The body without its chunk lines, as far as it came."""
        if self.header("transfer-encoding") != "chunked":
            return self.wire
        rest, parts = self.wire, []
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            parts.append(rest[: int(size, 16)])
            rest = rest[int(size, 16) + 2 :]
        return b"".join(parts)


def request_bytes(path: str = "/v1/chat/completions", headers: tuple[str, ...] = (), **fields: Any) -> bytes:
    """A chat request as bytes; the connection closes after it."""
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 5,
        "stream": True,
    }
    text = json.dumps(body | fields).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        "host: gateway",
        "connection: close",
        "content-type: application/json",
        f"content-length: {len(text)}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + text


async def connect(stack: Stack) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A raw connection to the gateway."""
    url = urlsplit(stack.url)
    return await asyncio.open_connection(url.hostname, url.port, limit=2**22)


async def exchange(stack: Stack, *headers: str, **fields: Any) -> Exchanged:
    """One streamed chat request over a raw socket, read until the gateway closes."""
    reader, writer = await connect(stack)
    try:
        writer.write(request_bytes(headers=headers, **fields))
        with anyio.fail_after(10):
            head = await reader.readuntil(b"\r\n\r\n")
            return Exchanged(head[:-4], await reader.read(-1))
    finally:
        writer.close()


async def quiet(stack: Stack) -> None:
    """Until nothing is in flight, reserved or promised."""
    with anyio.fail_after(3):
        while not stack.is_quiet():
            await anyio.sleep(0.005)


async def last_row(stack: Stack, count: int = 1) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The newest request row once there are `count`, and its attempts in order; books are quiet."""
    await quiet(stack)
    with anyio.fail_after(5):
        while len(stack.rows()) < count:
            await anyio.sleep(0.01)
    row = stack.rows()[-1]
    tries = [a for a in stack.rows("attempts") if a["request_id"] == row["request_id"]]
    return row, sorted(tries, key=lambda a: a["n"])
