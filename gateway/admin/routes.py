"""Admin routes: what the fleet is doing and why requests went where they went. They exist only where an admin
key does."""

import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, HTTPException, Query

from gateway.costs.money import usd_text
from gateway.relay.parts import Decided
from gateway.routing.budgets import DAY, HOUR
from gateway.routing.decision import route_name, target_name
from gateway.routing.explain import explain
from gateway.routing.fleet_view import FleetView
from gateway.routing.policy import Policy

FindRequest = Callable[[str], Awaitable[dict[str, Any] | None]]


@dataclass(frozen=True, slots=True)
class AdminSources:
    """Live state that the routes show. `find_request` reads the ledger, off the event loop."""

    view: FleetView
    decisions: Sequence[Decided]
    policies: Mapping[str, Policy]
    endpoints: tuple[str, ...]
    find_request: FindRequest
    clock: Callable[[], float]
    wall: Callable[[], float]


def admin_routes(sources: AdminSources, admin_key: str) -> APIRouter:
    """Every route asks for the admin key as a bearer token."""

    def require_key(authorization: Annotated[str, Header()] = "") -> None:
        scheme, _, presented = authorization.partition(" ")
        is_key = hmac.compare_digest(presented.strip().encode(), admin_key.encode())
        if not is_key or scheme.lower() != "bearer":
            raise HTTPException(401, "a valid admin key is required")

    router = APIRouter(prefix="/admin/v1", tags=["admin"], dependencies=[Depends(require_key)])
    _add_fleet_routes(router, sources)
    _add_request_routes(router, sources)
    return router


def _add_fleet_routes(router: APIRouter, sources: AdminSources) -> None:
    view = sources.view

    @router.get("/engines", summary="Every engine as last scraped, with what is promised on it")
    async def engines() -> list[dict[str, Any]]:
        now = sources.clock()
        return [_engine(view, name, now) for name in view.snapshots]

    @router.get("/models", summary="Every model with its targets and policy")
    async def models() -> list[dict[str, Any]]:
        return [asdict(targets) for targets in view.models.values()]

    @router.get("/policies", summary="The policies in force")
    async def policies() -> list[dict[str, Any]]:
        return [asdict(policy) for policy in sources.policies.values()]

    @router.get("/budgets", summary="What each endpoint has spent and may still spend")
    async def budgets() -> list[dict[str, Any]]:
        wall = sources.wall()
        return [_budget(view, endpoint, wall) for endpoint in sources.endpoints]


def _add_request_routes(router: APIRouter, sources: AdminSources) -> None:
    @router.get("/decisions", summary="The last decisions, newest first, in words")
    async def decisions(limit: Annotated[int, Query(ge=1, le=256)] = 50) -> list[dict[str, Any]]:
        newest = list(sources.decisions)[-limit:][::-1]
        return [_decision(entry) for entry in newest]

    @router.get("/requests/{request_id}", summary="One request's record, its attempts and its decision")
    async def request(request_id: str) -> dict[str, Any]:
        found = await sources.find_request(request_id)
        if found is None:
            raise HTTPException(404, "no request of this id is in the ledger yet")
        words = [explain(d.decision) for d in sources.decisions if d.request_id == request_id]
        return {**found, "decision": words[0] if words else None}


def _engine(view: FleetView, name: str, now: float) -> dict[str, Any]:
    snapshot, book = view.snapshots[name], view.books[name]
    age = None if snapshot.scraped_at is None else round(now - snapshot.scraped_at, 3)
    shown = asdict(snapshot)
    for moment in ("scraped_at", "ready_since", "preemptions"):
        del shown[moment]
    return {
        **shown,
        "signal_age_seconds": age,
        "in_flight": len(book),
        "promised_blocks": book.promised_blocks,
    }


def _budget(view: FleetView, endpoint: str, wall: float) -> dict[str, Any]:
    return {
        "endpoint": endpoint,
        "spent_usd": {
            "hour": usd_text(view.budgets.spent(endpoint, HOUR, wall)),
            "day": usd_text(view.budgets.spent(endpoint, DAY, wall)),
        },
        "left_usd": usd_text(view.budgets.left(endpoint, wall)),
    }


def _decision(entry: Decided) -> dict[str, Any]:
    decision = entry.decision
    return {
        "request_id": entry.request_id,
        "at": entry.at_utc,
        "model": decision.model,
        "policy": decision.policy,
        "route": route_name(decision.route),
        "target": target_name(decision.route),
        "reason": decision.reason.value,
        "expected_overflow_usd": usd_text(decision.expected_overflow),
        "candidates": [
            {"target": c.target, "verdict": c.verdict.value if c.verdict else "admitted", **dict(c.numbers)}
            for c in decision.candidates
        ],
        "words": explain(decision),
    }
