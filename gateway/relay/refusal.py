"""An error status from a target, as what the client may see of it.

An engine's own error passes unchanged where it has OpenAI's shape already; provider texts about keys do not
pass.
"""

import json
from math import isnan

from gateway.relay.failure import Failure, FailureKind
from gateway.upstreams.base import Header
from gateway.wire.errors import UpstreamProblem, read_error

_LONGEST_RETRY_AFTER = 300.0


def refusal_of(status: int, headers: tuple[Header, ...], body: bytes, *, priced: bool) -> Failure:
    """The failure that this answer means."""
    problem = read_error(body)
    if 300 <= status < 400:
        return Failure(
            FailureKind.TARGET_PROTOCOL, message="the target redirects; redirects are not followed"
        )
    if status in (401, 403):
        return Failure(FailureKind.OVERFLOW_AUTH if priced else FailureKind.ENGINE_AUTH, status=status)
    if status == 404 and not priced and problem.param == "model":
        return Failure(FailureKind.ENGINE_MODEL_MISSING, status=status)
    return Failure(
        FailureKind.TARGET_STATUS,
        status=status,
        message=problem.message,
        error_type=problem.type,
        param=problem.param,
        body=body if _has_openai_shape(body) else None,
        retry_after=_retry_after(headers),
    )


def problem_of(failure: Failure) -> UpstreamProblem:
    """The failure's own words again, for those who classify them."""
    return UpstreamProblem(
        message=failure.message or "", type=failure.error_type, param=failure.param, code=failure.status
    )


def _has_openai_shape(body: bytes) -> bool:
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return False
    return isinstance(error, dict) and {"message", "type", "param", "code"} <= error.keys()


def _retry_after(headers: tuple[Header, ...]) -> float | None:
    """Seconds of a Retry-After header, capped; dates and garbage read as None."""
    for name, value in headers:
        if name == b"retry-after":
            try:
                seconds = float(value)
            except ValueError:
                return None
            return None if isnan(seconds) else min(max(seconds, 0.0), _LONGEST_RETRY_AFTER)
    return None
