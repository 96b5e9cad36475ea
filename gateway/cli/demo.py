"""`spillgate demo`: shows the gateway at work on this machine, without GPU, key or network."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.main import Failure

if TYPE_CHECKING:
    from gateway.demo.run import Played
    from gateway.reports.report import Report

_SUFFIXES = (".json", ".csv")


@click.command(epilog="Example: spillgate demo --seconds 20 --report report.json")
@click.option(
    "--seconds", type=click.FloatRange(5, 3600), default=30.0, show_default=True, help="Length of traffic."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the gateway; 0 takes a free one."
)
@click.option(
    "--report", "report_path", type=click.Path(path_type=Path), help="Write the report (.json, .csv)."
)
@click.option(
    "--keep", type=click.Path(path_type=Path, file_okay=False), help="Folder for configuration and ledger."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def demo(seconds: float, port: int, report_path: Path | None, keep: Path | None, as_json: bool) -> None:
    """Show it at work: no GPU, no keys.

    Two fake engines with a real KV block scheduler, one that cannot boot, a fake per-token endpoint with
    prices, the gateway between, and OpenAI SDK traffic that grows past what the engines hold. One engine dies
    and comes back.
    """
    render = None if report_path is None else _renderer(report_path)
    folder = keep or Path(tempfile.mkdtemp(prefix="spillgate-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    played = _play(seconds, port, folder, live=not as_json)
    if report_path is not None and render is not None:
        report_path.write_text(render(played.report))
        played.figures.report = str(report_path)
    _print(played, as_json)


def _renderer(path: Path) -> "Callable[[Report], str]":
    if path.suffix not in _SUFFIXES:
        raise Failure(f"{path}: a report is written as one of {', '.join(_SUFFIXES)}; name the file so.")
    from gateway.reports.render import csv_, json_

    return json_.render if path.suffix == ".json" else csv_.render


def _play(seconds: float, port: int, folder: Path, *, live: bool) -> "Played":
    import uvloop
    from rich.console import Console

    from gateway.demo.run import play, quiet_logs
    from gateway.server import ListenRefused

    quiet_logs()
    console = Console(stderr=True) if live else None
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(play(seconds, port, folder, console))
    except ListenRefused as error:
        raise Failure(str(error)) from error


def _print(played: "Played", as_json: bool) -> None:
    from gateway.demo.story import as_object, paragraph
    from gateway.reports.render import table

    if as_json:
        click.echo(json.dumps(as_object(played.figures), indent=2))
        return
    click.echo(table.render(played.report, color=sys.stdout.isatty() and "NO_COLOR" not in os.environ))
    click.echo(click.wrap_text(paragraph(played.figures), width=100))
    click.echo(f"\nRead it again: spillgate report --ledger sqlite:///{played.figures.ledger}")
