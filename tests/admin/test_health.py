"""Probes: alive is not ready, and a gateway that drains is not ready."""

import httpx
import pytest
from fastapi import FastAPI

from gateway.admin.health import health_routes
from gateway.routing.view import EngineSnapshot, EngineState

pytestmark = pytest.mark.anyio


async def ask(path: str, *states: EngineState, endpoints: int = 0, draining: bool = False) -> httpx.Response:
    snapshots = {str(n): EngineSnapshot(str(n), state=state) for n, state in enumerate(states)}
    app = FastAPI()
    app.include_router(health_routes(snapshots, endpoints, lambda: b"# page\n", lambda: draining))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
        return await client.get(path)


@pytest.mark.parametrize("state", EngineState)
async def test_one_engine_that_serves_is_enough(state: EngineState) -> None:
    answer = await ask("/readyz", EngineState.UNREACHABLE, state)
    serves = state in (EngineState.READY, EngineState.PREEMPTING)
    assert (answer.status_code, answer.json()["ready"]) == ((200, True) if serves else (503, False))


async def test_an_endpoint_is_enough_and_draining_is_never_ready() -> None:
    assert (await ask("/readyz", endpoints=1)).status_code == 200
    assert (await ask("/readyz")).status_code == 503
    answer = await ask("/readyz", EngineState.READY, endpoints=1, draining=True)
    assert (answer.status_code, answer.json()["draining"]) == (503, True)


async def test_alive_whatever_the_fleet_does_and_the_page_as_it_is() -> None:
    assert (await ask("/healthz", draining=True)).status_code == 200
    page = await ask("/metrics")
    assert (page.content, page.headers["content-type"]) == (
        b"# page\n",
        "text/plain; version=0.0.4; charset=utf-8",
    )
