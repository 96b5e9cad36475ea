"""The control plane's FastAPI application, put together."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from gateway.admin.openapi import describe_data_plane

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def control_app(version: str, lifespan: Lifespan, routers: list[APIRouter]) -> FastAPI:
    """The app. Every error has OpenAI's shape, whatever raised it; the schema carries the data plane's paths
    too."""
    app = FastAPI(title="Spillgate", version=version, lifespan=lifespan, redoc_url=None)
    for router in routers:
        app.include_router(router)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    # Starlette logs what this one answers for; without it the answer would be plain text.
    app.add_exception_handler(Exception, _http_error)
    describe_data_plane(app)
    return app


async def _http_error(_: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    message = str(error.detail) if isinstance(error, HTTPException) else "the gateway failed"
    return _error(status, message, "authentication_error" if status == 401 else "invalid_request_error")


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    problems: list[Any] = list(error.errors()) if isinstance(error, RequestValidationError) else []
    fields = ", ".join(".".join(map(str, p["loc"])) + ": " + p["msg"] for p in problems)
    return _error(400, f"invalid parameter: {fields}", "invalid_request_error")


def _error(status: int, message: str, kind: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": kind, "param": None, "code": None}}, status)
