"""What relay needs of any target: send one request, get a status, headers and body bytes, close at any time.

Engines, OpenAI-compatible endpoints and litellm endpoints all answer with `UpstreamResponse`; relay cannot
tell them apart.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

Header = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class UpstreamLimits:
    """Seconds (monotonic) and bytes that bound one exchange."""

    connect: float = 3.0
    first_byte: float = 60.0
    between_reads: float = 60.0
    max_header_bytes: int = 64 * 1024
    max_error_body: int = 64 * 1024
    max_body: int = 64 * 1024 * 1024


@dataclass(slots=True)
class Exchange:
    """One request to one target. The target fills in the times (clock: loop.time) while it happens.

    `headers` are those the allow-list let through, lower-case names; a target adds its own credentials and
    host.
    """

    method: str
    path: str
    body: bytes
    headers: tuple[Header, ...]
    limits: UpstreamLimits
    stream: bool = False
    model: str = ""
    request_id: str = ""
    dialed_at: float | None = None
    sent_at: float | None = None
    headers_at: float | None = None
    redials: int = 0
    # Body fields that the target took out because it does not know them; named to the client in a header.
    dropped_fields: list[str] = field(default_factory=list)


class UpstreamResponse(Protocol):
    """An answer whose status and headers are known and whose body is still to come."""

    status: int
    headers: tuple[Header, ...]
    # True where usage in the body was made by a library and not by the provider.
    usage_is_estimated: bool

    def chunks(self) -> AsyncIterator[bytes]:
        """Body bytes as they come; ends at the body's own end, raises UpstreamError on anything else."""
        ...

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises TooLarge above `limit` bytes."""
        ...

    def finish(self) -> None:
        """The reader saw its end marker: give the connection back if the body ends soon, else abort it.

        Synchronous. In place of `close` where all went well, since the body's own end may be a packet behind.
        """
        ...

    def close(self) -> None:
        """Give the connection back if the body has ended, else abort it at once. Synchronous, may be called
        twice."""
        ...


class Target(Protocol):
    """One engine or endpoint."""

    name: str

    async def send(self, exchange: Exchange) -> UpstreamResponse:
        """Dial (or reuse), send, wait for status and headers. Raises UpstreamError."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...
