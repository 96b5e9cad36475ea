"""What must hold between policies and the models under them: every route that is written down can be taken.

Looks at plain values of spillgate.yaml and at policies as routing will see them. Reads no file.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.config.check import Draft, Problem, entries, text_of, texts
from gateway.config.locate import Loc
from gateway.routing.policy import Policy


def route_problems(draft: Draft) -> Iterator[Problem]:
    """Models that nothing could serve, and overflows that nothing could take."""
    for loc, model in draft.entries("models"):
        engines = [name for _, name in texts(model, "engines", loc)]
        overflow = list(entries(model, "overflow", loc))
        policy = draft.policies.get(text_of({"policy": "balanced", **model}, "policy") or "")
        if not model.get("engines") and not model.get("overflow"):
            yield Problem((*loc, "name"), "no_target", "this model has neither engines nor overflow")
        elif policy is not None:
            yield from _under(policy, loc, bool(engines), overflow, draft)


def _under(
    policy: Policy, loc: Loc, has_engines: bool, overflow: list[tuple[Loc, Mapping[str, Any]]], draft: Draft
) -> Iterator[Problem]:
    at: Loc = (*loc, "policy")
    if policy.pin == "overflow" and not overflow:
        message = f"policy {policy.name!r} sends everything out, and this model has no overflow"
        yield Problem(at, "dead_overflow", message)
    if not has_engines and policy.pin == "local":
        message = f"policy {policy.name!r} keeps everything local, and this model has no engine"
        yield Problem(at, "no_target", message)
    if not overflow or policy.pin == "local":
        return
    if policy.pin == "auto" and not has_engines and "unreachable" not in policy.overflow.when:
        message = f"this model has no engine, and policy {policy.name!r} lets nothing leave for 'unreachable'"
        yield Problem(at, "no_target", message)
    elif policy.pin == "auto" and not policy.overflow.when:
        message = (
            f"policy {policy.name!r} names no cause under overflow.when, so this overflow is never taken"
        )
        yield Problem((*loc, "overflow"), "dead_overflow", message, "warning", at_key=True)
    yield from _regions(policy, overflow, draft)


def _regions(
    policy: Policy, overflow: list[tuple[Loc, Mapping[str, Any]]], draft: Draft
) -> Iterator[Problem]:
    allowed = policy.overflow.forbid.regions_allowed
    if allowed is None:
        return
    regions = {text_of(entry, "name"): text_of(entry, "region") for _, entry in draft.entries("endpoints")}
    for at, target in overflow:
        name = text_of(target, "endpoint")
        if name in regions and regions[name] not in allowed:
            where = f"region {regions[name]!r}" if regions[name] else "no region given"
            rule = f"policy {policy.name!r} allows {', '.join(allowed) or 'no region'}"
            message = f"{rule}; endpoint {name!r} has {where}"
            yield Problem((*at, "endpoint"), "dead_overflow", message, "warning")


def policy_problems(policy: Policy, file_stem: str) -> Iterator[Problem]:
    """What is odd inside one policy file."""
    if policy.name != file_stem:
        message = f"the file is named {file_stem!r}, the policy {policy.name!r}: models use the policy's name"
        yield Problem(("name",), "name_differs", message, "warning")
    if policy.pin == "overflow" and policy.shadow:
        yield Problem(("shadow",), "contradiction", "shadow serves everything locally, pin: overflow nothing")
    header, colon, value = policy.overflow.forbid.header.partition(":")
    if not colon or not header.strip() or not value.strip():
        yield Problem(("overflow", "forbid", "header"), "bad_value", "'header' takes `name: value` in quotes")


def key_problems(policy: Policy, keys: frozenset[str]) -> Iterator[Problem]:
    """Client keys that a policy names and nobody has."""
    for number, key in enumerate(policy.overflow.forbid.keys):
        if key not in keys:
            loc = ("overflow", "forbid", "keys", number)
            yield Problem(loc, "unknown_name", f"no client key is named {key!r}", "warning")
