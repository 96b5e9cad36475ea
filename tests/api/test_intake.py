"""From request to `Admitted`: what is read, what is refused, whose policy counts."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from stack import ENVIRON, write_config

from gateway.api.assemble import catalogue_of
from gateway.api.errors import Rejected
from gateway.api.intake import Intake, arrival_of
from gateway.api.limits import header_map
from gateway.config.keys import KeyEntry
from gateway.config.load import load
from gateway.relay.admitted import Admitted
from gateway.routing.lengths import LengthLearner
from gateway.wire.paths import find


@pytest.fixture
def intake(tmp_path: Path) -> Intake:
    config = load(write_config(tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:2/v1"), ENVIRON)
    return Intake(catalogue_of(config), LengthLearner(), lambda: 0.0)


def admit(
    intake: Intake, path: str = "/v1/chat/completions", key: KeyEntry | None = None, **fields: Any
) -> Admitted:
    headers = fields.pop("headers", {})
    found = find("POST", path)
    assert found is not None
    raw = [(b"content-type", b"application/json"), *((k.encode(), v) for k, v in headers.items())]
    arrival = arrival_of(found, raw, header_map(raw), 1.0)
    arrival.key = key
    body = {"model": "tiny", "messages": [{"role": "user", "content": "hello " * 50}]}
    return intake.admit(arrival, json.dumps(body | fields).encode())


def test_the_body_is_kept_to_the_byte_and_read_for_deciding(intake: Intake) -> None:
    admitted = admit(intake, max_tokens=7, n=2, stream=True, model="small")
    assert (admitted.facts.model, admitted.requested_model) == ("tiny", "small")
    assert (admitted.facts.max_tokens, admitted.facts.choices, admitted.streams) == (7, 2, True)
    assert admitted.parsed is not None
    assert json.loads(admitted.body)["n"] == 2
    assert admitted.facts.prompt_tokens > 10
    assert admitted.facts.affinity_key is not None


def test_a_stream_on_a_path_without_streams_is_none(intake: Intake) -> None:
    assert not admit(intake, "/v1/embeddings", input="x", stream=True).streams


@pytest.mark.parametrize("asked", [b"", b"ab c", b"x" * 65, b"\xff", b"a/b", b"<script>"])
def test_a_request_id_that_is_no_id_is_replaced(asked: bytes) -> None:
    path = find("POST", "/v1/chat/completions")
    assert path is not None
    arrival = arrival_of(path, [], {b"x-request-id": asked}, 0.0)
    assert re.fullmatch(r"[0-9a-f]{32}", arrival.request_id)


def test_a_clients_request_id_begins_ours_and_never_repeats() -> None:
    path = find("POST", "/v1/chat/completions")
    assert path is not None
    ids = [arrival_of(path, [], {b"x-request-id": b"job-1"}, 0.0).request_id for _ in range(50)]
    assert all(re.fullmatch(r"job-1-[0-9a-f]{8}", i) for i in ids)
    assert len(set(ids)) == 50


@pytest.mark.parametrize(
    ("headers", "wish"),
    [
        ({}, "allow"),
        ({"x-spillgate-overflow": b" NEVER "}, "never"),
        ({"x-spillgate-overflow": b"only"}, "only"),
    ],
)
def test_the_wish_is_read_from_its_header(intake: Intake, headers: dict[str, bytes], wish: str) -> None:
    assert admit(intake, headers=headers).facts.overflow_wish == wish


@pytest.mark.parametrize(
    "headers",
    [
        {"x-spillgate-overflow": b"maybe"},
        {"x-spillgate-policy": b"nope"},
        {"x-spillgate-policy": b"\xff\xfe"},
        {"x-spillgate-tags": b"x" * 257},
        {"x-spillgate-tags": b"caf\xc3\xa9"},
        {"x-spillgate-tags": b""},
    ],
)
def test_headers_that_say_nothing_we_know_are_refused(intake: Intake, headers: dict[str, bytes]) -> None:
    with pytest.raises(Rejected) as refused:
        admit(intake, headers=headers)
    assert refused.value.answer.status == 400


def test_a_keys_policy_stands_above_the_headers_and_that_above_the_models(intake: Intake) -> None:
    from datetime import date

    key = KeyEntry(name="k", hash="h", created=date(2026, 1, 1), policy="never-overflow")
    header = {"x-spillgate-policy": b"local-first"}
    assert admit(intake).policy.name == "test"
    assert admit(intake, headers=header).policy.name == "local-first"
    assert admit(intake, key=key, headers=header).policy.name == "never-overflow"


def test_token_ids_are_counted_and_pictures_are_not_free(intake: Intake) -> None:
    assert admit(intake, "/v1/completions", prompt=[1] * 77).facts.prompt_tokens == 77
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert admit(intake, messages=[{"role": "user", "content": [picture]}]).facts.prompt_tokens >= 1024


def test_an_unknown_model_is_a_404_and_a_missing_one_is_the_only_one(intake: Intake) -> None:
    with pytest.raises(Rejected) as refused:
        admit(intake, model="x" * 5000)
    assert refused.value.answer.status == 404
    assert len(refused.value.answer.body) < 1000
    assert admit(intake, model=None).facts.model == "tiny"


def test_fields_that_would_steer_the_gateway_are_only_fields(intake: Intake) -> None:
    steering = {
        "base_url": "http://trap",
        "api_key": "sk-x",
        "api_base": "http://trap",
        "extra_headers": {"a": "b"},
    }
    admitted = admit(intake, headers={"host": b"trap", "cookie": b"c"}, **steering)
    assert admitted.facts.model == "tiny"
    assert {name for name, _ in admitted.headers} == {b"content-type"}
