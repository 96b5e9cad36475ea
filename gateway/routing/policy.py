"""A routing policy: what an engine must show, who is chosen, what may leave, how failures are answered.

The fields are the YAML keys of a policy file. config derives parsing, errors and the JSON Schema from the
types and docstrings here (a trailing underscore, as in `return_`, is not part of the key); this module knows
nothing of YAML.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, MinLen

from gateway.routing.rules import HeadroomRule, PreemptionRule, QueueRule, SignalRule, TtftRule
from gateway.routing.units import Seconds

OverflowWhen = Literal[
    "headroom", "queue", "ttft", "preempting", "context", "stale", "unreachable", "booting", "unbootable"
]
ALL_OVERFLOW_CAUSES: tuple[OverflowWhen, ...] = (
    "headroom", "queue", "ttft", "preempting", "context", "stale", "unreachable", "booting", "unbootable",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Admit:
    """What an engine must show before it is given a request. `queue` and `ttft` ask only where they are
    given."""

    headroom: HeadroomRule | None = field(default_factory=HeadroomRule)
    queue: QueueRule | None = None
    ttft: TtftRule | None = None
    preemption: PreemptionRule | None = field(default_factory=PreemptionRule)
    signal: SignalRule = field(default_factory=SignalRule)


@dataclass(frozen=True, slots=True)
class Choose:
    """Which of the admissible engines is taken."""

    affinity: Literal["prefix", "none"] = "prefix"
    then: Literal["most_headroom", "fewest_waiting"] = "most_headroom"


@dataclass(frozen=True, slots=True)
class Forbid:
    """Requests that never leave the engines, and regions that endpoints must be in.

    `header` is `name: value`; a request that carries it stays local. `keys` are client key names.
    """

    header: str = "x-spillgate-overflow: never"
    keys: tuple[str, ...] = ()
    regions_allowed: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class OverflowRules:
    """When a request may go to a per-token endpoint, and to which.

    `at_budget_cap` says what happens to a request that would overflow when the endpoint's budget is spent:
    `queue` holds it in the gateway until an engine admits it, `local` gives it to the best engine regardless,
    `shed` refuses it.
    """

    when: tuple[OverflowWhen, ...] = ALL_OVERFLOW_CAUSES
    prefer: Literal["cheapest", "listed"] = "cheapest"
    spill_first: Literal["lowest_value", "last_come"] = "last_come"
    at_budget_cap: Literal["queue", "shed", "local"] = "queue"
    forbid: Forbid = field(default_factory=Forbid)


@dataclass(frozen=True, slots=True)
class Return:
    """How traffic comes back to an engine that was away: its share grows from `floor` to 1 over `ramp`."""

    ramp: Seconds = 30.0
    floor: Annotated[float, Ge(0), Le(1)] = 0.05


@dataclass(frozen=True, slots=True)
class Retry:
    """Attempts per request, and the share of requests in flight that may be second attempts (at least 3 at a
    time)."""

    attempts: Annotated[int, Ge(1), Le(5)] = 2
    share: Annotated[float, Ge(0), Le(1)] = 0.2


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Clocks of one attempt. There is no total limit: a long answer that keeps coming is a good answer."""

    connect: Annotated[Seconds, Gt(0)] = 3.0
    first_byte: Annotated[Seconds, Gt(0)] = 60.0
    between_events: Annotated[Seconds, Gt(0)] = 60.0
    client_stall: Annotated[Seconds, Gt(0)] = 30.0


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy file.

    `pin` fixes the route: `local` never leaves the engines, `overflow` always does (handover). `shadow`
    decides and records as if the policy were in force, but serves everything locally.
    """

    name: Annotated[str, MinLen(1)]
    admit: Admit = field(default_factory=Admit)
    choose: Choose = field(default_factory=Choose)
    overflow: OverflowRules = field(default_factory=OverflowRules)
    return_: Return = field(default_factory=Return)
    retry: Retry = field(default_factory=Retry)
    deadlines: Deadlines = field(default_factory=Deadlines)
    pin: Literal["auto", "local", "overflow"] = "auto"
    shadow: bool = False
