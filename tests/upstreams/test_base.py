"""The contract: relay must be able to use every target and every answer without telling them apart."""

import inspect

import pytest

from gateway.upstreams.base import Exchange, Target, UpstreamLimits, UpstreamResponse
from gateway.upstreams.engine import EngineTarget
from gateway.upstreams.litellm_answers import Streamed, Whole
from gateway.upstreams.litellm_endpoint import LiteLLMEndpoint, LiteLLMLibrary
from gateway.upstreams.openai_endpoint import OpenAIEndpoint
from gateway.upstreams.response import Response

# mypy holds these assignments to the protocols.
TARGETS: tuple[Target, ...] = (
    EngineTarget("e", "http://127.0.0.1:1"),
    OpenAIEndpoint("o", "http://127.0.0.1:1/v1"),
    LiteLLMEndpoint("l", LiteLLMLibrary()),
)


def _as_protocol(whole: Whole, streamed: Streamed, response: Response) -> tuple[UpstreamResponse, ...]:
    return whole, streamed, response


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_target_offers_what_relay_calls(target: Target) -> None:
    assert inspect.iscoroutinefunction(target.send)
    assert inspect.iscoroutinefunction(target.aclose)


@pytest.mark.parametrize("response", [Response, Whole, Streamed])
def test_every_answer_offers_what_relay_calls(response: type) -> None:
    assert inspect.isasyncgenfunction(response.chunks)  # type: ignore[attr-defined] # that is the question
    assert inspect.iscoroutinefunction(response.read)  # type: ignore[attr-defined] # likewise
    # Closing must be possible in a `finally` under cancellation: without an await.
    assert not inspect.iscoroutinefunction(response.finish)  # type: ignore[attr-defined] # likewise
    assert not inspect.iscoroutinefunction(response.close)  # type: ignore[attr-defined] # likewise


def test_exchanges_do_not_share_what_they_collect() -> None:
    one, two = (Exchange("POST", "/", b"", (), UpstreamLimits()) for _ in range(2))
    one.dropped_fields.append("top_k")
    assert two.dropped_fields == []
