"""litellm's objects and exceptions as answers, with stand-ins of their shapes; the real ones:
test_litellm_endpoint.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.upstreams.base import UpstreamLimits
from gateway.upstreams.errors import Cut, ProtocolBroken, Refused, TimedOut, TooLarge, UpstreamError
from gateway.upstreams.litellm_answers import (
    Streamed,
    Whole,
    close_stream,
    connection_error,
    failed_answer,
    whole_answer,
)

LIMITS = UpstreamLimits(connect=1, first_byte=1, between_reads=1)


class Dumped:
    def __init__(self, dumped: dict[str, Any], provider: str = "openai", **members: Any) -> None:
        self._dumped = dumped
        self._hidden_params = {"custom_llm_provider": provider}
        self.usage = members.get("usage")

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return self._dumped


def caused_by(*names: str) -> Exception:
    """An exception with a chain of causes of these class names, as litellm's have."""
    error: Exception | None = None
    for name in reversed(names):
        outer: Exception = type(name, (Exception,), {})("canary")
        outer.__cause__ = error
        error = outer
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("names", "kind", "sent"),
    [
        (
            ["APIConnectionError", "ConnectError", "ClientConnectorError", "ConnectionRefusedError"],
            Refused,
            False,
        ),
        (["ConnectError", "ClientConnectorDNSError", "gaierror"], Refused, False),
        (["Timeout", "ConnectTimeout", "ConnectionTimeoutError"], TimedOut, False),
        (["Timeout", "ReadTimeout", "SocketTimeoutError"], TimedOut, True),
        (["APIConnectionError", "ReadError", "ClientOSError"], Cut, True),
        (
            ["APIConnectionError", "RequestError", "ClientResponseError", "BadStatusLine"],
            ProtocolBroken,
            True,
        ),
    ],
)
def test_the_chain_of_causes_tells_what_happened(
    names: list[str], kind: type[UpstreamError], sent: bool
) -> None:
    error = connection_error(caused_by(*names), LIMITS)
    assert type(error) is kind
    assert error is not None
    assert error.sent is sent


def test_a_status_without_a_broken_connection_is_an_answer() -> None:
    assert connection_error(caused_by("BadRequestError", "HTTPStatusError"), LIMITS) is None


def test_a_chain_that_bites_its_tail_ends() -> None:
    error = Exception("a")
    error.__context__ = Exception("b")
    error.__context__.__context__ = error
    assert connection_error(error, LIMITS) is None


async def read(answer: Whole) -> Any:
    return json.loads(await answer.read(100_000))


@pytest.mark.anyio
async def test_an_exception_with_a_status_is_that_status_in_our_shape() -> None:
    error = type("BadRequestError", (Exception,), {})("x" * 10_000 + " sk-canary")
    error.status_code = 400
    error.response = SimpleNamespace(headers={"Retry-After": "3", "Set-Cookie": "c"})
    answer = failed_answer(error, LIMITS, ("sk-canary",))
    body = await read(answer)
    assert answer.status == 400
    assert body["error"]["code"] == 400
    assert len(body["error"]["message"]) <= 2000
    assert answer.headers == ((b"retry-after", b"3"), (b"content-type", b"application/json"))


@pytest.mark.parametrize("status", [None, 200, 302, 700, "400"])
def test_an_exception_without_an_error_status_is_a_broken_protocol(status: Any) -> None:
    error = KeyError("sk-canary")
    error.status_code = status  # type: ignore[attr-defined] # as litellm's have it
    with pytest.raises(ProtocolBroken) as caught:
        failed_answer(error, LIMITS, ())
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("provider", "total", "estimated"),
    [("openai", 7, False), ("openai", 0, True), ("petals", 7, True), ("anthropic", 7, False)],
)
def test_usage_is_the_provider_s_only_where_that_is_known(provider: str, total: int, estimated: bool) -> None:
    answer = whole_answer(Dumped({}, provider, usage=SimpleNamespace(total_tokens=total)))
    assert answer.usage_is_estimated is estimated


@pytest.mark.anyio
async def test_members_that_openai_always_sends_are_there_though_null() -> None:
    chat = await read(whole_answer(Dumped({"choices": [{"index": 0, "message": {"role": "assistant"}}]})))
    assert chat["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": None}
    ]
    text = await read(whole_answer(Dumped({"choices": [{"index": 0}]})))
    assert text["choices"] == [{"index": 0, "text": "", "finish_reason": None}]


@pytest.mark.anyio
async def test_a_whole_answer_is_bounded() -> None:
    answer = whole_answer(Dumped({"a": "x" * 100}))
    with pytest.raises(TooLarge):
        await answer.read(50)
    answer.close()


class Endless:
    """A stream of litellm's kind that records its end."""

    def __init__(self) -> None:
        self.closed = 0
        self.chunks: list[Any] = []

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return Dumped({"choices": []})

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1


@pytest.mark.anyio
async def test_a_cancelled_reader_still_closes_the_stream() -> None:
    stream = Endless()
    response = Streamed(stream, Dumped({"choices": []}), LIMITS, (), lambda _: None)

    async def reads_for_ever() -> None:
        async for _ in response.chunks():
            await asyncio.sleep(0)

    reader = asyncio.get_running_loop().create_task(reads_for_ever())
    await asyncio.sleep(0.01)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await asyncio.sleep(0.01)
    assert stream.closed == 1


@pytest.mark.anyio
async def test_a_stream_that_will_not_close_is_left() -> None:
    class Stuck(Endless):
        async def aclose(self) -> None:
            raise RuntimeError("already running")

    await close_stream(Stuck())


@pytest.mark.anyio
async def test_reading_a_stream_whole_is_bounded_and_closes_it() -> None:
    stream = Endless()
    response = Streamed(stream, Dumped({"choices": []}), LIMITS, (), lambda _: None)
    with pytest.raises(TooLarge):
        await response.read(1000)
    assert stream.closed == 1
