"""Every error that a client can see, one row each, in OpenAI's shape. Knows no sockets.

Messages name what the client sent and nothing of the configuration: no address, no key, no list of targets.
"""

from dataclasses import dataclass
from typing import NamedTuple

from gateway.relay.failure import Failure, FailureKind
from gateway.routing.reasons import MEANING, Reason
from gateway.upstreams.base import Header
from gateway.wire.errors import error_body


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """Status, body and headers of one refusal."""

    status: int
    body: bytes
    headers: tuple[Header, ...] = ()


class Rejected(Exception):  # noqa: N818 -- it names what the gateway did, not a fault of ours
    """A request that is answered before anything is dispatched."""

    def __init__(self, answer: ErrorAnswer, why: str) -> None:
        super().__init__(why)
        self.answer = answer
        self.why = why


class _Row(NamedTuple):
    status: int
    type: str
    message: str


_INVALID = "invalid_request_error"
_SERVER = "server_error"

# Refusals of the gateway itself, before any target: code -> row.
_REJECTIONS: dict[str, _Row] = {
    "invalid_json": _Row(400, _INVALID, "The request body is not usable: {detail}."),
    "invalid_value": _Row(400, _INVALID, "{detail}."),
    "model_required": _Row(400, _INVALID, "The request names no model; set `model`."),
    "invalid_api_key": _Row(
        401, "authentication_error", "A valid API key is required: send it as `Authorization: Bearer ...`."
    ),
    "model_not_found": _Row(
        404, _INVALID, "The model `{detail}` does not exist here; GET /v1/models lists those that do."
    ),
    "not_found": _Row(404, _INVALID, "There is nothing at this path; /docs lists what there is."),
    "method_not_allowed": _Row(405, _INVALID, "This path does not take {detail} requests."),
    "body_timeout": _Row(408, _INVALID, "The request body did not arrive in time."),
    "body_too_large": _Row(413, _INVALID, "The request body is larger than the limit of {detail} bytes."),
    "ledger_full": _Row(
        503, _SERVER, "The gateway cannot write requests down now and takes none without; try again soon."
    ),
    "unsupported_encoding": _Row(
        415, _INVALID, "Compressed request bodies are not taken; send identity encoding."
    ),
}

# Failures of targets, when no other may be tried: kind -> row. A row's status yields to the target's own
# where it gave one.
_FAILURES: dict[FailureKind, _Row] = {
    FailureKind.TARGET_UNAVAILABLE: _Row(
        503, _SERVER, "No target for `{model}` could be reached; try again soon."
    ),
    FailureKind.TARGET_TIMEOUT: _Row(504, _SERVER, "The target for `{model}` did not answer in time."),
    FailureKind.TARGET_STALLED: _Row(504, _SERVER, "The target for `{model}` stopped answering."),
    FailureKind.TARGET_CUT: _Row(
        502, _SERVER, "The connection to the target for `{model}` broke before it answered."
    ),
    FailureKind.TARGET_TRUNCATED: _Row(
        502, _SERVER, "The target's answer for `{model}` ended before it was whole."
    ),
    FailureKind.TARGET_PROTOCOL: _Row(
        502, _SERVER, "The target for `{model}` gave an answer that is not valid."
    ),
    FailureKind.TARGET_TOO_LARGE: _Row(
        502, _SERVER, "The target's answer for `{model}` is larger than the limit."
    ),
    FailureKind.TARGET_STATUS: _Row(502, _SERVER, "The target for `{model}` refused the request."),
    FailureKind.TARGET_ERROR_EVENT: _Row(502, _SERVER, "The target for `{model}` failed before it answered."),
    FailureKind.OVERFLOW_AUTH: _Row(
        502, _SERVER, "The endpoint for `{model}` refused the gateway's credentials."
    ),
    FailureKind.ENGINE_AUTH: _Row(
        502, _SERVER, "The engine for `{model}` refused the gateway's credentials."
    ),
    FailureKind.ENGINE_MODEL_MISSING: _Row(
        502, _SERVER, "The engine does not serve `{model}` under the configured name."
    ),
    FailureKind.SHED: _Row(503, "overloaded_error", "`{model}` cannot be served now: {detail}."),
    FailureKind.SHUTDOWN: _Row(503, _SERVER, "The gateway is shutting down."),
    FailureKind.INTERNAL: _Row(500, _SERVER, "The gateway failed; the request id names the record."),
}
# Our own verdict on a target's credentials or catalogue is a 502, whatever status the target used.
_OWN_STATUS = frozenset(
    {FailureKind.OVERFLOW_AUTH, FailureKind.ENGINE_AUTH, FailureKind.ENGINE_MODEL_MISSING}
)


def rejection(code: str, detail: str = "", *, param: str | None = None) -> Rejected:
    """The exception for one of the gateway's own refusals."""
    row = _REJECTIONS[code]
    body = error_body(row.message.format(detail=detail), row.type, code, param)
    wait = _wait_headers(1.0) if row.status == 503 else ()
    return Rejected(ErrorAnswer(row.status, body, wait), code)


def answer_for(failure: Failure) -> ErrorAnswer:
    """What the client is told when the last attempt failed, or nothing could be attempted."""
    row = _FAILURES[failure.kind]
    status = row.status if failure.status is None or failure.kind in _OWN_STATUS else failure.status
    return ErrorAnswer(status, failure.body or _body(failure, row), _headers(failure, status))


def _body(failure: Failure, row: _Row) -> bytes:
    own_words = (
        failure.message
        if failure.kind in (FailureKind.TARGET_STATUS, FailureKind.TARGET_ERROR_EVENT)
        else None
    )
    detail = MEANING[failure.reason] if failure.reason else ""
    message = own_words or row.message.format(model=failure.model or "the model", detail=detail)
    code = failure.reason.value if failure.reason else failure.kind.value
    error_type = failure.error_type or (
        "rate_limit_error" if failure.reason is Reason.BUDGET_SPENT else row.type
    )
    return error_body(message, error_type, code, failure.param)


def _headers(failure: Failure, status: int) -> tuple[Header, ...]:
    headers: tuple[Header, ...] = ()
    wait = failure.retry_after
    if wait is None and status in (429, 503):
        wait = 1.0
    if wait is not None:
        headers = _wait_headers(wait)
    return (*headers, (b"x-should-retry", b"false")) if failure.paid_twice else headers


def _wait_headers(seconds: float) -> tuple[Header, ...]:
    """When to come back, for clients that read whole seconds and for the SDKs that read milliseconds."""
    whole, exact = max(1, round(seconds)), round(seconds * 1000)
    return (b"retry-after", str(whole).encode()), (b"retry-after-ms", str(exact).encode())
