"""The OpenAPI page shows the data plane's routes from their own table."""

from fastapi import FastAPI

from gateway.admin.openapi import describe_data_plane
from gateway.wire.paths import PATHS


def test_every_path_is_described_once_with_its_headers_and_errors() -> None:
    app = FastAPI(title="x", version="1")
    describe_data_plane(app)
    schema = app.openapi()
    assert schema is app.openapi()
    for path in PATHS:
        operation = schema["paths"][path.path][path.method.lower()]
        assert operation["summary"] == path.summary
        assert {p["name"] for p in operation["parameters"]} == {
            *("x-spillgate-overflow", "x-spillgate-policy", "x-spillgate-tags", "x-request-id")
        }
        streams = "text/event-stream" in operation["responses"]["200"]["content"]
        assert streams == path.streams
        [form] = operation["requestBody"]["content"]
        assert (form == "multipart/form-data") == path.form
    assert "Error" in schema["components"]["schemas"]
    assert schema["paths"]["/v1/models/{id}"]["get"]["tags"] == ["data plane"]
