"""A provider reached through litellm as a target. Knows what may pass and how to tame the library.

The library takes seconds to import, so that happens in a thread, once, and only where an endpoint of this
kind is configured. It retries nothing here, fetches nothing by itself, and follows no redirect.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partialmethod
from typing import Any, NamedTuple

from gateway.upstreams.base import Exchange, UpstreamLimits
from gateway.upstreams.errors import Refused, TimedOut, UpstreamError
from gateway.upstreams.litellm_answers import (
    Streamed,
    Whole,
    close_stream,
    failed_answer,
    next_event,
    whole_answer,
)
from gateway.wire.body import BadBody, JsonObject

# Read by litellm when it is imported: use the price map and the tokenizers that came with it.
_OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_OFFLINE_MODE": "true"}


class _Call(NamedTuple):
    function: str
    arguments: frozenset[str]


# What a client may say. Everything else is dropped and named: litellm takes addresses, keys, callbacks and
# fallbacks as plain arguments beside these.
_GENERATION = frozenset({
    "temperature", "top_p", "max_tokens", "n", "stop", "seed", "presence_penalty", "frequency_penalty",
    "logprobs",
    "logit_bias", "user", "stream", "stream_options",
})  # fmt: skip
_CHAT = _GENERATION | {
    "messages", "max_completion_tokens", "tools", "tool_choice", "parallel_tool_calls", "response_format",
    "top_logprobs",
    "reasoning_effort",
}  # fmt: skip
_CALLS = {
    "/v1/chat/completions": _Call("acompletion", _CHAT),
    "/v1/completions": _Call("atext_completion", _GENERATION | {"prompt", "suffix", "echo", "best_of"}),
    "/v1/embeddings": _Call("aembedding", frozenset({"input", "dimensions", "encoding_format", "user"})),
}


def import_litellm() -> Any:
    """The library, silenced. Takes about five seconds; call it in a thread."""
    os.environ.update(_OFFLINE)
    import litellm
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    litellm.suppress_debug_info = True
    # Image addresses come from clients: the library, where it fetches them, must keep off private networks.
    litellm.user_url_validation = True
    # Its clients follow redirects and take the request's body along. There is no setting, only this default.
    redirects_off = partialmethod(AsyncHTTPHandler.__init__, follow_redirects=False)
    AsyncHTTPHandler.__init__ = redirects_off
    litellm.aclient_session = AsyncHTTPHandler().client
    return litellm


class LiteLLMLibrary:
    """The imported module, shared by every endpoint of this kind: its HTTP clients are shared as well."""

    def __init__(self, import_module: Callable[[], Any] = import_litellm) -> None:
        self._import = import_module
        self._module: asyncio.Future[Any] | None = None

    async def module(self) -> Any:
        """Import it, or wait for the import that is under way. Call it at start: a request should not pay.

        Raises Refused if it cannot be imported.
        """
        if self._module is None:
            self._module = asyncio.get_running_loop().run_in_executor(None, self._import)
        try:
            return await asyncio.shield(self._module)
        except ImportError as error:
            raise Refused("litellm is not installed, or cannot be imported") from error

    async def aclose(self) -> None:
        """Close the library's clients. Only at the gateway's end: they are every endpoint's."""
        if self._module is None or not self._module.done() or self._module.exception() is not None:
            return
        module = self._module.result()
        async with asyncio.timeout(5):
            await module.close_litellm_async_clients()
            if module.aclient_session is not None:
                await module.aclient_session.aclose()


class LiteLLMEndpoint:
    """Implements `Target`. `exchange.model` is litellm's model string, such as
    `anthropic/claude-sonnet-4-5`.
    """

    def __init__(
        self, name: str, library: LiteLLMLibrary, api_key: str | None = None, *, base_url: str | None = None
    ) -> None:
        self.name = name
        self._library = library
        self._given = {"api_key": api_key, "api_base": base_url}
        self._secrets = tuple(secret for secret in (api_key, base_url) if secret)
        self._abandoned: list[Any] = []

    async def send(self, exchange: Exchange) -> Whole | Streamed:
        """Raises UpstreamError. Streams: the first event is waited for, as some providers dial only then.

        Dial and send cannot be seen through the library: both times are that of the call.
        """
        call = _CALLS.get(exchange.path)
        if call is None:
            raise Refused("this kind of endpoint does not serve the path")
        arguments, dropped = call_arguments(call.arguments, exchange.body)
        exchange.dropped_fields.extend(dropped)
        module = await self._library.module()
        await self._close_abandoned()
        loop = asyncio.get_running_loop()
        exchange.dialed_at = exchange.sent_at = loop.time()
        arguments |= self._given | {"model": exchange.model, "timeout": _timeout(module, exchange.limits)}
        try:
            response = await self._call(getattr(module, call.function), arguments, exchange.limits)
        except UpstreamError as error:
            exchange.sent_at = exchange.sent_at if error.sent else None
            raise
        exchange.headers_at = loop.time()
        return response

    async def aclose(self) -> None:
        await self._close_abandoned()

    async def _call(
        self, function: Callable[..., Awaitable[Any]], arguments: dict[str, Any], limits: UpstreamLimits
    ) -> Whole | Streamed:
        try:
            async with asyncio.timeout(limits.first_byte):
                answer = await function(**arguments, num_retries=0, max_retries=0)
                return await self._answered(answer, limits)
        except TimeoutError as error:
            raise TimedOut(f"no answer within {limits.first_byte:g} s", sent=True) from error
        except Exception as error:  # noqa: BLE001 - litellm raises anything; all of it is mapped here
            return failed_answer(error, limits, self._secrets)

    async def _answered(self, answer: Any, limits: UpstreamLimits) -> Whole | Streamed:
        if not hasattr(answer, "__anext__"):
            return whole_answer(answer)
        try:
            first = await next_event(answer, limits.first_byte)
        except BaseException:
            await close_stream(answer)
            raise
        return Streamed(answer, first, limits, self._secrets, self._abandoned.append)

    async def _close_abandoned(self) -> None:
        while self._abandoned:
            await close_stream(self._abandoned.pop())


def call_arguments(allowed: frozenset[str], body: bytes) -> tuple[dict[str, Any], list[str]]:
    """The arguments that a body gives, and the names of what it may not. Raises Refused for a body that is
    not JSON.
    """
    try:
        members = JsonObject.parse(body)
    except BadBody as error:
        raise Refused("the body cannot be rewritten for an endpoint") from error
    given = {name: member.value for name, member in members.members.items() if member.value is not None}
    given.pop("model", None)
    dropped = sorted(given.keys() - allowed)
    return {name: value for name, value in given.items() if name in allowed}, dropped


def _timeout(module: Any, limits: UpstreamLimits) -> Any:
    # Ours are the limits that count; the library's own must only not be shorter.
    return module.httpx.Timeout(max(limits.first_byte, limits.between_reads) + 1.0, connect=limits.connect)
