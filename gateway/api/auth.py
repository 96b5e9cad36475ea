"""Who is asking: a client key, or anybody where no keys are configured. Every refusal is the same 401."""

from gateway.api.errors import rejection
from gateway.config.keys import KeyEntry, KeyRing


def authenticate(keys: KeyRing | None, headers: dict[bytes, bytes]) -> KeyEntry | None:
    """The key's entry; None where the gateway is open. Raises Rejected (401).

    The key is taken from `Authorization: Bearer`, or from `x-api-key`, as Anthropic's SDK sends it.
    """
    if keys is None:
        return None
    scheme, _, value = headers.get(b"authorization", b"").partition(b" ")
    presented = value.strip() if scheme.lower() == b"bearer" else headers.get(b"x-api-key", b"")
    entry = keys.find(presented)
    if entry is None:
        raise rejection("invalid_api_key")
    return entry
