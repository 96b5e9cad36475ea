"""Looking at candidates: each engine's verdict with its numbers, each endpoint's price and budget, and who is
best.

Every loop is bounded by the model's own targets; nothing here walks requests in flight.
"""

from typing import NamedTuple

from gateway.costs.rate import rate
from gateway.routing.decision import Candidate, Local, Numbers, Overflow
from gateway.routing.facts import RequestFacts
from gateway.routing.fleet_view import FleetView
from gateway.routing.need import Need, need_of
from gateway.routing.policy import Forbid, Policy
from gateway.routing.reasons import Reason
from gateway.routing.rules import (
    EngineView,
    capacity_blocks,
    committed_blocks,
    context_verdict,
    predicted_ttft,
    state_verdict,
)
from gateway.routing.view import EndpointFacts, EngineSnapshot, ModelTargets
from gateway.wire.usage import Usage


class JudgedEngine(NamedTuple):
    """An engine with its verdict. `servable`: it would answer if it had to, whatever the policy says."""

    view: EngineView
    verdict: Reason | None
    servable: bool

    @property
    def name(self) -> str:
        """The engine's name."""
        return self.view.snapshot.name

    def free_blocks(self) -> float:
        """Blocks left after what is promised and what others hold; 0 where the pool is unknown."""
        capacity = capacity_blocks(self.view, 1.0)
        return 0.0 if capacity is None else capacity - committed_blocks(self.view)

    def local(self) -> Local:
        """The route to it."""
        return Local(self.name, self.view.need)


def judge_engine(name: str, facts: RequestFacts, view: FleetView, policy: Policy, now: float) -> JudgedEngine:
    """One engine's verdict on one request under one policy."""
    snapshot = view.snapshots[name]
    need = _need(facts, snapshot, view, policy)
    engine = EngineView(snapshot, view.books[name], view.rates[name], need, _share(snapshot, policy, now))
    down = state_verdict(snapshot.state)
    if down is not None:
        return JudgedEngine(engine, down, servable=False)
    if not view.breakers.allows(name, now):
        return JudgedEngine(engine, Reason.ENGINE_UNREACHABLE, servable=True)
    verdict = _admission(engine, facts, policy, now) if facts.generates else None
    return JudgedEngine(engine, verdict, servable=True)


def _admission(engine: EngineView, facts: RequestFacts, policy: Policy, now: float) -> Reason | None:
    admit = policy.admit
    too_long = context_verdict(facts, engine.snapshot)
    if too_long is not None:
        return too_long
    if admit.signal.is_stale(engine.snapshot, now):
        return _stale_admission(engine, policy)
    verdict: Reason | None = None
    if admit.preemption is not None:
        verdict = admit.preemption.verdict(engine, now)
    if verdict is None and admit.queue is not None:
        verdict = admit.queue.verdict(engine)
    if verdict is None and admit.headroom is not None:
        verdict = admit.headroom.verdict(engine)
    if verdict is None and admit.ttft is not None:
        verdict = admit.ttft.verdict(engine)
    return verdict


def _stale_admission(engine: EngineView, policy: Policy) -> Reason | None:
    match policy.admit.signal.when_stale:
        case "overflow":
            return Reason.SIGNAL_STALE
        case "local":
            return None
        case "own_reservations":
            # What others held at the last scrape still counts; the queue and preemptions of then do not.
            return policy.admit.headroom.verdict(engine) if policy.admit.headroom else None


def _need(facts: RequestFacts, snapshot: EngineSnapshot, view: FleetView, policy: Policy) -> Need:
    if not facts.generates:
        return Need(facts.prompt_tokens, 0, facts.choices, snapshot.block_size or 1, 0)
    return need_of(
        facts.prompt_tokens, expected_output(facts, view, policy), facts.choices, snapshot.block_size
    )


def expected_output(facts: RequestFacts, view: FleetView, policy: Policy) -> int:
    """Output tokens per choice to reserve: learned, or the caller's own limit where the policy says so."""
    rule = policy.admit.headroom
    if rule is not None and rule.reserve == "max_tokens" and facts.max_tokens is not None:
        return facts.max_tokens
    quantile = rule.quantile if rule is not None else 0.5
    learned = view.lengths.expected_output(facts.model, max_tokens=facts.max_tokens, quantile=quantile)
    return max(learned, facts.min_tokens)


def _share(snapshot: EngineSnapshot, policy: Policy, now: float) -> float:
    if not snapshot.returned or snapshot.ready_since is None or policy.return_.ramp <= 0:
        return 1.0
    return min(1.0, max(policy.return_.floor, (now - snapshot.ready_since) / policy.return_.ramp))


def best_engine(
    engines: list[JudgedEngine], facts: RequestFacts, view: FleetView, policy: Policy
) -> tuple[JudgedEngine, Reason]:
    """The engine to take among these, and whether prefix affinity or headroom decided."""
    if policy.choose.affinity == "prefix":
        held = view.affinity.engine_for(facts.affinity_key)
        for engine in engines:
            if engine.name == held:
                return engine, Reason.AFFINITY
    if policy.choose.then == "fewest_waiting":
        return min(engines, key=lambda e: ((e.view.snapshot.waiting or 0), -e.free_blocks())), Reason.HEADROOM
    return max(engines, key=lambda e: (e.free_blocks(), -len(e.view.book))), Reason.HEADROOM


class JudgedEndpoint(NamedTuple):
    """An endpoint with its verdict and what this request is expected to cost there."""

    facts: EndpointFacts
    verdict: Reason | None
    cost: int | None
    budget_left: int | None

    def overflow(self) -> Overflow:
        """The route to it."""
        return Overflow(self.facts.name, self.facts.remote_model, self.facts.equivalent, self.cost)

    def candidate(self) -> Candidate:
        """As it is shown in the decision; amounts in USD."""
        numbers = (("expected_usd", _usd(self.cost)), ("budget_left_usd", _usd(self.budget_left)))
        return Candidate(self.facts.name, self.verdict, numbers)


def judge_endpoints(
    targets: ModelTargets, facts: RequestFacts, view: FleetView, policy: Policy, now: float, wall: float
) -> list[JudgedEndpoint]:
    """Every endpoint of the model, usable ones first in the policy's order."""
    output = expected_output(facts, view, policy) * facts.choices if facts.generates else 0
    usage = Usage(prompt=facts.prompt_tokens, cached=0, completion=output, source="estimated")
    judged = [_judge_endpoint(e, usage, view, policy.overflow.forbid, now, wall) for e in targets.endpoints]
    if policy.overflow.prefer == "cheapest":
        judged.sort(key=lambda e: (e.cost is None, e.cost or 0))
    judged.sort(key=lambda e: e.verdict is not None)
    return judged


def _judge_endpoint(
    endpoint: EndpointFacts, usage: Usage, view: FleetView, forbid: Forbid, now: float, wall: float
) -> JudgedEndpoint:
    cost = rate(usage, view.prices.get((endpoint.name, endpoint.remote_model))).amount
    left = view.budgets.left(endpoint.name, wall)
    verdict: Reason | None = None
    if forbid.regions_allowed is not None and endpoint.region not in forbid.regions_allowed:
        verdict = Reason.OVERFLOW_FORBIDDEN
    elif not view.breakers.allows(endpoint.name, now):
        verdict = Reason.OVERLOADED
    elif left is not None and (cost is None or left < max(cost, 1)):
        # A budget cannot be kept with a price that is not known: it counts as spent.
        verdict = Reason.BUDGET_SPENT
    return JudgedEndpoint(endpoint, verdict, cost, left)


def engine_candidate(engine: JudgedEngine, policy: Policy, now: float) -> Candidate:
    """As it is shown in the decision."""
    snapshot, view = engine.view.snapshot, engine.view
    limit = policy.admit.headroom.limit if policy.admit.headroom else 1.0
    age = None if snapshot.scraped_at is None else now - snapshot.scraped_at
    numbers: Numbers = (
        ("needed_blocks", view.need.blocks),
        ("committed_blocks", committed_blocks(view)),
        ("capacity_blocks", capacity_blocks(view, limit)),
        ("waiting", snapshot.waiting),
        ("predicted_ttft_seconds", predicted_ttft(view)),
        ("signal_age_seconds", age),
    )
    return Candidate(engine.name, engine.verdict, numbers)


def _usd(pico: int | None) -> float | None:
    return None if pico is None else pico / 1e12
