"""Everything a decision may look at beside the request: references to live, pure state, built once."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.costs.prices import TokenPrice
from gateway.routing.affinity import AffinityBook
from gateway.routing.breakers import BreakerBoard
from gateway.routing.budgets import BudgetWindows
from gateway.routing.lengths import LengthLearner
from gateway.routing.reservations import ReservationBook
from gateway.routing.value import ValueSample
from gateway.routing.view import EngineSnapshot, ModelTargets
from gateway.routing.wait import PrefillRate


@dataclass(frozen=True, slots=True)
class FleetView:
    """The mappings are live: a scrape swaps one snapshot, and the next decision sees it. Nothing is copied
    per request.

    `prices` are keyed by (endpoint, remote model); a missing entry is an unknown price.
    """

    models: Mapping[str, ModelTargets]
    snapshots: Mapping[str, EngineSnapshot]
    books: Mapping[str, ReservationBook]
    rates: Mapping[str, PrefillRate]
    lengths: LengthLearner
    breakers: BreakerBoard
    budgets: BudgetWindows
    affinity: AffinityBook
    values: ValueSample
    prices: Mapping[tuple[str, str], TokenPrice]
