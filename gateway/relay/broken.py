"""An answer that is not what it should be, and how any failed answer reads as a Failure."""

from gateway.ledger.records import Outcome
from gateway.relay.failure import Failure, FailureKind
from gateway.upstreams.errors import UpstreamError
from gateway.wire.errors import UpstreamProblem

_KINDS: dict[str, FailureKind] = {
    "upstream_refused": FailureKind.TARGET_UNAVAILABLE,
    "shed": FailureKind.TARGET_UNAVAILABLE,
    "upstream_timeout": FailureKind.TARGET_TIMEOUT,
    "upstream_stall": FailureKind.TARGET_STALLED,
    "upstream_cut": FailureKind.TARGET_CUT,
    "upstream_truncated": FailureKind.TARGET_TRUNCATED,
    "upstream_protocol": FailureKind.TARGET_PROTOCOL,
    "upstream_too_large": FailureKind.TARGET_TOO_LARGE,
}


class AnswerBroken(Exception):  # noqa: N818 -- it names what happened, as the ledger's outcomes do
    """A 200 whose body is no good. `outcome` is the ledger's word."""

    def __init__(self, outcome: Outcome, message: str, failure: Failure | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.failure = failure or Failure(_KINDS[outcome], message=message)


def error_event_failure(problem: UpstreamProblem, *, aborted: bool) -> AnswerBroken:
    """An error object inside a 200, or a finish reason by which the engine gave the request up."""
    if aborted:
        failure = Failure(
            FailureKind.TARGET_ERROR_EVENT,
            message="the target aborted the request",
            error_type="server_error",
        )
        return AnswerBroken("upstream_error_event", "aborted", failure)
    code = problem.code
    status = code if isinstance(code, int) and 400 <= code <= 599 else None
    failure = Failure(
        FailureKind.TARGET_ERROR_EVENT,
        status=status,
        message=problem.message,
        error_type=problem.type,
        param=problem.param,
    )
    return AnswerBroken("upstream_error_event", "error event", failure)


def upstream_failure(error: UpstreamError) -> Failure:
    """A transport's failure as a Failure. The text is a class's own, never an exception's of a library."""
    return Failure(_KINDS.get(error.outcome, FailureKind.INTERNAL), message=str(error))
