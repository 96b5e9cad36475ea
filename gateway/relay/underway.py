"""One attempt and what carrying it out needs. Only a type."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.relay.admitted import Admitted
from gateway.relay.attempt_log import AttemptLog
from gateway.relay.client import Client
from gateway.relay.stake import Stake
from gateway.upstreams.base import Header, UpstreamResponse


@dataclass(frozen=True, slots=True)
class Underway:
    """`complete` closes the record: called before the last byte goes out. `headers` makes the client's
    headers."""

    admitted: Admitted
    attempt: AttemptLog
    client: Client
    stake: Stake
    clock: Callable[[], float]
    complete: Callable[[], None]
    headers: Callable[[UpstreamResponse], list[Header]]
