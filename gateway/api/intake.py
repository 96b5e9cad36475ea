"""From an ASGI request to an `Admitted` one: authenticate, bound, read what deciding needs. Dispatches
nothing."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from uuid import uuid4
from zlib import crc32

from gateway.api.catalogue import Catalogue
from gateway.api.errors import rejection
from gateway.config.keys import KeyEntry
from gateway.relay.admitted import Admitted
from gateway.routing.facts import OverflowWish, RequestFacts
from gateway.routing.lengths import LengthLearner
from gateway.routing.policy import Policy
from gateway.routing.view import ModelTargets
from gateway.upstreams.base import Header
from gateway.upstreams.headers import forward_request
from gateway.wire.body import BadBody, JsonObject
from gateway.wire.paths import Path
from gateway.wire.request import Peek, peek, peek_form

_WISHES: dict[bytes, OverflowWish] = {b"never": "never", b"allow": "allow", b"only": "only"}
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_TAGS = re.compile(rb"[ -~]{1,256}")
# Tokens that one image costs where nothing better is known: about a 1024 x 1024 tile of today's vision
# towers.
_IMAGE_TOKENS = 1024


@dataclass(slots=True)
class Arrival:
    """What is known of a request before its body is read; enough to record a refusal."""

    path: Path
    headers: dict[bytes, bytes]
    raw_headers: list[Header]
    request_id: str
    arrived_at: float
    arrived_utc: str
    key: KeyEntry | None = None
    requested_model: str | None = None
    stream: bool = False

    @property
    def key_name(self) -> str | None:
        """The client key's name, never its secret."""
        return self.key.name if self.key else None


def arrival_of(path: Path, raw_headers: list[Header], headers: dict[bytes, bytes], now: float) -> Arrival:
    """A new arrival with a request id of its own: it begins with the client's, so that both sides find it,
    and is never repeated, since the ledger and vLLM both key by it."""
    asked = headers.get(b"x-request-id", b"")
    unique = uuid4().hex
    request_id = f"{asked.decode()}-{unique[:8]}" if _REQUEST_ID.fullmatch(asked) else unique
    return Arrival(
        path, headers, raw_headers, request_id, now, datetime.now(UTC).isoformat(timespec="microseconds")
    )


class Intake:
    """Reads requests against one catalogue. `lengths` turns bytes into expected prompt tokens."""

    def __init__(self, catalogue: Catalogue, lengths: LengthLearner, clock: Callable[[], float]) -> None:
        self._catalogue, self._lengths, self._clock = catalogue, lengths, clock

    def admit(self, arrival: Arrival, body: bytes) -> Admitted:
        """Raises Rejected for everything that no target needs to see."""
        parsed, seen = _read(arrival, body)
        arrival.requested_model, arrival.stream = seen.model, seen.stream
        targets = self._targets(seen.model)
        policy = self._policy(arrival, targets)
        return Admitted(
            request_id=arrival.request_id,
            path=arrival.path,
            body=body,
            parsed=parsed,
            peek=seen,
            facts=self._facts(arrival, seen, targets, policy),
            policy=policy,
            headers=forward_request(arrival.raw_headers),
            requested_model=seen.model,
            key=arrival.key_name,
            tags=_tags(arrival.headers),
            arrived_at=arrival.arrived_at,
            arrived_utc=arrival.arrived_utc,
            shows_costs=arrival.key is None or arrival.key.show_costs,
        )

    def _targets(self, model: str | None) -> ModelTargets:
        targets = self._catalogue.resolve(model)
        if targets is None:
            raise (
                rejection("model_required", param="model")
                if model is None
                else rejection("model_not_found", model[:200], param="model")
            )
        return targets

    def _policy(self, arrival: Arrival, targets: ModelTargets) -> Policy:
        """A key's own policy stands above what its requests ask for, and that above the model's."""
        if arrival.key is not None and arrival.key.policy is not None:
            return self._catalogue.policies[arrival.key.policy]
        asked = arrival.headers.get(b"x-spillgate-policy")
        if asked is None:
            return self._catalogue.policies[targets.policy]
        policy = self._catalogue.policies.get(asked.decode("utf-8", "replace"))
        if policy is None:
            raise rejection("invalid_value", "x-spillgate-policy names no policy of this gateway")
        return policy

    def _facts(self, arrival: Arrival, seen: Peek, targets: ModelTargets, policy: Policy) -> RequestFacts:
        return RequestFacts(
            model=targets.name,
            prompt_tokens=self._prompt_tokens(seen, targets.name),
            prompts=seen.prompts,
            max_tokens=seen.max_tokens,
            choices=seen.choices,
            min_tokens=seen.min_tokens,
            stream=seen.stream,
            priority=seen.priority,
            key=arrival.key_name,
            overflow_wish=_wish(arrival.headers, policy),
            affinity_key=_affinity(targets.name, seen.affinity_text),
            generates=arrival.path.generates,
            endpoint_can_serve=arrival.path.on_endpoints,
            local_only_fields=seen.local_only_fields,
        )

    def _prompt_tokens(self, seen: Peek, model: str) -> int:
        if seen.token_ids is not None:
            return max(1, seen.token_ids)
        return self._lengths.prompt_tokens(model, seen.text_bytes) + seen.images * _IMAGE_TOKENS


def _read(arrival: Arrival, body: bytes) -> tuple[JsonObject | None, Peek]:
    if arrival.path.form:
        return None, peek_form(body, arrival.path)
    if not arrival.headers.get(b"content-type", b"").lower().startswith(b"application/json"):
        raise rejection("invalid_json", "its content-type is not application/json")
    try:
        parsed = JsonObject.parse(body)
        return parsed, peek(parsed, arrival.path)
    except BadBody as error:
        raise rejection("invalid_json", str(error).rstrip("."), param=error.param) from None


def _wish(headers: dict[bytes, bytes], policy: Policy) -> OverflowWish:
    asked = headers.get(b"x-spillgate-overflow")
    wish: OverflowWish = "allow"
    if asked is not None:
        known = _WISHES.get(asked.strip().lower())
        if known is None:
            raise rejection("invalid_value", "x-spillgate-overflow must be one of never, allow, only")
        wish = known
    name, _, value = policy.overflow.forbid.header.partition(":")
    carried = headers.get(name.strip().lower().encode())
    return "never" if carried is not None and carried.strip().decode("latin-1") == value.strip() else wish


def _affinity(model: str, text: str) -> int | None:
    if not text:
        return None
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()) ^ crc32(
        model.encode()
    )


def _tags(headers: dict[bytes, bytes]) -> str | None:
    tags = headers.get(b"x-spillgate-tags")
    if tags is None:
        return None
    if not _TAGS.fullmatch(tags):
        raise rejection("invalid_value", "x-spillgate-tags must be at most 256 printable ASCII characters")
    return tags.decode()
