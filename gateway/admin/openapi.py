"""The OpenAPI page: the control plane's own routes, and the data plane's from its route table.

Data-plane paths are served ahead of FastAPI; they are described here so that the page shows all there is.
"""

from typing import Any

from fastapi import FastAPI

from gateway.wire.paths import PATHS, Path

_ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "integer", "null"]},
            },
        }
    },
}
_REQUEST_HEADERS = {
    "x-spillgate-overflow": "never, allow or only",
    "x-spillgate-policy": "the name of a policy",
    "x-spillgate-tags": "free text for reports",
    "x-request-id": "the beginning of the request id",
}


def describe_data_plane(app: FastAPI) -> None:
    """Make `app` publish the data plane's paths beside its own."""
    own = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = own()
            schema.setdefault("components", {}).setdefault("schemas", {})["Error"] = _ERROR_SCHEMA
            for path in PATHS:
                schema["paths"].setdefault(path.path, {})[path.method.lower()] = _operation(path)
            for name, summary in (
                ("/v1/models", "The models that may be asked for"),
                ("/v1/models/{id}", "One model"),
            ):
                schema["paths"][name] = {
                    "get": {"tags": ["data plane"], "summary": summary, "responses": _responses(False)}
                }
            app.openapi_schema = schema
        return app.openapi_schema

    # FastAPI's documented way to extend its schema.
    app.openapi = openapi  # type: ignore[method-assign]


def _operation(path: Path) -> dict[str, Any]:
    content = "multipart/form-data" if path.form else "application/json"
    return {
        "tags": ["data plane"],
        "summary": path.summary,
        "description": "The body passes as it is; its fields are in vLLM's and OpenAI's references.",
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": False,
                "description": text,
                "schema": {"type": "string"},
            }
            for name, text in _REQUEST_HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {content: {"schema": {"type": "object"}}}},
        "responses": _responses(path.streams),
    }


def _responses(streams: bool) -> dict[str, Any]:
    content: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}
    if streams:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {
        "200": {"description": "The target's answer, unchanged", "content": content},
        "default": {"description": "Any error, in OpenAI's shape", "content": error},
    }
