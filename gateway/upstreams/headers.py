"""Which headers pass the gateway, in either direction. Knows names only; what is not listed does not pass.

Lists of what may pass and not of what may not: a header nobody thought of stays here. Lengths, codings and
hop-by-hop headers are never relayed (RFC 9110 §7.6.1); credentials are set by the target, never copied.
"""

import re
from collections.abc import Iterable

from gateway.upstreams.base import Exchange, Header

# From a client to an engine. vLLM reads the session id and the priority since 0.28 and the load-metrics
# format since 0.11.2 (contract §2.3). Not `x-data-parallel-rank`: where a request goes is ours to say.
ENGINE_REQUEST = frozenset({
    b"accept", b"content-type", b"anthropic-version", b"endpoint-load-metrics-format", b"traceparent",
    b"tracestate", b"x-session-id", b"x-vllm-priority",
})  # fmt: skip
# From a client to somebody else's endpoint: nothing that tells of the client or of our engines.
ENDPOINT_REQUEST = frozenset({b"accept", b"content-type"})
_RESPONSE = frozenset({
    b"content-type", b"retry-after", b"retry-after-ms", b"openai-processing-ms", b"endpoint-load-metrics",
})  # fmt: skip
_RESPONSE_PREFIX = b"x-ratelimit-"
# A control character in a value could end it and begin another header.
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_TOKEN = re.compile(r"[\x21-\x7e]+")


def forward_request(headers: Iterable[Header]) -> tuple[Header, ...]:
    """What of a client's headers (any case) may go to a target; names come back in lower case.

    A name listed in `connection` is meant for this hop only and does not pass. `x-request-id` is not among
    them: the gateway gives each attempt its own.
    """
    lowered = [(name.lower(), value) for name, value in headers]
    hop_by_hop = {
        token.strip().lower()
        for name, value in lowered
        if name == b"connection"
        for token in value.split(b",")
    }
    return tuple(
        (name, value)
        for name, value in lowered
        if name in ENGINE_REQUEST and name not in hop_by_hop and not _CONTROL.search(value)
    )


def forward_response(headers: Iterable[Header]) -> tuple[Header, ...]:
    """What of a target's headers (lower-case names) may go to the client."""
    return tuple(
        (name, value)
        for name, value in headers
        if (name in _RESPONSE or name.startswith(_RESPONSE_PREFIX)) and not _CONTROL.search(value)
    )


def for_target(exchange: Exchange, allowed: frozenset[bytes], authorization: Header | None) -> list[Header]:
    """The headers of one attempt: what this kind of target may see, the attempt's own id, our credentials.

    vLLM makes the id a part of its own, and two live requests with one id collide there: hence one for each
    attempt and never the client's.
    """
    headers = [header for header in exchange.headers if header[0] in allowed]
    if exchange.request_id:
        headers.append((b"x-request-id", exchange.request_id.encode("ascii")))
    if authorization is not None:
        headers.append(authorization)
    return headers


def bearer(api_key: str | None) -> Header | None:
    """The authorization header for a key. Raises ValueError, without quoting the key, if it cannot be one."""
    if api_key is None:
        return None
    if not _TOKEN.fullmatch(api_key):
        raise ValueError("an API key must be printable ASCII without spaces or line breaks")
    return b"authorization", b"Bearer " + api_key.encode("ascii")
