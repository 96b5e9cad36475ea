"""Fixtures of this room: both event loops, short limits, pools that must end empty, and TLS material made on
the spot.
"""

import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.upstreams.base import Exchange, Header, UpstreamLimits
from gateway.upstreams.pool import Pool

LIMITS = UpstreamLimits(connect=2.0, first_byte=2.0, between_reads=2.0)


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """The two loops differ in when they run timers and how they close: everything here must hold on both."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
def make_exchange() -> Callable[..., Exchange]:
    def make(
        body: bytes = b'{"model":"m"}', *, path: str = "/v1/chat/completions", method: str = "POST",
        headers: Iterable[Header] = ((b"content-type", b"application/json"),), model: str = "m",
        stream: bool = False, request_id: str = "req-1", **limits: Any,
    ) -> Exchange:  # fmt: skip
        return Exchange(
            method, path, body, tuple(headers), replace(LIMITS, **limits), stream=stream, model=model,
            request_id=request_id,
        )  # fmt: skip

    return make


@pytest.fixture
async def make_pool(anyio_backend: object) -> AsyncIterator[Callable[..., Pool]]:
    """Pools that are closed after the test, and that must then hold nothing."""
    pools: list[Pool] = []

    def make(base_url: str, **settings: Any) -> Pool:
        pools.append(Pool(base_url, **settings))
        return pools[-1]

    yield make
    for pool in pools:
        await pool.aclose()
        assert pool.open_connections == pool.free_connections == 0


@pytest.fixture
def post(make_exchange: Callable[..., Exchange]) -> Callable[..., Any]:
    """Send one POST through a pool: `(response, exchange)`."""

    async def send(pool: Pool, body: bytes = b"{}", **settings: Any) -> Any:
        exchange = make_exchange(body, **settings)
        response = await pool.send(
            exchange.method, exchange.path, exchange.headers, exchange.body, exchange.limits, exchange
        )
        return response, exchange

    return send


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for `localhost`, with its key beside it."""
    folder = tmp_path_factory.mktemp("tls")
    made = folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2",
         "-keyout", folder / "key.pem", "-out", made, "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost"],
        check=True, capture_output=True, timeout=20,
    )  # fmt: skip
    return made


@pytest.fixture
def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    return context


@pytest.fixture
def trusting_tls(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))
