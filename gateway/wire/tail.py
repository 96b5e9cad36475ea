"""What vLLM's last chunk carries, put back where it would have been had nobody asked for usage.

vLLM closes a stream with `system_fingerprint` on its last chunk (0.32 entrypoints/openai). Asked for usage it
sends one chunk more, and that is then the last: who takes that chunk out must give the one before its closing
members.
"""

from gateway.wire.body import BadBody, JsonObject
from gateway.wire.sse import payload


def with_closing_members(last: bytes, usage_event: bytes) -> bytes:
    """`last` (an event whose data is one JSON object) with the members that follow `usage` in `usage_event`.

    Unchanged where there are none, or where either event is not of that shape.
    """
    try:
        closing = _behind_usage(JsonObject.parse(payload(usage_event)))
    except BadBody:
        return last
    at = last.rfind(b"}")
    return last if not closing or at < 0 else last[:at] + closing + last[at:]


def _behind_usage(chunk: JsonObject) -> bytes:
    """From the comma behind the usage object to the end of the last member."""
    usage = chunk.members.get("usage")
    if usage is None:
        return b""
    end = max(member.end for member in chunk.members.values())
    return chunk.raw.decode()[usage.end : end].encode()
