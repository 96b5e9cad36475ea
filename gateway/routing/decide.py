"""The decision: which target serves a request, and why. Pure; the shell reserves and sends what it says.

Order of thought: what policy or caller pin; which engines admit it; else, may it leave, for this cause,
within budget; else, which engine must take it anyway; else, refuse.
"""

from dataclasses import replace

from gateway.routing.choose import (
    JudgedEngine,
    best_engine,
    engine_candidate,
    judge_endpoints,
    judge_engine,
)
from gateway.routing.decision import Decision, Hold, Local, Overflow, Route, Shed
from gateway.routing.facts import RequestFacts
from gateway.routing.fleet_view import FleetView
from gateway.routing.policy import OverflowWhen, Policy
from gateway.routing.reasons import Reason
from gateway.routing.rules import capacity_blocks, committed_blocks
from gateway.routing.value import value_of
from gateway.routing.view import ModelTargets

# Why no engine admits it -> the word under `overflow.when`. Order: the nearest engine's objection is the
# reason given.
CAUSES: dict[Reason, OverflowWhen] = {
    Reason.KV_FULL: "headroom",
    Reason.LOW_VALUE: "headroom",
    Reason.TTFT_SLO: "ttft",
    Reason.QUEUE_LONG: "queue",
    Reason.PREEMPTING: "preempting",
    Reason.SIGNAL_STALE: "stale",
    Reason.ENGINE_BOOTING: "booting",
    Reason.DRAINING: "unreachable",
    Reason.ENGINE_UNREACHABLE: "unreachable",
    Reason.ENGINE_UNBOOTABLE: "unbootable",
    Reason.CONTEXT_TOO_LONG: "context",
}
_NEAREST = {reason: place for place, reason in enumerate(CAUSES)}
# Seconds a client is asked to wait: a scrape or two for pressure, longer for an engine that is away.
_RETRY_SOON = 1.0
_RETRY_LATER = 5.0
_RETRY_BUDGET = 60.0


def decide(facts: RequestFacts, view: FleetView, policy: Policy, now: float, wall: float) -> Decision:
    """Choose a route for `facts` (facts.model is a configured name).

    `now`: monotonic seconds, the clock of snapshots and breakers. `wall`: UTC epoch seconds, the clock of
    budgets.
    """
    return _Deciding(facts, view, policy, now, wall).decide()


class _Deciding:
    """One decision under way: the candidates, and the steps that look at them."""

    def __init__(self, facts: RequestFacts, view: FleetView, policy: Policy, now: float, wall: float) -> None:
        self.facts, self.view, self.policy, self.now = facts, view, policy, now
        targets = view.models[facts.model]
        self.engines = [judge_engine(name, facts, view, policy, now) for name in targets.engines]
        self.endpoints = judge_endpoints(targets, facts, view, policy, now, wall)
        self.forbidden = self._forbidden(targets)

    def decide(self) -> Decision:
        if not self.forbidden and self._leaves_always():
            return self._pinned_overflow()
        if self.forbidden and self.facts.overflow_wish == "only":
            # The caller wants no engine, and no endpoint may have it: neither wish is broken for the other.
            return self._made(Shed(503, _RETRY_LATER), Reason.OVERFLOW_FORBIDDEN)
        if self.policy.shadow:
            return self._shadow()
        return self._by_admission()

    def _leaves_always(self) -> bool:
        return self.policy.pin == "overflow" or self.facts.overflow_wish == "only"

    def _by_admission(self) -> Decision:
        admitted = [e for e in self.engines if e.verdict is None]
        if not admitted:
            return self._without_engine(self._nearest_objection())
        engine, reason = best_engine(admitted, self.facts, self.view, self.policy)
        if self._leaves_first(engine):
            return self._without_engine(Reason.LOW_VALUE, instead=engine.local())
        if len(self.engines) == 1 and self.forbidden:
            reason = Reason.ONLY_CHOICE
        return self._made(engine.local(), reason)

    def _without_engine(self, cause: Reason, instead: Local | None = None) -> Decision:
        """No engine should take it. `instead`: the engine that could, where only its value speaks for
        leaving."""
        wants_out = not self.forbidden and CAUSES[cause] in self.policy.overflow.when
        usable = [e for e in self.endpoints if e.verdict is None] if wants_out else []
        if usable:
            return self._made(usable[0].overflow(), cause)
        if instead is not None:
            return self._made(instead, Reason.HEADROOM)
        if wants_out and any(e.verdict is Reason.BUDGET_SPENT for e in self.endpoints):
            return self._at_budget_cap()
        return self._must_stay()

    def _must_stay(self) -> Decision:
        servable = [e for e in self.engines if e.servable]
        if servable:
            engine, _ = best_engine(servable, self.facts, self.view, self.policy)
            return self._made(engine.local(), Reason.ONLY_CHOICE)
        reason = Reason.OVERFLOW_FORBIDDEN if self.forbidden and self.endpoints else Reason.NO_TARGET
        return self._made(Shed(503, _RETRY_LATER), reason)

    def _at_budget_cap(self) -> Decision:
        refusal = Shed(429, _RETRY_BUDGET)
        match self.policy.overflow.at_budget_cap:
            case "shed":
                return self._made(refusal, Reason.BUDGET_SPENT)
            case "local":
                return self._must_stay()
            case "queue":
                can_wait = any(e.servable for e in self.engines)
                return self._made(Hold(refusal) if can_wait else refusal, Reason.BUDGET_SPENT)

    def _pinned_overflow(self) -> Decision:
        usable = [e for e in self.endpoints if e.verdict is None]
        if usable:
            return self._made(usable[0].overflow(), Reason.PINNED)
        if any(e.verdict is Reason.BUDGET_SPENT for e in self.endpoints):
            return self._made(Shed(429, _RETRY_BUDGET), Reason.BUDGET_SPENT)
        if self.endpoints:
            return self._made(Shed(503, _RETRY_SOON), Reason.OVERLOADED)
        return self._made(Shed(503, _RETRY_LATER), Reason.NO_TARGET)

    def _shadow(self) -> Decision:
        wanted = self._by_admission()
        if isinstance(wanted.route, Local):
            return wanted
        return replace(self._must_stay(), shadowed=wanted.reason)

    def _nearest_objection(self) -> Reason:
        verdicts = [e.verdict for e in self.engines if e.verdict is not None]
        return min(verdicts, key=_NEAREST.__getitem__, default=Reason.ENGINE_UNREACHABLE)

    def _forbidden(self, targets: ModelTargets) -> bool:
        """May this request not leave the engines, whatever happens?"""
        facts, policy = self.facts, self.policy
        return (
            policy.pin == "local"
            or facts.overflow_wish == "never"
            or facts.key in policy.overflow.forbid.keys
            or not facts.endpoint_can_serve
            or bool(facts.local_only_fields)
            or not targets.endpoints
        )

    def _leaves_first(self, engine: JudgedEngine) -> bool:
        if self.forbidden or self.policy.overflow.spill_first != "lowest_value" or not self.facts.generates:
            return False
        capacity = capacity_blocks(
            engine.view, self.policy.admit.headroom.limit if self.policy.admit.headroom else 1.0
        )
        value = self._value(engine)
        if capacity is None or capacity <= 0 or value is None:
            return False
        return self.view.values.is_low(
            value, (committed_blocks(engine.view) + engine.view.need.blocks) / capacity
        )

    def _value(self, engine: JudgedEngine) -> float | None:
        need = engine.view.need
        return value_of(self._expected_overflow(), need.blocks, need.expected_output)

    def _expected_overflow(self) -> int | None:
        return self.endpoints[0].cost if self.endpoints else None

    def _made(self, route: Local | Overflow | Shed | Hold, reason: Reason) -> Decision:
        shown = [engine_candidate(e, self.policy, self.now) for e in self.engines]
        return Decision(
            model=self.facts.model,
            policy=self.policy.name,
            route=route,
            reason=reason,
            fallbacks=self._fallbacks(route),
            candidates=(*shown, *(e.candidate() for e in self.endpoints)),
            expected_overflow=self._expected_overflow(),
            decided_at=self.now,
            may_overflow=not self.forbidden,
        )

    def _fallbacks(self, route: Local | Overflow | Shed | Hold) -> tuple[Route, ...]:
        """Who comes after the chosen target: engines that admit it, endpoints, engines that could take it.

        A pinned request has its own kind only, and so has one under a shadow policy. Whether a failure is a
        cause to leave for, the policy says when it has happened (routing.retry).
        """
        endpoints = (
            [] if self.forbidden or self.policy.shadow else [e for e in self.endpoints if e.verdict is None]
        )
        if self._leaves_always() and not self.forbidden:
            return tuple(r for r in (e.overflow() for e in endpoints) if r != route)
        admitted = [e.local() for e in self.engines if e.verdict is None]
        crowded = [e.local() for e in self.engines if e.verdict is not None and e.servable]
        ranked: list[Route] = [*admitted, *(e.overflow() for e in endpoints), *crowded]
        return tuple(r for r in ranked if r != route)
