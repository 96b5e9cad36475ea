"""A vLLM server as a target: path and body go out as they came in. Knows no model names and no prices."""

import ssl

from gateway.upstreams.base import Exchange
from gateway.upstreams.headers import ENGINE_REQUEST, bearer, for_target
from gateway.upstreams.pool import Pool
from gateway.upstreams.response import Response

# Scrapes and health checks have their own few connections: an engine whose pool is full must not look dead.
_SIDE_CONNECTIONS = 4


class EngineTarget:
    """Implements `Target`; `get` is for the gateway's own questions (/metrics, /v1/models, /version)."""

    def __init__(
        self,
        name: str,
        base_url: str,
        api_key: str | None = None,
        *,
        max_connections: int = 1024,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.name = name
        self._authorization = bearer(api_key)
        self._pool = Pool(base_url, max_connections=max_connections, ssl_context=ssl_context)
        self._side = Pool(base_url, max_connections=_SIDE_CONNECTIONS, ssl_context=ssl_context)

    @property
    def open_connections(self) -> int:
        return self._pool.open_connections + self._side.open_connections

    async def send(self, exchange: Exchange) -> Response:
        """Raises UpstreamError."""
        headers = for_target(exchange, ENGINE_REQUEST, self._authorization)
        return await self._pool.send(
            exchange.method, exchange.path, headers, exchange.body, exchange.limits, exchange
        )

    async def get(self, path: str, timeout: float, max_bytes: int) -> tuple[int, bytes]:
        """Status and body, all within `timeout` seconds. Raises UpstreamError."""
        headers = () if self._authorization is None else (self._authorization,)
        return await self._side.get(path, timeout, max_bytes, headers)

    async def aclose(self) -> None:
        await self._pool.aclose()
        await self._side.aclose()
