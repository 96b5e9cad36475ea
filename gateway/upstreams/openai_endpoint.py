"""An OpenAI-compatible per-token endpoint as a target. Knows how a request must change to leave the house.

The client's own credentials, our engines' field names and the local model name stay behind.
"""

import json
import ssl

from gateway.upstreams.base import Exchange
from gateway.upstreams.errors import Refused
from gateway.upstreams.headers import ENDPOINT_REQUEST, bearer, for_target
from gateway.upstreams.pool import Pool
from gateway.upstreams.response import Response
from gateway.wire.body import BadBody, JsonObject
from gateway.wire.request import VLLM_ONLY_FIELDS

# Public endpoints keep idle connections for a minute or more, and a new one costs a TLS handshake.
_KEEP_ALIVE = 30.0
_LOCAL_ROOT = "/v1"


class OpenAIEndpoint:
    """Implements `Target`. `base_url` stands in for `/v1`: `/v1/chat/completions` goes to
    `<base_url>/chat/completions`.
    """

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
        self._pool = Pool(
            base_url, max_connections=max_connections, keep_alive=_KEEP_ALIVE, ssl_context=ssl_context
        )

    @property
    def open_connections(self) -> int:
        return self._pool.open_connections

    async def send(self, exchange: Exchange) -> Response:
        """Raises UpstreamError. `exchange.model` is the name at the endpoint; adds to
        `exchange.dropped_fields`.
        """
        if not exchange.path.startswith(_LOCAL_ROOT + "/"):
            raise Refused("endpoints do not serve this path")
        body, dropped = body_for_endpoint(exchange.body, exchange.model)
        exchange.dropped_fields.extend(dropped)
        headers = for_target(exchange, ENDPOINT_REQUEST, self._authorization)
        path = exchange.path.removeprefix(_LOCAL_ROOT)
        return await self._pool.send(exchange.method, path, headers, body, exchange.limits, exchange)

    async def aclose(self) -> None:
        await self._pool.aclose()


def body_for_endpoint(body: bytes, model: str) -> tuple[bytes, list[str]]:
    """The body with its model's name there and without what only vLLM knows, and the names of what went.

    All other bytes stay as the client wrote them. Raises Refused for a body that is not a JSON object.
    """
    try:
        members = JsonObject.parse(body)
    except BadBody as error:
        raise Refused("the body cannot be rewritten for an endpoint") from error
    dropped = sorted(field for field in VLLM_ONLY_FIELDS if field in members)
    changes = {"model": json.dumps(model)} if model else {}
    return members.edited(changes, dropped), dropped
