"""spillgate.yaml with its policies and keys, read as one: a Config, or every problem with its place.

Reads files and nothing else: no address is resolved and no target asked.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.config.check import Draft, Problem, problems, text_of
from gateway.config.check_routes import key_problems, policy_problems, route_problems
from gateway.config.derive import json_schema
from gateway.config.findings import ConfigErrors, Finding
from gateway.config.keys import KeysFile, read_keys
from gateway.config.schema import Config, SpillgateFile
from gateway.config.shipped import SHIPPED
from gateway.config.typed import Typed, read_as
from gateway.routing.policy import Policy


@dataclass(frozen=True, slots=True)
class Examined:
    """What a configuration holds (None where it has errors) and every finding, file by file, in order."""

    config: Config | None
    findings: tuple[Finding, ...]


def load(path: Path, environ: Mapping[str, str]) -> Config:
    """The configuration in `path`. Raises ConfigErrors with every finding; warnings alone do not raise."""
    examined = examine(path, environ)
    if examined.config is None:
        raise ConfigErrors(examined.findings)
    return examined.config


def examine(path: Path, environ: Mapping[str, str]) -> Examined:
    """Read and check everything that `path` names. Raises nothing for what users may get wrong."""
    file = read_as(SpillgateFile, path, environ)
    policies = _Policies(file, path.parent, environ)
    keys = _keys(file, path.parent)
    draft = Draft(file.tree, policies.usable, policies.names)
    # A file that could not be read at all has its one finding; what it does not say is not checked.
    if file.tree:
        file.report(problems(draft))
        file.report(route_problems(draft))
    if keys is not None:
        _check_keys(keys, policies)
    findings = [f for part in (file, *policies.files, keys) if part is not None for f in _in_order(part)]
    if file.value is None or any(f.level == "error" for f in findings):
        return Examined(None, tuple(findings))
    return Examined(Config.of(file.value, policies.usable), tuple(findings))


def schema() -> dict[str, Any]:
    """The JSON Schema of spillgate.yaml; policy files follow its `$defs/Policy`."""
    top, policy = json_schema(SpillgateFile), json_schema(Policy)
    definitions = {**top.pop("$defs"), **policy.pop("$defs"), "Policy": policy}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **top,
        "title": "spillgate.yaml",
        "$defs": dict(sorted(definitions.items())),
    }


class _Policies:
    """The built-in policies and those of the folder: which can be used, and every name models may give."""

    def __init__(self, file: Typed[SpillgateFile], base: Path, environ: Mapping[str, str]) -> None:
        self.files: list[Typed[Policy]] = []
        self.usable = dict(SHIPPED)
        self._defined: dict[str, str] = {}
        folder = text_of(file.tree, "policies")
        for path in _policy_files(file, base / folder) if folder else ():
            self._read(path, environ)

    @property
    def names(self) -> frozenset[str]:
        """Names that may be used, also those of files with errors."""
        return frozenset(self.usable) | frozenset(self._defined)

    def _read(self, path: Path, environ: Mapping[str, str]) -> None:
        policy = read_as(Policy, path, environ)
        self.files.append(policy)
        name = text_of(policy.tree, "name") or path.stem
        if name in self._defined:
            message = f"policy {name!r} is defined in {self._defined[name]} too"
            policy.report([Problem(("name",), "duplicate_name", message)])
            return
        self._defined[name] = str(path)
        self.usable.pop(name, None)
        if policy.value is not None:
            policy.report(policy_problems(policy.value, path.stem))
            self.usable[name] = policy.value

    def check_keys(self, keys: frozenset[str]) -> None:
        """Report client keys that policies name and nobody has."""
        for policy in self.files:
            if policy.value is not None:
                policy.report(key_problems(policy.value, keys))


def _policy_files(file: Typed[SpillgateFile], folder: Path) -> list[Path]:
    try:
        found = sorted(
            p for p in folder.iterdir() if p.suffix in (".yaml", ".yml") and not p.name.startswith(".")
        )
    except OSError as error:
        file.report(
            [Problem(("policies",), "unreadable", f"the folder of policies cannot be read: {error.strerror}")]
        )
        return []
    if not found:
        file.report(
            [Problem(("policies",), "unused", "the folder of policies holds no .yaml file", "warning")]
        )
    return found


def _keys(file: Typed[SpillgateFile], base: Path) -> Typed[KeysFile] | None:
    clients = file.tree.get("clients")
    name = text_of(clients, "keys_file") if isinstance(clients, dict) else None
    if not name:
        return None
    if not (base / name).exists():
        message = "no such file: make it with `spillgate keys add NAME -f FILE`"
        file.report([Problem(("clients", "keys_file"), "unreadable", message)])
        return None
    return read_keys(base / name)


def _check_keys(keys: Typed[KeysFile], policies: _Policies) -> None:
    if keys.value is None:
        return
    keys.report(_unknown_policies(keys.value, policies.names))
    policies.check_keys(frozenset(entry.name for entry in keys.value.keys))


def _unknown_policies(file: KeysFile, known: frozenset[str]) -> Iterator[Problem]:
    for number, entry in enumerate(file.keys):
        if entry.policy is not None and entry.policy not in known:
            yield Problem(("keys", number, "policy"), "unknown_name", f"no policy is named {entry.policy!r}")


def _in_order(file: Typed[SpillgateFile] | Typed[Policy] | Typed[KeysFile]) -> list[Finding]:
    return sorted(dict.fromkeys(file.findings), key=lambda f: (f.line, f.column))
