"""Reading a request body within bounds of size and time."""

import asyncio

from gateway.api.client import Receive
from gateway.api.errors import rejection
from gateway.upstreams.base import Header

# A client that needs longer than this for its body holds a place that others could use.
_BODY_SECONDS = 60.0


class ClientLeft(Exception):  # noqa: N818 -- an event, not a fault
    """The client went away before its body was whole."""


async def read_body(receive: Receive, headers: dict[bytes, bytes], limit: int) -> bytes:
    """The whole body. Raises Rejected (413 before the rest is read, 415, 408) or ClientLeft."""
    encoding = headers.get(b"content-encoding", b"identity").strip().lower()
    if encoding not in (b"", b"identity"):
        raise rejection("unsupported_encoding")
    length = headers.get(b"content-length")
    if length is not None and length.isdigit() and int(length) > limit:
        raise rejection("body_too_large", str(limit))
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await _gather(receive, limit)
    except TimeoutError:
        raise rejection("body_timeout") from None


async def _gather(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise rejection("body_too_large", str(limit))
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def header_map(headers: list[Header]) -> dict[bytes, bytes]:
    """Header name -> value, the first of repeated ones: what the gateway itself reads is never given twice
    honestly."""
    first: dict[bytes, bytes] = {}
    for name, value in headers:
        first.setdefault(name, value)
    return first
