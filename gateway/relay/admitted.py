"""A request as intake hands it over: authenticated, within limits, read as far as deciding needs."""

from dataclasses import dataclass

from gateway.routing.facts import RequestFacts
from gateway.routing.policy import Policy
from gateway.upstreams.base import Header
from gateway.wire.body import JsonObject
from gateway.wire.paths import Path
from gateway.wire.request import Peek


@dataclass(frozen=True, slots=True)
class Admitted:
    """`body` is what the client sent, to the byte; `parsed` is the same with the spans of its members (None
    where the path carries no JSON object). `headers` are those that the allow-list let through."""

    request_id: str
    path: Path
    body: bytes
    parsed: JsonObject | None
    peek: Peek
    facts: RequestFacts
    policy: Policy
    headers: tuple[Header, ...]
    requested_model: str | None
    key: str | None
    tags: str | None
    arrived_at: float
    arrived_utc: str
    # Whether the answer may say what it cost: always where the gateway is open, else as the key says.
    shows_costs: bool = True

    @property
    def streams(self) -> bool:
        """Did the client ask for a stream on a path that has one?"""
        return self.path.streams and self.peek.stream
