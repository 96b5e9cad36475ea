"""What an engine's HTTP error means, over the versions of vLLM (contract §2.4).

Knows statuses, parameters and texts; knows nothing of what is done about it.
"""

import re
from typing import Literal, NamedTuple, Protocol

EngineErrorKind = Literal[
    "context_too_long", "unknown_model", "refused_admission", "engine_dead", "bad_request", "other"
]


class Problem(Protocol):
    """What an error body says: `gateway.wire.errors.UpstreamProblem` is one."""

    @property
    def message(self) -> str: ...
    @property
    def type(self) -> str | None: ...
    @property
    def param(self) -> str | None: ...


class _Rule(NamedTuple):
    """One way in which one kind shows. `statuses` empty: any. `params` or `text` must fit, one is enough."""

    kind: EngineErrorKind
    statuses: frozenset[int]
    text: re.Pattern[str]
    params: frozenset[str]


def _rule(kind: EngineErrorKind, statuses: set[int], text: str, params: tuple[str, ...] = ()) -> _Rule:
    return _Rule(kind, frozenset(statuses), re.compile(text), frozenset(params))


# The first that fits. Texts are anchored where the version allows it, since some repeat what the client sent.
_RULES = (
    # A dead engine shows in streams too, under a status that was sent long before, and up to 0.13 under the
    # code 400: the text alone decides. 0.33 says only that the server had an error.
    _rule("engine_dead", set(), r"^(?:EngineCore encountered an issue|EngineDeadError\b|Engine loop .*dead)"),
    _rule("engine_dead", {500}, r"^The server had an error while processing your request"),
    _rule("unknown_model", {404}, r"^The model `.*` does not exist", ("model",)),
    # `max_model_len` stands in the texts of 0.16+, where max_tokens alone is too large.
    _rule(
        "context_too_long",
        {400},
        r"maximum context length (?:is|of) \d+|longer than the maximum model length of \d+"
        r"|cannot be greater than max_model_len|greater than the maximum model length",
        ("input_tokens", "input_text"),
    ),
    _rule(
        "refused_admission",
        {503},
        r"busy and cannot accept new requests|token backlog limit|currently scaling",
    ),
)
# vLLM up to 0.15 repeats the client's body inside this text: no word of it may be taken for the engine's own.
_VALIDATION = re.compile(r"^\d+ validation errors?\b")
_BAD_REQUEST = frozenset({400, 405, 415, 422})
# What `wire.errors.read_error` makes of an empty body: a dead engine's 500 up to 0.17.
_NO_TEXT = "the target gave no error text"


def classify_error(status: int, problem: Problem) -> EngineErrorKind:
    """What kind of error this is. `status` is HTTP's, or 0 where there was none.

    "other" is what a retry elsewhere may or may not help: nothing is claimed about it.
    """
    if status in _BAD_REQUEST and _VALIDATION.match(problem.message):
        return "bad_request"
    for rule in _RULES:
        if _fits(rule, status, problem):
            return rule.kind
    if status == 500 and problem.message == _NO_TEXT and problem.type is None:
        return "engine_dead"
    return "bad_request" if status in _BAD_REQUEST else "other"


def _fits(rule: _Rule, status: int, problem: Problem) -> bool:
    if rule.statuses and status not in rule.statuses:
        return False
    return problem.param in rule.params or rule.text.search(problem.message) is not None
