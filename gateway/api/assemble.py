"""From a configuration to the names and books that requests are served by. Reads no file and opens no
socket."""

from collections.abc import Mapping

from gateway.api.catalogue import Catalogue
from gateway.config.schema import Config, EndpointConfig, ModelConfig
from gateway.costs.money import pico
from gateway.costs.prices import TokenPrice
from gateway.routing.affinity import AffinityBook
from gateway.routing.breakers import BreakerBoard
from gateway.routing.budgets import BudgetWindows
from gateway.routing.fleet_view import FleetView
from gateway.routing.lengths import LengthLearner
from gateway.routing.reservations import ReservationBook
from gateway.routing.value import ValueSample
from gateway.routing.view import EndpointFacts, EngineSnapshot, ModelTargets
from gateway.routing.wait import PrefillRate


def catalogue_of(config: Config) -> Catalogue:
    """Every name that may be asked for."""
    endpoints = {endpoint.name: endpoint for endpoint in config.endpoints}
    models = {model.name: _targets(model, endpoints) for model in config.models}
    names = {name: model.name for model in config.models for name in (model.name, *model.aliases)}
    return Catalogue(models, names, config.policies)


def _targets(model: ModelConfig, endpoints: Mapping[str, EndpointConfig]) -> ModelTargets:
    return ModelTargets(
        name=model.name,
        engines=model.engines,
        endpoints=tuple(
            EndpointFacts(o.endpoint, o.model, endpoints[o.endpoint].region, o.equivalent)
            for o in model.overflow
        ),
        policy=model.policy,
        engine_names=dict.fromkeys(model.engines, model.served_as or model.name),
    )


def fleet_view(
    config: Config,
    catalogue: Catalogue,
    snapshots: Mapping[str, EngineSnapshot],
    books: Mapping[str, ReservationBook],
    prices: Mapping[tuple[str, str], TokenPrice],
) -> FleetView:
    """The view that decisions look at; `snapshots` is the fleet's live mapping."""
    return FleetView(
        models=catalogue.models,
        snapshots=snapshots,
        books=books,
        rates={engine.name: PrefillRate() for engine in config.engines},
        lengths=LengthLearner(),
        breakers=BreakerBoard(),
        budgets=BudgetWindows({e.name: _budget(e) for e in config.endpoints}),
        affinity=AffinityBook(),
        values=ValueSample(),
        prices=prices,
    )


def _budget(endpoint: EndpointConfig) -> tuple[int | None, int | None]:
    budget = endpoint.budget
    if budget is None:
        return None, None
    hour, day = budget.usd_per_hour, budget.usd_per_day
    return (None if hour is None else pico(hour), None if day is None else pico(day))
