"""Why a request got no answer from any target: what the client's error is made of. Knows no status line and
no wording."""

from dataclasses import dataclass
from enum import StrEnum

from gateway.routing.reasons import Reason


class FailureKind(StrEnum):
    """Closed set; the value is the error code that a client sees. api/errors.py has a row for each."""

    TARGET_UNAVAILABLE = "target_unavailable"
    TARGET_TIMEOUT = "target_timeout"
    TARGET_STALLED = "target_stalled"
    TARGET_CUT = "target_cut"
    TARGET_PROTOCOL = "target_protocol"
    TARGET_TOO_LARGE = "target_too_large"
    TARGET_TRUNCATED = "target_truncated"
    TARGET_STATUS = "target_status"
    TARGET_ERROR_EVENT = "target_error_event"
    OVERFLOW_AUTH = "overflow_auth"
    ENGINE_AUTH = "engine_auth"
    ENGINE_MODEL_MISSING = "engine_model_missing"
    SHED = "shed"
    SHUTDOWN = "shutdown"
    INTERNAL = "internal_error"


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt, or a refusal.

    `status` is the target's own status, where it gave one; `body` the target's own error where it already has
    OpenAI's shape, passed on unchanged. `paid_twice`: a client's own retry might be billed a second time.
    """

    kind: FailureKind
    status: int | None = None
    message: str | None = None
    error_type: str | None = None
    param: str | None = None
    body: bytes | None = None
    retry_after: float | None = None
    reason: Reason | None = None
    model: str | None = None
    paid_twice: bool = False
