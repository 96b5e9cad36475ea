"""`spillgate keys`: adds, lists and revokes client keys. A key is shown once, when made; stores nothing."""

import json
import re
import sys
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from gateway.cli.main import Failure
from gateway.config.findings import nearest
from gateway.config.keys import KeyEntry, KeyRing, add_key, generate, hash_of, revoke_key, today_utc
from gateway.config.schema import NAME_FORM

_LINE = "{:<24} {:<10} {:<10} {:<15} {}"

F = TypeVar("F", bound=Callable[..., Any])


def _file_option(command: F) -> F:
    option = click.option(
        "-f",
        "--file",
        "path",
        type=click.Path(path_type=Path),
        default="keys.yaml",
        show_default=True,
        help="Keys file.",
    )
    return option(command)


@click.group(epilog="Example: spillgate keys add batch-team -f keys.yaml")
def keys() -> None:
    """Add, list and revoke client keys."""


@keys.command(epilog="Example: spillgate keys add batch-team --expires 2027-06-30")
@click.argument("name")
@_file_option
@click.option("--expires", type=click.DateTime(["%Y-%m-%d"]), help="Last day (UTC) on which it is accepted.")
@click.option("--policy", help="Policy for its requests, in place of the model's.")
@click.option("--show-costs", is_flag=True, help="Give its answers cost headers.")
def add(name: str, path: Path, expires: datetime | None, policy: str | None, show_costs: bool) -> None:
    """Make a key for NAME and print it, once: only its hash is kept."""
    if not re.fullmatch(NAME_FORM.pattern, name):
        raise Failure(f"A name {NAME_FORM.says}.")
    key = generate()
    entry = KeyEntry(
        name=name,
        hash=hash_of(key),
        created=today_utc(),
        expires=expires.date() if expires else None,
        policy=policy,
        show_costs=show_costs,
    )
    try:
        add_key(path, entry)
    except ValueError as error:
        raise Failure(f"{path}: {error}.") from error
    click.echo(key)
    if sys.stderr.isatty():
        click.echo(f"Shown once; {path} keeps its hash. A gateway reads it when it starts.", err=True)


@keys.command("list", epilog="Example: spillgate keys list --json")
@_file_option
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_keys(path: Path, as_json: bool) -> None:
    """List the keys: names and dates, and the start of each hash."""
    rows = [_row(entry, today_utc()) for entry in KeyRing.load(path).entries]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    click.echo(_LINE.format("NAME", "CREATED", "EXPIRES", "HASH", "POLICY"))
    for row in rows:
        expires = "expired" if row["expired"] else row["expires"] or "-"
        cells = (row["name"], row["created"] or "-", expires, row["hash"], row["policy"] or "-")
        click.echo(_LINE.format(*cells))


@keys.command(epilog="Example: spillgate keys revoke batch-team")
@click.argument("name")
@_file_option
def revoke(name: str, path: Path) -> None:
    """Take NAME's key out of the file."""
    if not revoke_key(path, name):
        near = nearest(name, [entry.name for entry in KeyRing.load(path).entries])
        raise Failure(f"{path}: no key is named {name!r}{near}.")
    if sys.stderr.isatty():
        click.echo(f"Revoked {name!r}. A running gateway takes it until it is started again.", err=True)


def _row(entry: KeyEntry, today: date) -> dict[str, Any]:
    """One key as it is listed; eight digits tell hashes apart and give nothing away."""
    return {
        "name": entry.name,
        "hash": entry.hash[: len("sha256:") + 8],
        "created": entry.created.isoformat() if entry.created else None,
        "expires": entry.expires.isoformat() if entry.expires else None,
        "expired": entry.expires is not None and today > entry.expires,
        "policy": entry.policy,
        "show_costs": entry.show_costs,
    }
