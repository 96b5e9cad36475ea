"""What deciding sees of the fleet: the last scrape of every engine, by reference, nothing copied per
request."""

from dataclasses import dataclass, field
from enum import StrEnum


class EngineState(StrEnum):
    """An engine as routing sees it. `preempting` and `draining` engines are up but take no new work by
    default."""

    UNKNOWN = "unknown"
    BOOTING = "booting"
    READY = "ready"
    PREEMPTING = "preempting"
    UNREACHABLE = "unreachable"
    HUNG = "hung"
    ASLEEP = "asleep"
    DRAINING = "draining"
    UNBOOTABLE = "unbootable"


@dataclass(frozen=True, slots=True)
class EngineSnapshot:
    """One engine as last scraped; times are monotonic seconds. A figure the engine does not expose is None.

    `usable_blocks` and `used_blocks` are over all data-parallel ranks: usable is the sum without each rank's
    null block, used is the fullest rank's share times usable, since the gateway cannot choose the rank.
    `own_blocks` is what our own reservations held when the page was read: what the scrape shows beyond it is
    foreign traffic. `preemptions` are (when seen, how many) of recent scrapes, oldest first.
    """

    name: str
    state: EngineState = EngineState.UNKNOWN
    cause: str | None = None
    scraped_at: float | None = None
    ready_since: float | None = None
    # False for an engine that has been ready since the gateway started: nothing to ramp back from.
    returned: bool = False
    usable_blocks: int | None = None
    block_size: int | None = None
    used_blocks: int | None = None
    own_blocks: int = 0
    running: int | None = None
    waiting: int | None = None
    preemptions: tuple[tuple[float, int], ...] = ()
    preemptions_total: int = 0
    max_model_len: int | None = None
    served_models: tuple[str, ...] = ()
    vllm_version: str | None = None
    ranks: int = 1


@dataclass(frozen=True, slots=True)
class EndpointFacts:
    """One endpoint as deciding sees it for one model: what it is called there and what it costs (exact, see
    costs)."""

    name: str
    remote_model: str
    region: str | None = None
    equivalent: bool = True


@dataclass(frozen=True, slots=True)
class ModelTargets:
    """Who may serve a model, in the order of the config."""

    name: str
    engines: tuple[str, ...] = ()
    endpoints: tuple[EndpointFacts, ...] = ()
    policy: str = "balanced"
    # The name under which each engine serves it, where that differs from `name`.
    engine_names: dict[str, str] = field(default_factory=dict)
