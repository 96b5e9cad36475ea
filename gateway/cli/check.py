"""`spillgate check`: prints what is wrong with a configuration, and where. Decides nothing about it."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from gateway.config.findings import Finding
from gateway.config.load import examine, schema
from gateway.config.schema import Config


@click.command(epilog="Example: spillgate check -c spillgate.yaml")
@click.option(
    "-c",
    "--config",
    "path",
    type=click.Path(path_type=Path),
    default="spillgate.yaml",
    show_default=True,
    help="File to check.",
)
@click.option(
    "--schema", "show_schema", is_flag=True, help="Print the JSON Schema of the file and of policies."
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.pass_context
def check(ctx: click.Context, path: Path, show_schema: bool, as_json: bool) -> None:
    """Check a configuration, its policies and its keys.

    Findings are printed as file:line:column: level: text. Exit codes: 0 none, 1 warnings only, 2 errors.
    """
    if show_schema:
        click.echo(json.dumps(schema(), indent=2))
        return
    examined = examine(path, os.environ)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in examined.findings], indent=2))
    else:
        _print(path, examined.config, examined.findings)
    ctx.exit(exit_code(examined.config, examined.findings))


def exit_code(config: Config | None, findings: Sequence[Finding]) -> int:
    """0 where all is fine, 1 for warnings, 2 where the configuration cannot be used."""
    return 2 if config is None else min(1, len(findings))


def _print(path: Path, config: Config | None, findings: Sequence[Finding]) -> None:
    for finding in findings:
        click.echo(str(finding))
    if config is not None:
        click.echo(f"{path} ok: {_counted(config)}")


def _counted(config: Config) -> str:
    counts = {
        "engine": len(config.engines),
        "endpoint": len(config.endpoints),
        "model": len(config.models),
        "policy": len(config.policies),
    }
    plurals = {"policy": "policies"}
    return ", ".join(f"{n} {word if n == 1 else plurals.get(word, word + 's')}" for word, n in counts.items())
