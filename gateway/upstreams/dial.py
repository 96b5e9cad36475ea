"""Opens connections to one origin: name, address, TLS. Knows no HTTP and keeps nothing open.

Every way in which a dial fails is mapped here, in words that name no address and quote no certificate.
"""

import asyncio
import errno
import ipaddress
import socket
import ssl
from collections.abc import Callable
from functools import partial
from urllib.parse import SplitResult, urlsplit

from gateway.upstreams.errors import Refused, TimedOut, UpstreamError
from gateway.upstreams.http1 import Connection

_WHY = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset while it was being opened",
    errno.EHOSTUNREACH: "host unreachable",
    errno.ENETUNREACH: "network unreachable",
    errno.EMFILE: "this process is out of file descriptors",
    errno.ENFILE: "this machine is out of file descriptors",
}


class Dialer:
    """Dials the scheme, host and port of a base URL. `host_header` is what goes into `Host`."""

    def __init__(self, base_url: str, ssl_context: ssl.SSLContext | None = None) -> None:
        url = urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname or url.username is not None:
            raise ValueError("a base URL must be http(s)://host[:port][/path], without user or password")
        self._host = (
            url.hostname.encode("idna").decode("ascii") if not url.hostname.isascii() else url.hostname
        )
        self._tls = (ssl_context or _default_tls()) if url.scheme == "https" else None
        self._port = url.port or (443 if self._tls else 80)
        self._lookup: asyncio.Future[list[str]] | None = None
        self.host_header = _host_header(url, self._host).encode("ascii")

    async def dial(self, make: Callable[[], Connection], seconds: float) -> Connection:
        """A new connection, TLS included. Raises Refused, or TimedOut after `seconds`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        addresses = await self._addresses(deadline)
        failure: UpstreamError = Refused("the host name has no address")
        for place, address in enumerate(addresses):
            # An address that swallows packets must leave time for the next one.
            share = (deadline - loop.time()) / (len(addresses) - place)
            try:
                async with asyncio.timeout(share):
                    return await self._open(loop, make, address)
            except OSError as error:
                failure = _explain(error)
                failure.__cause__ = error
        raise failure

    async def _open(
        self, loop: asyncio.AbstractEventLoop, make: Callable[[], Connection], address: str
    ) -> Connection:
        _, connection = await loop.create_connection(
            make, address, self._port, ssl=self._tls, server_hostname=self._host if self._tls else None
        )
        return connection

    async def _addresses(self, deadline: float) -> list[str]:
        if _is_address(self._host):
            return [self._host]
        try:
            async with asyncio.timeout_at(deadline):
                return await asyncio.shield(self._looked_up())
        except TimeoutError as error:
            # A name server that hangs is told apart from a target that hangs: nothing was dialled.
            raise Refused("the host name was not looked up in time") from error
        except OSError as error:
            raise Refused("the host name cannot be looked up") from error

    def _looked_up(self) -> "asyncio.Future[list[str]]":
        # One lookup at a time for all who wait: a slow name server holds one thread and not the whole thread
        # pool.
        if self._lookup is None:
            loop = asyncio.get_running_loop()
            self._lookup = loop.run_in_executor(None, partial(_look_up, self._host, self._port))
            self._lookup.add_done_callback(self._lookup_done)
        return self._lookup

    def _lookup_done(self, lookup: "asyncio.Future[list[str]]") -> None:
        self._lookup = None
        if not lookup.cancelled():
            # Nobody may be waiting any more: looked at here, so that it is not reported as lost.
            lookup.exception()


def _look_up(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _explain(error: OSError) -> UpstreamError:
    if isinstance(error, TimeoutError):
        return TimedOut("not connected within the limit", sent=False)
    if isinstance(error, ssl.SSLError):
        return Refused(f"TLS failed: {error.reason or type(error).__name__}")
    number = error.errno
    return Refused(
        _WHY.get(number or 0, f"cannot connect ({errno.errorcode.get(number or 0, type(error).__name__)})")
    )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _host_header(url: SplitResult, host: str) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    return bracketed if url.port is None else f"{bracketed}:{url.port}"


def _default_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
