"""What must hold between the parts of a configuration: names that exist, addresses shut to strangers.

Looks at plain values, which may still be wrong in other ways, so that every problem is found in one go.
Reads no file.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gateway.config.findings import Level, nearest
from gateway.config.locate import Loc
from gateway.routing.policy import Policy


class Problem(NamedTuple):
    """A finding whose place is still a path. `at_key`: it is the key that is wrong, not its value."""

    loc: Loc
    code: str
    message: str
    level: Level = "error"
    at_key: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """Plain values of spillgate.yaml, the policies that could be read, and every policy's name."""

    tree: Mapping[str, Any]
    policies: Mapping[str, Policy]
    policy_names: frozenset[str]

    def entries(self, section: str) -> Iterator[tuple[Loc, Mapping[str, Any]]]:
        """The mappings of a list at the top, with their paths."""
        yield from entries(self.tree, section)

    def names(self, section: str) -> dict[str, Loc]:
        """Name -> path of its first entry."""
        found: dict[str, Loc] = {}
        for loc, entry in self.entries(section):
            if (name := text_of(entry, "name")) is not None:
                found.setdefault(name, loc)
        return found


def entries(mapping: Mapping[str, Any], key: str, at: Loc = ()) -> Iterator[tuple[Loc, Mapping[str, Any]]]:
    """The mappings of a list under `key`, with their paths; anything else there is not our business."""
    inner = mapping.get(key)
    for number, entry in enumerate(inner if isinstance(inner, list) else []):
        if isinstance(entry, dict):
            yield (*at, key, number), entry


def texts(mapping: Mapping[str, Any], key: str, at: Loc) -> Iterator[tuple[Loc, str]]:
    """The texts of a list under `key`, with their paths."""
    inner = mapping.get(key)
    for number, entry in enumerate(inner if isinstance(inner, list) else []):
        if isinstance(entry, str):
            yield (*at, key, number), entry


def text_of(mapping: Mapping[str, Any], key: str) -> str | None:
    """The text under `key`, or None where there is none."""
    value = mapping.get(key)
    return value if isinstance(value, str) else None


def is_loopback(host: str) -> bool:
    """Does only this machine reach an address? A name other than localhost does not count."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def open_listen(host: str, has_clients: bool) -> str | None:
    """Why this address may not be bound, or None. For whoever binds: a command line can name another one."""
    if has_clients or is_loopback(host):
        return None
    return f"{host!r} can be reached from other machines: set clients.keys_file, or listen on 127.0.0.1"


def problems(draft: Draft) -> Iterator[Problem]:
    """Every problem between the parts of spillgate.yaml."""
    for check in _CHECKS:
        yield from check(draft)


def _listen(draft: Draft) -> Iterator[Problem]:
    listen = draft.tree.get("listen")
    host = text_of(listen, "host") if isinstance(listen, dict) else None
    why = open_listen(host, isinstance(draft.tree.get("clients"), dict)) if host else None
    if why:
        yield Problem(("listen", "host"), "open_listen", why)


def _repeated_names(draft: Draft) -> Iterator[Problem]:
    # Engines and endpoints share one set: metrics, breakers and headers know only targets.
    for sections in (("engines", "endpoints"), ("models",)):
        seen: dict[str, str] = {}
        for section in sections:
            for loc, entry in draft.entries(section):
                name = text_of(entry, "name")
                if name in seen:
                    yield Problem(
                        (*loc, "name"), "duplicate_name", f"another of {seen[name]} is named {name!r}"
                    )
                elif name is not None:
                    seen[name] = section


def _repeated_addresses(draft: Draft) -> Iterator[Problem]:
    seen: set[str] = set()
    for loc, engine in draft.entries("engines"):
        url = (text_of(engine, "url") or "").rstrip("/")
        if url and url in seen:
            message = "another engine has this address: its blocks would be promised twice"
            yield Problem((*loc, "url"), "duplicate_name", message)
        seen.add(url)


def _aliases(draft: Draft) -> Iterator[Problem]:
    taken = {name: f"the name of model {name!r}" for name in draft.names("models")}
    for loc, model in draft.entries("models"):
        for at, alias in texts(model, "aliases", loc):
            if alias in taken:
                yield Problem(at, "alias_taken", f"alias {alias!r} is already {taken[alias]}")
            taken.setdefault(alias, f"an alias of model {model.get('name')!r}")


def _model_targets(draft: Draft) -> Iterator[Problem]:
    engines, endpoints = draft.names("engines"), draft.names("endpoints")
    for loc, model in draft.entries("models"):
        listed: set[str] = set()
        for at, engine in texts(model, "engines", loc):
            if engine not in engines:
                yield _unknown(at, "engine", engine, engines)
            elif engine in listed:
                yield Problem(at, "duplicate_name", f"engine {engine!r} is listed twice")
            listed.add(engine)
        for at, target in entries(model, "overflow", loc):
            endpoint = text_of(target, "endpoint")
            if endpoint is not None and endpoint not in endpoints:
                yield _unknown((*at, "endpoint"), "endpoint", endpoint, endpoints)


def _model_policies(draft: Draft) -> Iterator[Problem]:
    for loc, model in draft.entries("models"):
        name = text_of(model, "policy")
        if name is not None and name not in draft.policy_names:
            yield _unknown((*loc, "policy"), "policy", name, draft.policy_names)


def _unknown(loc: Loc, what: str, name: str, known: Mapping[str, Loc] | frozenset[str]) -> Problem:
    hint = nearest(name, known) or (f"; known: {', '.join(sorted(known))}" if known else "; none is defined")
    return Problem(loc, "unknown_name", f"no {what} is named {name!r}{hint}")


def _endpoints(draft: Draft) -> Iterator[Problem]:
    for loc, endpoint in draft.entries("endpoints"):
        if endpoint.get("kind", "openai") == "openai" and "base_url" not in endpoint:
            yield Problem(loc, "missing_key", "key 'base_url' is missing here: kind openai needs an address")
        if endpoint.get("budget") == {}:
            yield Problem((*loc, "budget"), "missing_key", "a budget needs usd_per_hour or usd_per_day")


def _prices(draft: Draft) -> Iterator[Problem]:
    for loc, model in draft.entries("models"):
        for at, target in entries(model, "overflow", loc):
            if target.get("price") == {}:
                yield Problem((*at, "price"), "missing_key", "a price needs input, output or per_request")


def _launches(draft: Draft) -> Iterator[Problem]:
    for loc, engine in draft.entries("engines"):
        gpu, launch = engine.get("gpu"), engine.get("launch")
        if not isinstance(gpu, dict) or not isinstance(launch, dict):
            continue
        cards, wanted = gpu.get("count", 1), launch.get("tensor_parallel_size", 1)
        if isinstance(cards, int) and isinstance(wanted, int) and wanted > cards:
            message = f"tensor_parallel_size {wanted} needs {wanted} GPUs, and gpu.count says {cards}"
            yield Problem((*loc, "launch", "tensor_parallel_size"), "contradiction", message)


def _unused(draft: Draft) -> Iterator[Problem]:
    engines: set[str] = set()
    endpoints: set[str | None] = set()
    for loc, model in draft.entries("models"):
        engines.update(name for _, name in texts(model, "engines", loc))
        endpoints.update(text_of(target, "endpoint") for _, target in entries(model, "overflow", loc))
    for section, used in (("engines", engines), ("endpoints", endpoints)):
        for name, loc in draft.names(section).items():
            if name not in used:
                yield Problem((*loc, "name"), "unused", f"no model uses {name!r}", "warning")


_CHECKS = (
    _listen,
    _repeated_names,
    _repeated_addresses,
    _aliases,
    _model_targets,
    _model_policies,
    _endpoints,
    _prices,
    _launches,
    _unused,
)
