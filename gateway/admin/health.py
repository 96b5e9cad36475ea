"""Liveness, readiness and metrics: open to probes, no secrets in them."""

from collections.abc import Callable, Mapping

from fastapi import APIRouter, Response

from gateway.routing.view import EngineSnapshot, EngineState

_CAN_SERVE = (EngineState.READY, EngineState.PREEMPTING)


def health_routes(
    snapshots: Mapping[str, EngineSnapshot],
    endpoints: int,
    page: Callable[[], bytes],
    is_draining: Callable[[], bool],
) -> APIRouter:
    """`page` renders the Prometheus page."""
    router = APIRouter(tags=["health"])

    @router.get("/healthz", summary="The process is alive")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @router.get("/readyz", summary="Something can be served: an engine is up, or there is an endpoint")
    async def readyz(response: Response) -> dict[str, object]:
        up = [name for name, s in snapshots.items() if s.state in _CAN_SERVE]
        ready = not is_draining() and bool(up or endpoints)
        response.status_code = 200 if ready else 503
        return {"ready": ready, "draining": is_draining(), "engines_up": len(up), "endpoints": endpoints}

    @router.get("/metrics", summary="Prometheus metrics")
    async def metrics() -> Response:
        return Response(page(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router
