"""Real routing objects with good defaults; a test names only what it is about."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from gateway.costs.prices import TokenPrice, new_price
from gateway.routing.affinity import AffinityBook
from gateway.routing.breakers import BreakerBoard
from gateway.routing.budgets import BudgetWindows
from gateway.routing.facts import RequestFacts
from gateway.routing.fleet_view import FleetView
from gateway.routing.lengths import LengthLearner
from gateway.routing.policy import Policy
from gateway.routing.reservations import ReservationBook
from gateway.routing.value import ValueSample
from gateway.routing.view import EndpointFacts, EngineSnapshot, EngineState, ModelTargets
from gateway.routing.wait import PrefillRate


@pytest.fixture
def snapshot() -> Callable[..., EngineSnapshot]:
    def make(name: str = "a", **changes: Any) -> EngineSnapshot:
        ready = EngineSnapshot(
            name=name, state=EngineState.READY, scraped_at=100.0, ready_since=0.0, usable_blocks=63,
            block_size=32, used_blocks=0, running=0, waiting=0, max_model_len=4096,
        )  # fmt: skip
        return replace(ready, **changes)

    return make


@pytest.fixture
def price() -> TokenPrice:
    return new_price(
        "serverless", "m", "2026-12-01T00:00:00+00:00",
        input=Decimal("0.4"), cached_input=Decimal("0.1"), output=Decimal("0.7"),
    )  # fmt: skip


@pytest.fixture
def fleet(price: TokenPrice) -> Callable[..., FleetView]:
    """`fleet(snapshot, snapshot, ...)`: one model `m` on these engines, with one priced endpoint unless told
    otherwise."""

    def make(
        *snapshots: EngineSnapshot,
        endpoints: tuple[EndpointFacts, ...] = (EndpointFacts("serverless", "m"),),
        budgets: dict[str, tuple[int | None, int | None]] | None = None,
        priced: bool = True,
    ) -> FleetView:
        names = tuple(s.name for s in snapshots)
        return FleetView(
            models={"m": ModelTargets("m", engines=names, endpoints=endpoints)},
            snapshots={s.name: s for s in snapshots},
            books={n: ReservationBook() for n in names},
            rates={n: PrefillRate() for n in names},
            lengths=LengthLearner(),
            breakers=BreakerBoard(),
            budgets=BudgetWindows(budgets or {}),
            affinity=AffinityBook(),
            values=ValueSample(),
            prices={(e.name, e.remote_model): price for e in endpoints} if priced else {},
        )

    return make


@pytest.fixture
def facts() -> Callable[..., RequestFacts]:
    def make(**changes: Any) -> RequestFacts:
        return replace(RequestFacts(model="m", prompt_tokens=100, max_tokens=100, stream=True), **changes)

    return make


@pytest.fixture
def policy() -> Policy:
    return Policy("test")
