"""The decision, rule by rule and state by state."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.decide import CAUSES, decide
from gateway.routing.decision import Decision, Hold, Local, Overflow, Shed
from gateway.routing.facts import RequestFacts
from gateway.routing.fleet_view import FleetView
from gateway.routing.policy import Admit, Forbid, OverflowRules, Policy
from gateway.routing.reasons import Reason
from gateway.routing.rules import HeadroomRule, QueueRule, SignalRule, TtftRule
from gateway.routing.view import EndpointFacts, EngineSnapshot, EngineState

Make = Callable[..., Any]
NOW = 100.5
WALL = 1_800_000_000.0


def reserve(view: FleetView, engine: str, blocks: int) -> None:
    view.books[engine].reserve(
        prompt_tokens=blocks * 32,
        expected_output=0,
        max_output=0,
        choices=1,
        block_size=32,
        streams=True,
        now=NOW,
    )


@pytest.fixture
def choose(fleet: Make, facts: Make, policy: Policy) -> Callable[..., Decision]:
    def run(
        *snapshots: EngineSnapshot, view: FleetView | None = None, policy: Policy = policy, **wants: Any
    ) -> Decision:
        return decide(facts(**wants), view or fleet(*snapshots), policy, NOW, WALL)

    return run


def test_an_engine_with_headroom_gets_the_request(choose: Make, snapshot: Make) -> None:
    decision = choose(snapshot())
    assert isinstance(decision.route, Local)
    assert decision.reason is Reason.HEADROOM
    assert decision.route.need.blocks == 7


def test_what_was_promised_counts_though_no_scrape_shows_it(
    choose: Make, snapshot: Make, fleet: Make
) -> None:
    view = fleet(snapshot())
    reserve(view, "a", 55)
    decision = choose(view=view)
    assert isinstance(decision.route, Overflow)
    assert decision.reason is Reason.KV_FULL


def test_foreign_traffic_counts_and_our_own_is_not_counted_twice(
    choose: Make, snapshot: Make, fleet: Make
) -> None:
    ours = fleet(snapshot(used_blocks=50, own_blocks=50))
    assert isinstance(choose(view=ours).route, Local)
    assert choose(snapshot(used_blocks=58, own_blocks=0)).reason is Reason.KV_FULL


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (EngineState.UNREACHABLE, Reason.ENGINE_UNREACHABLE),
        (EngineState.HUNG, Reason.ENGINE_UNREACHABLE),
        (EngineState.ASLEEP, Reason.ENGINE_UNREACHABLE),
        (EngineState.BOOTING, Reason.ENGINE_BOOTING),
        (EngineState.UNBOOTABLE, Reason.ENGINE_UNBOOTABLE),
        (EngineState.DRAINING, Reason.DRAINING),
    ],
)
def test_an_engine_that_is_away_sends_its_traffic_to_the_endpoint(
    choose: Make, snapshot: Make, state: EngineState, reason: Reason
) -> None:
    decision = choose(snapshot(state=state))
    assert isinstance(decision.route, Overflow)
    assert decision.reason is reason


def test_a_stale_signal_is_never_read_as_free(choose: Make, snapshot: Make, policy: Policy) -> None:
    overflow = replace(policy, admit=replace(policy.admit, signal=SignalRule(when_stale="overflow")))
    assert choose(snapshot(scraped_at=90.0), policy=overflow).reason is Reason.SIGNAL_STALE
    # by own reservations: foreign blocks of the last scrape still count
    assert choose(snapshot(scraped_at=90.0, used_blocks=60)).reason is Reason.KV_FULL
    assert isinstance(choose(snapshot(scraped_at=90.0)).route, Local)


def test_an_unknown_pool_takes_a_few_requests_and_no_more(choose: Make, snapshot: Make, fleet: Make) -> None:
    view = fleet(snapshot(usable_blocks=None, state=EngineState.UNKNOWN))
    for _ in range(4):
        assert isinstance(choose(view=view).route, Local)
        reserve(view, "a", 1)
    assert choose(view=view).reason is Reason.SIGNAL_STALE


def test_preemptions_in_the_window_hold_new_work_back_until_quiet(choose: Make, snapshot: Make) -> None:
    assert choose(snapshot(preemptions=((95.0, 1),))).reason is Reason.PREEMPTING
    assert isinstance(choose(snapshot(preemptions=((80.0, 1),))).route, Local)


def test_queue_and_predicted_wait_are_asked_when_the_policy_asks(
    choose: Make, snapshot: Make, fleet: Make, policy: Policy
) -> None:
    strict = replace(policy, admit=Admit(queue=QueueRule(2), ttft=TtftRule(1.0)))
    assert choose(snapshot(waiting=3), policy=strict).reason is Reason.QUEUE_LONG
    view = fleet(snapshot())
    view.rates["a"].learn(tokens_ahead=0, prompt_tokens=100, seconds=2.0)
    assert choose(view=view, policy=strict).reason is Reason.TTFT_SLO


def test_a_prompt_beyond_the_window_leaves_and_stays_where_it_may_not(
    choose: Make, snapshot: Make, policy: Policy
) -> None:
    assert choose(snapshot(), prompt_tokens=5000).reason is Reason.CONTEXT_TOO_LONG
    stays = choose(snapshot(), prompt_tokens=5000, overflow_wish="never")
    assert isinstance(stays.route, Local)
    assert stays.reason is Reason.ONLY_CHOICE


@pytest.mark.parametrize(
    "wants",
    [
        {"overflow_wish": "never"},
        {"key": "hr-team"},
        {"local_only_fields": ("structured_outputs",)},
        {"endpoint_can_serve": False},
    ],
)
def test_a_request_that_may_not_leave_never_meets_an_endpoint(
    choose: Make, snapshot: Make, policy: Policy, wants: dict[str, Any]
) -> None:
    strict = replace(policy, overflow=OverflowRules(forbid=Forbid(keys=("hr-team",))))
    full = choose(snapshot(used_blocks=63), policy=strict, **wants)
    assert isinstance(full.route, Local)
    down = choose(snapshot(state=EngineState.UNREACHABLE), policy=strict, **wants)
    assert isinstance(down.route, Shed)
    assert down.reason is Reason.OVERFLOW_FORBIDDEN
    assert down.route.status == 503
    for decision in (full, down):
        assert not decision.may_overflow
        assert not any(isinstance(r, Overflow) for r in decision.fallbacks)


def test_pins_hold(choose: Make, snapshot: Make, policy: Policy) -> None:
    assert choose(snapshot(), overflow_wish="only").reason is Reason.PINNED
    handover = choose(snapshot(), policy=replace(policy, pin="overflow"))
    assert isinstance(handover.route, Overflow)
    stays = choose(snapshot(used_blocks=63), policy=replace(policy, pin="local"))
    assert isinstance(stays.route, Local)


def test_a_request_that_wants_no_engine_and_may_not_leave_is_refused(choose: Make, snapshot: Make) -> None:
    decision = choose(snapshot(), overflow_wish="only", local_only_fields=("structured_outputs",))
    assert isinstance(decision.route, Shed)
    assert decision.reason is Reason.OVERFLOW_FORBIDDEN


def test_what_is_pinned_to_endpoints_never_falls_back_to_an_engine(
    choose: Make, snapshot: Make, fleet: Make, policy: Policy
) -> None:
    view = fleet(snapshot(), endpoints=(EndpointFacts("first", "m"), EndpointFacts("second", "m")))
    for decision in (
        choose(view=view, overflow_wish="only"),
        choose(view=view, policy=replace(policy, pin="overflow", overflow=OverflowRules(when=()))),
    ):
        assert [r.endpoint for r in decision.fallbacks] == ["second"]


def test_a_shadow_policy_never_sends_anything_out_not_even_after_a_failure(
    choose: Make, snapshot: Make, policy: Policy
) -> None:
    shadow = replace(policy, shadow=True)
    for used in (0, 63):
        assert not any(
            isinstance(r, Overflow) for r in choose(snapshot(used_blocks=used), policy=shadow).fallbacks
        )


def test_a_cause_that_the_policy_does_not_name_does_not_leave(
    choose: Make, snapshot: Make, policy: Policy
) -> None:
    for reason, cause in CAUSES.items():
        assert cause in Policy("x").overflow.when, reason
    narrow = replace(policy, overflow=OverflowRules(when=("unreachable",)))
    full = choose(snapshot(used_blocks=63), policy=narrow)
    assert isinstance(full.route, Local)
    assert full.reason is Reason.ONLY_CHOICE


@pytest.mark.parametrize(("cap", "route"), [("shed", Shed), ("local", Local), ("queue", Hold)])
def test_a_spent_budget_is_answered_as_the_policy_says(
    choose: Make, snapshot: Make, fleet: Make, policy: Policy, cap: Any, route: type
) -> None:
    view = fleet(snapshot(used_blocks=63), budgets={"serverless": (10, None)})
    decision = choose(view=view, policy=replace(policy, overflow=OverflowRules(at_budget_cap=cap)))
    assert isinstance(decision.route, route)
    if route is not Local:
        assert decision.reason is Reason.BUDGET_SPENT


def test_promised_money_counts_against_the_budget(choose: Make, snapshot: Make, fleet: Make) -> None:
    view = fleet(snapshot(used_blocks=63), budgets={"serverless": (150_000_000, None)})
    first = choose(view=view)
    assert isinstance(first.route, Overflow)
    assert first.route.promise == 110_000_000
    view.budgets.promise("serverless", first.route.promise)
    assert choose(view=view).reason is Reason.BUDGET_SPENT


def test_regions_are_a_wall(choose: Make, snapshot: Make, fleet: Make, policy: Policy) -> None:
    view = fleet(
        snapshot(used_blocks=63),
        endpoints=(EndpointFacts("us", "m", "us-east"), EndpointFacts("eu", "m", "eu-north")),
    )
    only_eu = replace(policy, overflow=OverflowRules(forbid=Forbid(regions_allowed=("eu-north",))))
    decision = choose(view=view, policy=only_eu)
    assert isinstance(decision.route, Overflow)
    assert decision.route.endpoint == "eu"
    assert all(r.endpoint == "eu" for r in decision.fallbacks if isinstance(r, Overflow))


def test_the_engine_with_most_room_is_taken_and_affinity_comes_first(
    choose: Make, snapshot: Make, fleet: Make
) -> None:
    view = fleet(snapshot("a", used_blocks=30), snapshot("b"))
    assert choose(view=view).route.engine == "b"
    view.affinity.served(7, "a")
    held = choose(view=view, affinity_key=7)
    assert (held.route.engine, held.reason) == ("a", Reason.AFFINITY)


def test_an_engine_that_returned_takes_a_growing_share(choose: Make, snapshot: Make) -> None:
    fresh = snapshot(returned=True, ready_since=100.0)
    assert choose(fresh).reason is Reason.KV_FULL
    assert isinstance(choose(snapshot(returned=True, ready_since=60.0)).route, Local)


def test_shadow_serves_locally_and_says_what_it_would_have_done(
    choose: Make, snapshot: Make, policy: Policy
) -> None:
    decision = choose(snapshot(used_blocks=63), policy=replace(policy, shadow=True))
    assert isinstance(decision.route, Local)
    assert decision.shadowed is Reason.KV_FULL


def test_cheap_requests_leave_first_under_pressure(
    choose: Make, snapshot: Make, fleet: Make, policy: Policy
) -> None:
    spill = replace(policy, overflow=OverflowRules(spill_first="lowest_value"))
    view = fleet(snapshot(used_blocks=50))
    for _ in range(40):
        view.values.add(1e9)
    assert choose(view=view, policy=spill).reason is Reason.LOW_VALUE
    assert isinstance(choose(view=fleet(snapshot(used_blocks=50)), policy=spill).route, Local)


def test_nothing_to_serve_it_is_a_refusal_to_try_again(choose: Make, snapshot: Make, fleet: Make) -> None:
    view = fleet(snapshot(state=EngineState.UNREACHABLE), endpoints=())
    decision = choose(view=view)
    assert decision.reason is Reason.NO_TARGET
    assert isinstance(decision.route, Shed)
    assert decision.route.retry_after > 0


def test_a_cooled_down_engine_is_used_when_nothing_else_may_serve(
    choose: Make, snapshot: Make, fleet: Make
) -> None:
    view = fleet(snapshot(), endpoints=())
    for _ in range(3):
        view.breakers.failed("a", NOW)
    decision = choose(view=view)
    assert isinstance(decision.route, Local)
    assert decision.reason is Reason.ONLY_CHOICE


states = st.sampled_from(list(EngineState))
small = st.integers(0, 70)


@given(
    engines=st.lists(
        st.tuples(states, small, small, st.integers(0, 9), st.booleans()), min_size=0, max_size=4
    ),
    wish=st.sampled_from(["never", "allow", "only"]),
    pin=st.sampled_from(["auto", "local", "overflow"]),
    has_endpoint=st.booleans(),
    limit=st.sampled_from([None, 1]),
)
def test_every_decision_is_lawful(
    engines: Any, wish: Any, pin: Any, has_endpoint: bool, limit: int | None
) -> None:
    """Over all states: what may not leave stays, down engines get nothing, and an admitted request fits."""
    view = _view(engines, has_endpoint, limit)
    request = RequestFacts(model="m", prompt_tokens=100, max_tokens=100, overflow_wish=wish)
    chosen = replace(Policy("p"), pin=pin, admit=Admit(headroom=HeadroomRule(limit=0.9)))
    decision = decide(request, view, chosen, NOW, WALL)
    if wish == "never" or pin == "local":
        assert not isinstance(decision.route, Overflow)
    match decision.route:
        case Local(engine=name, need=need):
            state = view.snapshots[name].state
            assert state in (EngineState.READY, EngineState.PREEMPTING, EngineState.UNKNOWN)
            if decision.reason in (Reason.HEADROOM, Reason.AFFINITY):
                assert view.books[name].promised_blocks + need.blocks <= 63 * 0.9
        case Overflow(endpoint=name):
            assert name == "serverless"
            assert view.budgets.left(name, WALL) is None
        case Shed(retry_after=wait):
            assert wait > 0
        case Hold():
            assert limit is not None
    assert {c.target for c in decision.candidates} == {
        *view.snapshots,
        *(["serverless"] if has_endpoint else []),
    }


def _view(engines: Any, has_endpoint: bool, limit: int | None) -> FleetView:
    from gateway.routing.affinity import AffinityBook
    from gateway.routing.breakers import BreakerBoard
    from gateway.routing.budgets import BudgetWindows
    from gateway.routing.lengths import LengthLearner
    from gateway.routing.reservations import ReservationBook
    from gateway.routing.value import ValueSample
    from gateway.routing.view import ModelTargets
    from gateway.routing.wait import PrefillRate

    snapshots = {
        f"e{i}": EngineSnapshot(
            name=f"e{i}",
            state=state,
            scraped_at=100.0 if fresh else 0.0,
            usable_blocks=63,
            block_size=32,
            used_blocks=used,
            waiting=waiting,
        )
        for i, (state, used, _, waiting, fresh) in enumerate(engines)
    }
    endpoints = (EndpointFacts("serverless", "m"),) if has_endpoint else ()
    view = FleetView(
        {"m": ModelTargets("m", tuple(snapshots), endpoints)}, snapshots,
        {n: ReservationBook() for n in snapshots}, {n: PrefillRate() for n in snapshots},
        LengthLearner(), BreakerBoard(),
        BudgetWindows({"serverless": (limit, None)}), AffinityBook(), ValueSample(), {},
    )  # fmt: skip
    for i, (_, _, promised, _, _) in enumerate(engines):
        reserve(view, f"e{i}", promised)
    return view
