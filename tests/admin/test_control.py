"""The control plane's application: every error in OpenAI's shape, whatever raised it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from fastapi import APIRouter, FastAPI

from gateway.admin.control import control_app

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    yield


def app() -> FastAPI:
    router = APIRouter()

    @router.get("/number/{n}")
    async def number(n: int) -> int:
        return n

    @router.get("/broken")
    async def broken() -> None:
        raise RuntimeError("a secret detail")

    return control_app("1.2.3", lifespan, [router])


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("POST", "/number/1", 405),
        ("GET", "/number/x", 400),
        ("GET", "/broken", 500),
    ],
)
async def test_every_error_has_openais_shape(method: str, path: str, status: int) -> None:
    transport = httpx.ASGITransport(app(), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        answer = await client.request(method, path)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert "secret" not in answer.text


async def test_what_is_fine_is_untouched() -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app()), base_url="http://gateway") as client:
        assert (await client.get("/number/7")).json() == 7
        schema = (await client.get("/openapi.json")).json()
    assert schema["info"] == {"title": "Spillgate", "version": "1.2.3"}
