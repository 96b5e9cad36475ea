"""The compose file: its parts start with the commands it holds, find each other, and serve."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from ruamel.yaml import YAML

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture
def client(running: Any) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=running.url, headers={"authorization": f"Bearer {running.key}"}, timeout=15
    ) as ask:
        yield ask


BODY = {
    "model": "llama-3.1-8b",
    "messages": [{"role": "user", "content": "Hello"}],
    "max_tokens": 5,
}


def test_the_gateway_serves_from_an_engine(client: httpx.Client) -> None:
    answer = client.post("/v1/chat/completions", json=BODY)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-spillgate-route"] == "local"
    assert answer.headers["x-spillgate-target"] in ("vllm-a", "vllm-b")
    assert answer.json()["usage"]["completion_tokens"] > 0


def test_the_endpoint_takes_what_overflows_and_is_paid(client: httpx.Client) -> None:
    answer = client.post("/v1/chat/completions", json=BODY, headers={"x-spillgate-overflow": "only"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-spillgate-target"] == "serverless"
    assert float(answer.headers["x-spillgate-cost"]) > 0


def test_both_engines_and_the_endpoint_are_known(running: Any) -> None:
    ready = httpx.get(f"{running.url}/readyz").json()
    assert (ready["ready"], ready["engines_up"], ready["endpoints"]) == (True, 2, 1)


def test_strangers_are_not_served(running: Any) -> None:
    assert httpx.post(f"{running.url}/v1/chat/completions", json=BODY).status_code == 401


def test_the_ledger_is_on_the_volume(running: Any, compose: dict[str, Any], image: Any) -> None:
    workdir = next(i.rest for i in image if i.word == "WORKDIR")
    assert f"ledger:{workdir}" in compose["services"]["gateway"]["volumes"]
    assert "ledger" in compose["volumes"]
    assert (running.folder / "spillgate.db").exists()


def test_files_that_are_mounted_exist_and_cannot_be_written(compose: dict[str, Any]) -> None:
    files = [v for s in compose["services"].values() for v in s.get("volumes", []) if v.startswith(".")]
    assert files
    for volume in files:
        source, target, mode = volume.split(":")
        assert (DEPLOY / source).is_file()
        assert (Path(target).name, mode) == (Path(source).name, "ro")


def test_only_loopback_is_published_and_the_port_is_the_gateways(compose: dict[str, Any]) -> None:
    listen = YAML(typ="safe").load(DEPLOY / "spillgate.yaml")["listen"]
    published = {name: s["ports"] for name, s in compose["services"].items() if "ports" in s}
    assert published == {"gateway": [f"127.0.0.1:8080:{listen['port']}"]}
    assert listen["host"] == "0.0.0.0"


def test_every_service_is_built_from_the_one_dockerfile(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        build = service["build"]
        context = (DEPLOY / build["context"]).resolve()
        assert (context / build["dockerfile"]).is_file()
        assert (context / "pyproject.toml").is_file()


def test_dependencies_are_services(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services["gateway"]["depends_on"]) == set(services) - {"gateway"}


def test_draining_has_the_time_that_it_is_configured_to_take(compose: dict[str, Any]) -> None:
    drain = YAML(typ="safe").load(DEPLOY / "spillgate.yaml")["shutdown"]["drain"]
    grace = compose["services"]["gateway"]["stop_grace_period"]
    assert int(grace.removesuffix("s")) > int(drain.removesuffix("s"))
