"""What the scheduler keeps of a request and of a step."""

from gateway.simulator.engine_request import EngineRequest, StepPlan


def test_keys_are_the_shared_ones_first_and_then_the_requests_own() -> None:
    request = EngineRequest("r", 64, 10, 10, ("system", "tools"))
    assert request.keys(0, 4) == ["system", "tools", ("r", 2), ("r", 3)]
    assert request.keys(1, 3) == ["tools", ("r", 2)]
    assert request.keys(3, 3) == []


def test_a_plan_spends_its_budget() -> None:
    plan = StepPlan(100)
    request = EngineRequest("r", 64, 10, 10, ())
    plan.schedule(request, 64)
    assert (plan.budget, plan.scheduled) == (36, [(request, 64)])
