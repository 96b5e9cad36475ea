"""The parts of a gateway that does not run, and requests and attempts made against them."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from gateway.api.intake import Arrival, Intake
from gateway.ledger.records import Record
from gateway.relay.admitted import Admitted
from gateway.relay.attempt_log import AttemptLog
from gateway.relay.dispatch import exchange_for
from gateway.relay.parts import RelayParts
from gateway.routing.decision import Local, Overflow, Route
from gateway.routing.need import need_of
from gateway.routing.reasons import Reason
from gateway.upstreams.base import Header
from gateway.wire.paths import find

LOCAL = Local("a", need_of(100, 20, 1, 16))
FAR = Overflow("serverless", "tiny-remote", True, 1_000_000)


@dataclass
class Sink:
    """A journal in memory."""

    records: list[Record] = field(default_factory=list)

    def append(self, record: Record) -> None:
        self.records.append(record)


@dataclass
class Bench:
    """What relay's own modules are given, with a clock that stands still until a test moves it."""

    parts: RelayParts
    sink: Sink
    intake: Intake
    times: list[float]
    local: Local = LOCAL
    far: Overflow = FAR

    def pass_time(self, seconds: float) -> None:
        self.times[0] += seconds

    def admit(
        self, path: str = "/v1/chat/completions", headers: tuple[Header, ...] = (), **fields: Any
    ) -> Admitted:
        found = find("POST", path)
        assert found is not None
        body: dict[str, Any] = {
            "model": "tiny",
            "messages": [{"role": "user", "content": "hello"}],
            "max_tokens": 5,
        }
        raw = [(b"content-type", b"application/json"), *headers]
        utc = datetime.now(UTC).isoformat(timespec="microseconds")
        arrival = Arrival(found, dict(raw), raw, "r1", self.times[0], utc)
        return self.intake.admit(arrival, json.dumps(body | fields).encode())

    def attempt(self, admitted: Admitted, route: Route = LOCAL, n: int = 1, **fields: Any) -> AttemptLog:
        made = AttemptLog(
            n, route, Reason.HEADROOM, exchange_for(admitted, route, self.parts.view, n),
            datetime.now(UTC).isoformat(timespec="microseconds"), self.times[0],
        )  # fmt: skip
        for name, value in fields.items():
            setattr(made, name, value)
        return made
