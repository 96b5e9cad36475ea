"""What relay needs of the client's side of a request. Implemented over ASGI in api; knows nothing of it."""

from typing import Literal, Protocol

from gateway.upstreams.base import Header

Lost = Literal["client_gone", "client_slow"]


class Client(Protocol):
    """One client waiting for one answer. Writes raise nothing when it leaves: relay is cancelled instead."""

    started: bool

    @property
    def lost(self) -> Lost | None:
        """Why relay was cancelled, where the client is the reason; the ledger's word."""
        ...

    async def start(self, status: int, headers: list[Header]) -> None:
        """Send status and headers."""
        ...

    async def write(self, data: bytes) -> None:
        """Send body bytes; returns when the connection may take more."""
        ...

    async def finish(self, data: bytes = b"") -> None:
        """Send the last bytes and end the body cleanly."""
        ...

    def break_off(self) -> None:
        """End without the body's own end, so that no client takes a cut answer for a whole one."""
        ...
