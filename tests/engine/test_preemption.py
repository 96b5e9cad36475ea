"""The point of it all, on a real engine: overflow before preemption."""

import re
from pathlib import Path

import anyio
import httpx
import pytest
from stack import POLICY, running_stack

pytestmark = pytest.mark.anyio
ASK = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "hello world"}],
    "max_tokens": 600,
    "ignore_eos": True,
    "stream": True,
}


async def _preemptions(vllm: str) -> int:
    async with httpx.AsyncClient(timeout=30) as client:
        page = (await client.get(f"{vllm}/metrics")).text
    return round(
        sum(float(v) for v in re.findall(r"^vllm:num_preemptions_total\{[^}]*\} ([\d.]+)", page, re.M))
    )


async def _twelve(url: str) -> list[httpx.Response]:
    answers: list[httpx.Response] = []

    async def one(client: httpx.AsyncClient) -> None:
        answers.append(await client.post(f"{url}/v1/chat/completions", json=ASK))

    async with httpx.AsyncClient(timeout=200) as client, anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(one, client)
    return answers


async def test_twelve_long_answers_preempt_when_sent_straight_to_the_engine(vllm: str) -> None:
    before = await _preemptions(vllm)
    answers = await _twelve(vllm)
    assert {a.status_code for a in answers} == {200}
    assert await _preemptions(vllm) - before > 5


@pytest.mark.parametrize(
    "policy", [POLICY, "name: balanced-like\nadmit:\n  queue: {max_waiting: 4}\n"], ids=["test", "defaults"]
)
async def test_through_the_gateway_they_do_not_and_none_fails(vllm: str, tmp_path: Path, policy: str) -> None:
    async with running_stack(tmp_path, engine=vllm, policy=policy) as stack:
        await stack.ready()
        before = await _preemptions(vllm)
        answers = await _twelve(stack.url)
        assert {a.status_code for a in answers} == {200}
        assert all(a.text.endswith("data: [DONE]\n\n") for a in answers)
        # The counter comes up to three seconds late.
        await anyio.sleep(3.5)
        assert await _preemptions(vllm) == before
        routes = [a.headers["x-spillgate-route"] for a in answers]
        assert routes.count("local") >= 2
        assert routes.count("overflow") >= 8
        rows = stack.rows()
        assert len(rows) == 12
        assert {r["outcome"] for r in rows} == {"ok"}
        assert all(r["cash_marginal"] is not None and r["standard"] is not None for r in rows)
        assert stack.is_quiet()
