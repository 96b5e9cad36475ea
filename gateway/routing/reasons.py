"""Why a request took its route: a closed set of codes and the words for each.

Header, log, dashboard and report render these; nobody else writes reason text.
"""

from enum import StrEnum


class Reason(StrEnum):
    """Codes of interface.md §4. The value is what headers, metrics and the ledger carry."""

    HEADROOM = "headroom"
    AFFINITY = "affinity"
    ONLY_CHOICE = "only_choice"
    KV_FULL = "kv_full"
    QUEUE_LONG = "queue_long"
    PREEMPTING = "preempting"
    TTFT_SLO = "ttft_slo"
    LOW_VALUE = "low_value"
    CONTEXT_TOO_LONG = "context_too_long"
    SIGNAL_STALE = "signal_stale"
    ENGINE_UNREACHABLE = "engine_unreachable"
    ENGINE_BOOTING = "engine_booting"
    ENGINE_UNBOOTABLE = "engine_unbootable"
    ENGINE_REFUSED = "engine_refused"
    ATTEMPT_FAILED = "attempt_failed"
    PINNED = "pinned"
    BUDGET_SPENT = "budget_spent"
    OVERFLOW_FORBIDDEN = "overflow_forbidden"
    NO_TARGET = "no_target"
    OVERLOADED = "overloaded"
    DRAINING = "draining"


MEANING: dict[Reason, str] = {
    Reason.HEADROOM: "an engine has KV headroom for it",
    Reason.AFFINITY: "the engine that holds its prefix has headroom",
    Reason.ONLY_CHOICE: "no other target may serve it",
    Reason.KV_FULL: "its KV blocks would not fit beside what is held and promised",
    Reason.QUEUE_LONG: "the engine's queue is longer than the policy allows",
    Reason.PREEMPTING: "the engine preempts running requests",
    Reason.TTFT_SLO: "its first token would come later than the policy allows",
    Reason.LOW_VALUE: "under pressure, requests that are cheap elsewhere leave first",
    Reason.CONTEXT_TOO_LONG: "it is longer than the engine's context window",
    Reason.SIGNAL_STALE: "the engine's signals are too old to admit by",
    Reason.ENGINE_UNREACHABLE: "no engine answers",
    Reason.ENGINE_BOOTING: "the engine is still starting",
    Reason.ENGINE_UNBOOTABLE: "the engine cannot start with its configuration",
    Reason.ENGINE_REFUSED: "the engine itself refused it at admission",
    Reason.ATTEMPT_FAILED: "an earlier attempt failed before any answer",
    Reason.PINNED: "policy or request header names the route",
    Reason.BUDGET_SPENT: "the endpoint's budget is spent",
    Reason.OVERFLOW_FORBIDDEN: "it may not leave the engines, and none can take it",
    Reason.NO_TARGET: "no target serves this model now",
    Reason.OVERLOADED: "every target is full",
    Reason.DRAINING: "the gateway is shutting down",
}
