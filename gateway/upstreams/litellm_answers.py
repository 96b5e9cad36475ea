"""What litellm hands back, as the bytes of an OpenAI answer, and its exceptions as answers or as errors.

Knows litellm's shapes by duck typing and never imports it; sends nothing. Written against litellm 1.110.2.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import anyio

from gateway.upstreams.base import Header, UpstreamLimits
from gateway.upstreams.errors import Cut, ProtocolBroken, Refused, Stalled, TimedOut, TooLarge, UpstreamError
from gateway.upstreams.headers import forward_response
from gateway.wire.errors import UpstreamProblem, error_body, error_event, read_error

_CLOSE_SECONDS = 2.0
_JSON: Header = (b"content-type", b"application/json")
_EVENTS: Header = (b"content-type", b"text/event-stream; charset=utf-8")
# litellm gives the same exception types to a refused connection, a provider's 500 and a bug of its own. What
# happened to the connection is told only by the chain of causes; by class names, as httpx, httpx2 and aiohttp
# each have theirs.
_NEVER_CONNECTED = frozenset({
    "ConnectError", "ConnectTimeout", "ConnectionTimeoutError", "ClientConnectorError",
    "ConnectionRefusedError",
    "ClientConnectorDNSError", "ClientConnectorCertificateError", "ClientConnectorSSLError", "PoolTimeout",
})  # fmt: skip
_TIMED_OUT = frozenset({
    "ConnectTimeout", "ConnectionTimeoutError", "PoolTimeout", "ReadTimeout", "WriteTimeout",
    "SocketTimeoutError",
    "TimeoutError", "APITimeoutError", "Timeout",
})  # fmt: skip
_BROKEN = frozenset({
    "ReadError", "WriteError", "RemoteProtocolError", "ClientPayloadError", "ClientOSError",
    "ConnectionResetError",
    "ServerDisconnectedError", "IncompleteRead", "StopAsyncIteration",
})  # fmt: skip
_NOT_HTTP = frozenset(
    {"BadStatusLine", "HttpProcessingError", "BadHttpMessage", "LineTooLong", "DecodingError"}
)
# Providers whose answers carry their own token counts. For the others litellm counts with a tokenizer of its
# own and does not say so (`token_counter` in llms/*/transformation.py): what is not listed counts as
# estimated.
_REPORTING = frozenset({
    "anthropic", "azure", "azure_ai", "bedrock", "cerebras", "cohere", "cohere_chat", "databricks",
    "deepinfra",
    "deepseek", "fireworks_ai", "gemini", "groq", "hosted_vllm", "mistral", "nebius", "novita", "nvidia_nim",
    "openai",
    "openai_like", "openrouter", "perplexity", "sambanova", "text-completion-openai", "together_ai",
    "vertex_ai", "xai",
})  # fmt: skip


class Whole:
    """An answer that is already here: implements `UpstreamResponse`."""

    def __init__(self, status: int, headers: tuple[Header, ...], body: bytes, *, estimated: bool) -> None:
        self.status = status
        self.headers = headers
        self.usage_is_estimated = estimated
        self._body = body

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self._body

    async def read(self, limit: int) -> bytes:
        """Raises TooLarge above `limit` bytes."""
        if len(self._body) > limit:
            raise TooLarge(f"the body is longer than {limit} bytes", sent=True)
        return self._body

    def finish(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""


class Streamed:
    """A stream of litellm's objects as server-sent events: implements `UpstreamResponse`.

    Its reader must close `chunks()` (contextlib.aclosing): only there can the provider's connection be
    closed, as that needs an await. A stream that was never read is given to `abandon` by `close`.
    """

    def __init__(
        self,
        stream: Any,
        first: Any,
        limits: UpstreamLimits,
        secrets: tuple[str, ...],
        abandon: Callable[[Any], None],
    ) -> None:
        self.status = 200
        self.headers: tuple[Header, ...] = (_EVENTS,)
        # Until a usage event is seen that is the provider's own.
        self.usage_is_estimated = True
        self._stream = stream
        self._first = first
        self._limits = limits
        self._secrets = secrets
        self._abandon = abandon
        self._started = False

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """One event a time. Raises Stalled, Cut; a provider's own error is an event without an end marker."""
        self._started = True
        event = self._first
        try:
            while event is not None:
                if getattr(event, "usage", None) is not None:
                    self.usage_is_estimated = not _provider_counted(self._stream)
                yield b"data: %b\n\n" % _json(event)
                try:
                    event = await next_event(self._stream, self._limits.between_reads)
                except Exception as error:  # noqa: BLE001 - litellm raises anything; all of it is mapped here
                    yield self._in_band(error)
                    return
            yield b"data: [DONE]\n\n"
        finally:
            await close_stream(self._stream)

    async def read(self, limit: int) -> bytes:
        """Raises TooLarge above `limit` bytes, otherwise as `chunks`."""
        body = b""
        async with contextlib.aclosing(self.chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > limit:
                    raise TooLarge(f"the body is longer than {limit} bytes", sent=True)
        return body

    def finish(self) -> None:
        """As `close`: the library's connections are its own to keep."""
        self.close()

    def close(self) -> None:
        """May be called twice; see the class."""
        if not self._started:
            self._started = True
            self._abandon(self._stream)

    def _in_band(self, error: Exception) -> bytes:
        broken = connection_error(error, self._limits)
        if isinstance(broken, TimedOut):
            raise Stalled(f"no event for {self._limits.between_reads:g} s", sent=True) from error
        if broken is not None:
            raise Cut("the endpoint's stream broke", sent=True) from error
        problem = _problem(error, self._secrets)
        return error_event(problem.message, problem.type or "upstream_error", problem.code, problem.param)


def whole_answer(answer: Any) -> Whole:
    """A complete answer as OpenAI's JSON."""
    return Whole(200, (_JSON,), _json(answer), estimated=not _answer_counted(answer))


def failed_answer(error: Exception, limits: UpstreamLimits, secrets: tuple[str, ...]) -> Whole:
    """The answer that litellm made an exception of, again as an answer.

    Raises UpstreamError if the connection failed or there is no status: then nothing is known of an answer.
    """
    broken = connection_error(error, limits)
    if broken is not None:
        raise broken from error
    status = getattr(error, "status_code", None)
    if not isinstance(status, int) or not 400 <= status <= 599:
        raise ProtocolBroken(f"litellm failed: {type(error).__name__}", sent=True) from error
    problem = _problem(error, secrets)
    body = error_body(
        problem.message, problem.type or "upstream_error", problem.code or status, problem.param
    )
    return Whole(status, (*_error_headers(error), _JSON), body, estimated=True)


def connection_error(error: BaseException, limits: UpstreamLimits) -> UpstreamError | None:
    """What happened to the connection, or None if an answer came."""
    names = {type(cause).__name__ for cause in _causes(error)}
    if names & _NEVER_CONNECTED:
        if names & _TIMED_OUT:
            return TimedOut(f"not connected within {limits.connect:g} s", sent=False)
        return Refused("the endpoint cannot be reached")
    if names & _TIMED_OUT:
        return TimedOut(f"no answer within {limits.first_byte:g} s", sent=True)
    if names & _NOT_HTTP:
        return ProtocolBroken("not HTTP", sent=True)
    return Cut("the connection broke before the answer was whole", sent=True) if names & _BROKEN else None


async def next_event(stream: Any, seconds: float) -> Any:
    """The stream's next object, or None at its end. Raises TimeoutError, or whatever litellm raises."""
    async with asyncio.timeout(seconds):
        return await anext(stream, None)


async def close_stream(stream: Any) -> None:
    """Close a provider's stream, also while being cancelled; never raises and never takes long."""
    # An anyio shield and not asyncio's: only that one lets an await finish under a cancelled task group.
    with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
        for layer in reversed(_layers(stream)):
            if hasattr(layer, "aclose"):
                with contextlib.suppress(Exception):  # it is being thrown away: nobody could act on this
                    await layer.aclose()


def _layers(stream: Any) -> list[Any]:
    """The stream and what it reads from, outermost first.

    A text stream has no `aclose` of its own: it is two generators around the stream proper, and closing a
    generator closes nothing that it reads from. What they read from is found in their frames only.
    """
    layers = [stream]
    while (inner := _inner(layers[-1])) is not None:
        layers.append(inner)
    return layers


def _inner(layer: Any) -> Any:
    frame = getattr(layer, "ag_frame", None)
    if frame is not None:
        return frame.f_locals.get("streamwrapper") or frame.f_locals.get("response")
    return None if hasattr(layer, "aclose") else getattr(layer, "completion_stream", None)


def _json(answer: Any) -> bytes:
    """OpenAI's members, and of those that are null only the ones that OpenAI's own answers always have."""
    dumped: dict[str, Any] = answer.model_dump(mode="json", exclude_none=True)
    for choice in dumped.get("choices", ()):
        choice.pop("provider_specific_fields", None)
        choice.setdefault("finish_reason", None)
        if "message" in choice:
            choice["message"].setdefault("content", None)
        elif "delta" not in choice:
            choice.setdefault("text", "")
    return json.dumps(dumped, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def _provider_counted(stream: Any) -> bool:
    # litellm keeps what the provider sent in `chunks`, and makes the usage event up from their text if none
    # of them had one (CustomStreamWrapper._finalize_completed_stream).
    return any(
        getattr(chunk, "usage", None) is not None
        for layer in _layers(stream)
        for chunk in getattr(layer, "chunks", ())
    )


def _answer_counted(answer: Any) -> bool:
    hidden = getattr(answer, "_hidden_params", None) or {}
    provider = hidden.get("custom_llm_provider")
    # Where the answer had no usage at all, litellm fills in zeros.
    usage = getattr(answer, "usage", None)
    return provider in _REPORTING and bool(getattr(usage, "total_tokens", 0))


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _problem(error: Exception, secrets: tuple[str, ...]) -> UpstreamProblem:
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        return read_error(json.dumps({"error": body}, default=str).encode(), secrets)
    original = getattr(error, "original_exception", None) or error
    text = str(getattr(original, "message", None) or original)
    return read_error(error_body(text, type(original).__name__, None), secrets)


def _error_headers(error: Exception) -> tuple[Header, ...]:
    found = getattr(getattr(error, "response", None), "headers", None)
    if found is None:
        return ()
    pairs = ((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in found.items())
    return tuple(header for header in forward_response(pairs) if header[0] != b"content-type")
