"""From configuration to what decisions look at."""

from decimal import Decimal

from gateway.api.assemble import catalogue_of, fleet_view
from gateway.config.schema import Budget, Config, EndpointConfig, EngineConfig, ModelConfig, OverflowTarget
from gateway.routing.budgets import HOUR
from gateway.routing.reservations import ReservationBook
from gateway.routing.view import EngineSnapshot

CONFIG = Config(
    engines=(EngineConfig(name="a", url="http://127.0.0.1:1"),),
    endpoints=(
        EndpointConfig(
            name="e", base_url="http://127.0.0.1:2/v1", region="eu", budget=Budget(usd_per_day=Decimal(3))
        ),
        EndpointConfig(name="f", base_url="http://127.0.0.1:3/v1"),
    ),
    models=(
        ModelConfig(
            name="m",
            aliases=("n",),
            engines=("a",),
            served_as="org/m",
            overflow=(OverflowTarget(endpoint="e", model="far", equivalent=False),),
            policy="local-first",
        ),
    ),
)


def test_names_targets_and_policies_are_resolved_once() -> None:
    catalogue = catalogue_of(CONFIG)
    assert catalogue.names == {"m": "m", "n": "m"}
    model = catalogue.models["m"]
    assert (model.engines, model.engine_names, model.policy) == (("a",), {"a": "org/m"}, "local-first")
    [endpoint] = model.endpoints
    assert (endpoint.name, endpoint.remote_model, endpoint.region, endpoint.equivalent) == (
        "e",
        "far",
        "eu",
        False,
    )
    assert "local-first" in catalogue.policies


def test_a_budget_is_exact_and_one_that_is_not_set_is_no_limit() -> None:
    snapshots, books = {"a": EngineSnapshot("a")}, {"a": ReservationBook()}
    view = fleet_view(CONFIG, catalogue_of(CONFIG), snapshots, books, {})
    assert view.budgets.left("e", 0.0) == 3 * 10**12
    assert view.budgets.left("f", 0.0) is None
    assert view.budgets.spent("e", HOUR, 0.0) == 0
    # The live mapping itself and no copy of it.
    assert view.snapshots is snapshots
    assert view.books is books
