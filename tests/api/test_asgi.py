"""The data plane as clients meet it: a gateway between a fake engine and a fake endpoint, on real sockets."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from stack import POLICY, Stack, events, running_stack

from gateway.simulator.engine import StepTime
from gateway.simulator.fake_endpoint import FakeEndpoint
from gateway.simulator.fake_vllm import FakeVLLM

pytestmark = pytest.mark.anyio


async def test_a_request_with_headroom_is_served_by_the_engine_and_written_down(stack: Stack) -> None:
    answer = await stack.chat(headers={"x-spillgate-tags": "team=a"})
    assert answer.status_code == 200
    assert answer.headers["x-spillgate-route"] == "local"
    assert (
        answer.headers["x-spillgate-reason"] == "only_choice"
        or answer.headers["x-spillgate-reason"] == "headroom"
    )
    assert answer.headers["x-spillgate-target"] == "a"
    assert answer.headers["x-spillgate-cost"] == "0"
    assert answer.headers["x-spillgate-cost-basis"] == "cash_marginal"
    [row] = stack.rows()
    assert (row["outcome"], row["route"], row["target"], row["status"]) == ("ok", "local", "a", 200)
    usage = answer.json()["usage"]
    assert (row["prompt_tokens"], row["completion_tokens"]) == (
        usage["prompt_tokens"],
        usage["completion_tokens"],
    )
    assert row["usage_source"] == "reported"
    assert row["cash_marginal"] == 0
    assert row["standard"] == round((usage["prompt_tokens"] + 4 * 5) * 2.8 / (3600 * 8000) * 1e12)
    assert row["alternative_cash"] == usage["prompt_tokens"] * 200_000 + 5 * 600_000
    assert row["tags"] == "team=a"
    assert stack.is_quiet()


async def test_the_engines_bytes_reach_the_client_unchanged(stack: Stack) -> None:
    async with httpx.AsyncClient(timeout=15) as direct:
        body = {
            "model": "tiny",
            "messages": [{"role": "user", "content": "北京😀"}],
            "max_tokens": 9,
            "seed": 1,
        }
        for extra in ({}, {"stream": True, "stream_options": {"include_usage": True}}):
            ours = await stack.client.post("/v1/chat/completions", json=body | extra)
            theirs = await direct.post(f"{stack.engine_url}/v1/chat/completions", json=body | extra)
            if "stream" in extra:
                # How tokens are packed into events is the engine's timing; what they say is not.
                assert _said(ours.text) == _said(theirs.text)
            else:
                assert _without_ids(ours.text) == _without_ids(theirs.text)
            assert ours.headers["content-type"] == theirs.headers["content-type"]


def _without_ids(text: str) -> str:
    import re

    return re.sub(r'"(id|created|system_fingerprint)": ?("[^"]*"|\d+)', "", text)


def _said(stream: str) -> tuple[str, int, str]:
    chunks = events(stream)
    text = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks[:-1] if c["choices"])
    return text, chunks[-2]["usage"]["completion_tokens"], chunks[-1]


async def test_usage_is_asked_for_and_the_extra_chunk_removed_again(stack: Stack) -> None:
    plain = await stack.chat(stream=True)
    chunks = events(plain.text)
    assert chunks[-1] == "[DONE]"
    assert all(chunk["choices"] for chunk in chunks[:-1])
    asked = await stack.chat(stream=True, stream_options={"include_usage": True})
    assert events(asked.text)[-2]["usage"]["completion_tokens"] == 5
    assert [row["completion_tokens"] for row in stack.rows()] == [5, 5]
    assert {row["usage_source"] for row in stack.rows()} == {"reported"}


async def test_a_full_engine_overflows_before_it_preempts(tmp_path: Path) -> None:
    engine = FakeVLLM(step=StepTime(0.002, 0.0), num_blocks=64, max_num_seqs=16)
    async with running_stack(tmp_path, engine=engine) as stack:
        await stack.ready()
        answers: list[httpx.Response] = []

        async def one() -> None:
            answers.append(await stack.chat(max_tokens=600, stream=True))

        async with anyio.create_task_group() as group:
            for _ in range(12):
                group.start_soon(one)
        assert [a.status_code for a in answers] == [200] * 12
        assert engine.scheduler.stats().preemptions == 0
        routes = [a.headers["x-spillgate-route"] for a in answers]
        assert 2 <= routes.count("local") <= 3
        rows = stack.rows()
        assert {r["reason"] for r in rows if r["route"] == "overflow"} == {"kv_full"}
        spent = sum(r["cash_marginal"] for r in rows if r["route"] == "overflow")
        assert stack.endpoint is not None
        billed = stack.endpoint.billed()
        assert billed.prompt is not None
        assert billed.completion is not None
        assert spent == billed.prompt * 200_000 + billed.completion * 600_000
        assert all(r["alternative_kind"] == "preempt" for r in rows if r["route"] == "overflow")
        assert stack.is_quiet()


async def test_an_engine_that_is_down_is_replaced_under_the_same_name(stack: Stack) -> None:
    assert stack.engine is not None
    await stack.engine.kill()
    answer = await stack.chat()
    assert (answer.status_code, answer.headers["x-spillgate-route"]) == (200, "overflow")
    assert answer.headers["x-spillgate-reason"] in ("attempt_failed", "engine_unreachable")
    assert answer.headers["x-spillgate-model"] == "tiny-remote"
    with anyio.fail_after(10):
        while (await stack.chat()).headers["x-spillgate-reason"] != "engine_unreachable":
            await anyio.sleep(0.05)
    await stack.engine.restart()
    with anyio.fail_after(10):
        while (await stack.chat()).headers["x-spillgate-route"] != "local":
            await anyio.sleep(0.05)


async def test_what_may_not_leave_is_refused_with_a_time_to_come_back(stack: Stack) -> None:
    assert stack.engine is not None
    await stack.engine.kill()
    answer = await stack.chat(headers={"x-spillgate-overflow": "never"})
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert stack.endpoint is not None
    assert stack.endpoint.requests == 0


async def test_an_endpoint_gets_its_own_model_name_and_no_engine_fields(stack: Stack) -> None:
    answer = await stack.chat(headers={"x-spillgate-overflow": "only"}, top_k=3, min_p=0.1)
    assert answer.status_code == 200
    assert answer.headers["x-spillgate-dropped"].split(",") == ["ignore_eos", "min_p", "top_k"]
    assert answer.headers["x-spillgate-reason"] == "pinned"
    cost = float(answer.headers["x-spillgate-cost"])
    usage = answer.json()["usage"]
    assert cost == pytest.approx((usage["prompt_tokens"] * 0.2 + usage["completion_tokens"] * 0.6) / 1e6)


async def test_aliases_are_served_and_listed(stack: Stack) -> None:
    answer = await stack.chat(model="small")
    assert (answer.status_code, answer.headers["x-spillgate-route"]) == (200, "local")
    listed = (await stack.client.get("/v1/models")).json()["data"]
    assert [card["id"] for card in listed] == ["tiny", "small"]
    assert listed[0]["max_model_len"] == 1024
    assert (await stack.client.get("/v1/models/small")).json()["root"] == "tiny"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid_json"),
        (b"{", 400, "invalid_json"),
        (b"[]", 400, "invalid_json"),
        (b'{"model": 7}', 400, "invalid_json"),
        (b'{"model": "nope", "messages": []}', 404, "model_not_found"),
        (b'{"model": "tiny", "model": "tiny"}', 400, "invalid_json"),
        (b"[" * 100_000, 400, "invalid_json"),
        (b'{"model": "tiny", "n": NaN}', 400, "invalid_json"),
        (b'{"model": "tiny", "messages": [], "pad": "' + b"x" * 2**20 + b'"}', 413, "body_too_large"),
    ],
    ids=["empty", "half", "list", "number", "unknown", "twice", "deep", "nan", "large"],
)
async def test_bad_bodies_get_one_clear_answer_and_reach_nobody(
    stack: Stack, body: bytes, status: int, code: str
) -> None:
    answer = await stack.client.post(
        "/v1/chat/completions", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    assert error["message"].endswith(".")
    [row] = stack.rows()
    assert (row["outcome"], row["status"], stack.rows("attempts")) == ("rejected", status, [])


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/v1/chat/completions", {}, 405),
        ("POST", "/v1/models", {}, 405),
        ("GET", "/v1/models/nope", {}, 404),
        ("POST", "/v1/nothing", {}, 404),
        ("GET", "/admin/v1/engines", {}, 401),
        (
            "POST",
            "/v1/chat/completions",
            {"content-encoding": "gzip", "content-type": "application/json"},
            415,
        ),
        ("POST", "/v1/chat/completions", {"content-type": "text/plain"}, 400),
        (
            "POST",
            "/v1/chat/completions",
            {"content-type": "application/json", "x-spillgate-overflow": "maybe"},
            400,
        ),
        (
            "POST",
            "/v1/chat/completions",
            {"content-type": "application/json", "x-spillgate-policy": "nope"},
            400,
        ),
    ],
)
async def test_every_error_has_openais_shape(
    stack: Stack, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    content = b'{"model": "tiny", "messages": []}' if method == "POST" else None
    answer = await stack.client.request(method, path, content=content, headers=headers)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


async def test_the_engines_own_refusal_passes_unchanged_and_is_not_tried_elsewhere(stack: Stack) -> None:
    too_long = {"model": "tiny", "messages": [{"role": "user", "content": "word " * 1200}], "max_tokens": 5}
    answer = await stack.client.post(
        "/v1/chat/completions", json=too_long, headers={"x-spillgate-overflow": "never"}
    )
    async with httpx.AsyncClient() as direct:
        theirs = await direct.post(f"{stack.engine_url}/v1/chat/completions", json=too_long)
    assert (answer.status_code, answer.content) == (400, theirs.content)
    assert answer.headers["x-spillgate-attempts"] == "1"


async def test_a_prompt_that_the_engine_finds_too_long_leaves_where_the_policy_names_that(
    stack: Stack,
) -> None:
    """The estimate let it in; the engine counted and refused; nothing was generated there."""
    for _ in range(20):
        await stack.chat(text="word " * 40)
    answer = await stack.chat(text="word " * 850)
    assert (answer.status_code, answer.headers["x-spillgate-route"]) == (200, "overflow")
    assert answer.headers["x-spillgate-reason"] == "context_too_long"
    assert answer.headers["x-spillgate-attempts"] == "2"


async def test_a_client_that_leaves_frees_the_engine(stack: Stack) -> None:
    assert stack.engine is not None
    for stream in (True, False):
        with anyio.move_on_after(0.3):
            await stack.chat(max_tokens=900, stream=stream)
        with anyio.fail_after(1):
            while stack.engine.scheduler.has_work:
                await anyio.sleep(0.005)
        with anyio.fail_after(2):
            while not stack.is_quiet():
                await anyio.sleep(0.005)
    with anyio.fail_after(2):
        while len(stack.rows()) < 2:
            await anyio.sleep(0.02)
    assert {row["outcome"] for row in stack.rows()} == {"client_gone"}


async def test_decisions_are_shown_in_words_and_requests_by_id(stack: Stack) -> None:
    from stack import ADMIN_KEY

    answer = await stack.chat()
    admin = {"authorization": f"Bearer {ADMIN_KEY}"}
    [decision] = (await stack.client.get("/admin/v1/decisions", headers=admin)).json()
    assert decision["request_id"] == answer.headers["x-request-id"]
    assert "Served by engine 'a'" in decision["words"]
    stack.rows()
    shown = (await stack.client.get(f"/admin/v1/requests/{decision['request_id']}", headers=admin)).json()
    assert shown["attempts"][0]["target"] == "a"
    assert shown["decision"] == decision["words"]
    for page in ("engines", "models", "policies", "budgets"):
        assert (await stack.client.get(f"/admin/v1/{page}", headers=admin)).status_code == 200
    metrics = (await stack.client.get("/metrics")).text
    assert (
        'spillgate_requests_total{model="tiny",outcome="ok",reason="headroom",route="local"} 1.0' in metrics
    )
    assert (await stack.client.get("/readyz")).json()["engines_up"] == 1


async def test_the_openapi_page_documents_the_data_plane(stack: Stack) -> None:
    from gateway.wire.paths import PATHS

    schema = (await stack.client.get("/openapi.json")).json()
    for path in PATHS:
        assert path.method.lower() in schema["paths"][path.path]
    assert "/v1/models" in schema["paths"]
    assert (await stack.client.get("/docs")).status_code == 200


async def test_without_an_admin_key_admin_routes_do_not_exist(tmp_path: Path) -> None:
    import stack as parts

    original = parts.CONFIG
    parts.CONFIG = original.replace('admin: {{key: "${{TEST_ADMIN_KEY}}"}}\n', "")
    try:
        async with running_stack(tmp_path) as stack:
            assert (await stack.client.get("/admin/v1/engines")).status_code == 404
    finally:
        parts.CONFIG = original


async def test_keys_are_asked_for_where_there_are_keys(tmp_path: Path) -> None:
    from gateway.config.keys import KeyEntry, generate, hash_of

    key = generate()
    (tmp_path / "keys.yaml").write_text(
        f"keys:\n  - name: team-a\n    hash: {hash_of(key)}\n    created: 2026-12-01\n"
    )
    assert KeyEntry
    async with running_stack(tmp_path, extra="clients: {keys_file: keys.yaml}") as stack:
        await stack.ready()
        refused = [
            await stack.chat(headers={"authorization": f"Bearer {wrong}".encode()})
            for wrong in ("x", key[:-1], "é")
        ] + [await stack.chat()]
        assert {r.status_code for r in refused} == {401}
        assert len({r.content for r in refused}) == 1
        assert (await stack.client.get("/v1/models")).status_code == 401
        assert (await stack.chat(headers={"authorization": f"Bearer {key}"})).status_code == 200
        quiet = await stack.chat(headers={"x-api-key": key})
        assert quiet.status_code == 200
        assert "x-spillgate-cost" not in quiet.headers, "a key sees costs only where it was made to"
        rows = stack.rows()
        assert [r["key"] for r in rows if r["outcome"] == "ok"] == ["team-a", "team-a"]
        assert key not in json.dumps(rows, default=str)


async def test_a_spent_budget_holds_requests_until_the_engine_has_room(tmp_path: Path) -> None:
    import stack as parts

    original = parts.CONFIG
    parts.CONFIG = original.replace(
        "    api_key: ${{TEST", "    budget: {{usd_per_hour: 0.0000001}}\n    api_key: ${{TEST"
    )
    try:
        engine = FakeVLLM(step=StepTime(0.001, 0.0), num_blocks=64)
        async with running_stack(tmp_path, engine=engine) as stack:
            await stack.ready()
            answers: list[Any] = []

            async def one() -> None:
                answers.append(await stack.chat(max_tokens=600))

            async with anyio.create_task_group() as group:
                for _ in range(6):
                    group.start_soon(one)
            assert {(a.status_code, a.headers["x-spillgate-route"]) for a in answers} == {(200, "local")}
            assert engine.scheduler.stats().preemptions == 0
    finally:
        parts.CONFIG = original


async def test_never_overflow_keeps_everything_on_the_engine(tmp_path: Path) -> None:
    endpoint = FakeEndpoint()
    policy = POLICY + "pin: local\n"
    async with running_stack(tmp_path, endpoint=endpoint, policy=policy) as stack:
        await stack.ready()
        async with anyio.create_task_group() as group:
            for _ in range(12):
                group.start_soon(lambda: stack.chat(max_tokens=300))
        assert endpoint.requests == 0
        assert {r["reason"] for r in stack.rows()} == {"only_choice"}


async def test_a_fault_of_ours_before_content_is_a_500_with_a_row(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G08: whatever breaks inside, the client gets an error of OpenAI's shape and the ledger a closed row."""
    from gateway.relay.carry import Carrier

    async def breaks(_: Carrier) -> None:
        raise RuntimeError("a fault of ours, with a detail")

    monkeypatch.setattr(Carrier, "carry", breaks)
    answer = await stack.chat()
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"
    assert "detail" not in answer.text
    [row] = stack.rows()
    assert (row["outcome"], row["status"], row["request_id"]) == (
        "internal",
        500,
        answer.headers["x-request-id"],
    )


async def test_a_fault_of_ours_inside_a_stream_breaks_it_off(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streams import exchange, last_row

    from gateway.relay.stream import StreamRelay

    async def breaks(_: StreamRelay, __: object) -> None:
        raise RuntimeError("a fault of ours, with a detail")

    monkeypatch.setattr(StreamRelay, "_end", breaks)
    answer = await exchange(stack)
    assert (answer.status, answer.is_whole, b"[DONE]" in answer.body) == (200, False, False)
    assert events(answer.body.decode())[-1]["error"]["code"] == "internal_error"
    assert b"detail" not in answer.body
    row, [tried] = await last_row(stack)
    assert (row["outcome"], tried["outcome"]) == ("internal", "internal")


async def test_a_ledger_that_takes_no_more_takes_no_more_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G05 with `required`: nothing is dispatched that could not be written down."""
    from gateway.ledger.errors import JournalFull
    from gateway.ledger.journal import Journal
    from gateway.ledger.records import OpenRecord, Record

    append = Journal.append

    def full(journal: Journal, record: Record) -> None:
        if isinstance(record, OpenRecord):
            raise JournalFull("the disk at /var/secret/place is full")
        append(journal, record)

    async with running_stack(tmp_path) as stack:
        await stack.ready()
        monkeypatch.setattr(Journal, "append", full)
        answer = await stack.chat()
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "ledger_full"
        assert "secret" not in answer.text
        assert int(answer.headers["retry-after"]) >= 1
        assert stack.endpoint is not None
        assert stack.endpoint.requests == 0
        assert stack.rows("attempts") == []


async def test_more_than_the_gateway_takes_at_once_is_shed_with_a_time(tmp_path: Path) -> None:
    import stack as parts

    original = parts.CONFIG
    parts.CONFIG = original.replace("max_body: 1MiB", "max_body: 1MiB, max_in_flight: 2")
    try:
        async with running_stack(tmp_path) as stack:
            await stack.ready()
            answers: list[httpx.Response] = []

            async def one() -> None:
                answers.append(await stack.chat(max_tokens=300))

            async with anyio.create_task_group() as group:
                for _ in range(6):
                    group.start_soon(one)
            shed = [a for a in answers if a.status_code == 503]
            assert 1 <= len(shed) <= 4
            assert {a.json()["error"]["code"] for a in shed} == {"overloaded"}
            assert all(int(a.headers["retry-after"]) >= 1 for a in shed)
            assert [r["outcome"] for r in stack.rows()].count("shed") == len(shed)
    finally:
        parts.CONFIG = original


async def test_no_secret_leaves_its_place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """G19: each configured secret is found nowhere but on the wire to its own target."""
    import logging

    from stack import ADMIN_KEY, ENDPOINT_KEY

    from gateway.config.keys import generate, hash_of

    caplog.set_level(logging.DEBUG, logger="gateway")
    key = generate()
    (tmp_path / "keys.yaml").write_text(
        f"keys:\n  - name: team-a\n    hash: {hash_of(key)}\n    created: 2026-12-01\n"
    )
    bearer = {"authorization": f"Bearer {key}"}
    async with running_stack(tmp_path, extra="clients: {keys_file: keys.yaml}") as stack:
        await stack.ready()
        assert stack.endpoint is not None
        seen: list[httpx.Response] = []
        asked = [(wish, stream) for wish in ("allow", "only") for stream in (True, False)]
        seen += [
            await stack.chat(headers=bearer | {"x-spillgate-overflow": wish}, stream=stream)
            for wish, stream in asked
        ]
        for status in (400, 401, 429, 500):
            stack.endpoint.fail_next(status)
            seen.append(await stack.chat(headers=bearer | {"x-spillgate-overflow": "only"}))
        stack.endpoint.api_key = "changed-at-the-provider"
        seen.append(await stack.chat(headers=bearer | {"x-spillgate-overflow": "only"}))
        seen.append(await stack.chat(headers={"authorization": f"Bearer {key}x"}))
        admin = {"authorization": f"Bearer {ADMIN_KEY}"}
        shown = ("admin/v1/engines", "admin/v1/decisions", "metrics", "openapi.json", "readyz", "v1/models")
        seen += [await stack.client.get(f"/{page}", headers=admin) for page in shown]
        rows = json.dumps([stack.rows(), stack.rows("attempts")], default=str)
        journal = b"".join(p.read_bytes() for p in stack.gateway.journal.folder.iterdir())
    texts = [str(a.headers) + a.text for a in seen] + [rows, journal.decode("latin-1")]
    texts += [record.getMessage() + str(record.exc_info) for record in caplog.records]
    for secret in (key, ADMIN_KEY, ENDPOINT_KEY):
        assert [text for text in texts if secret in text] == []
