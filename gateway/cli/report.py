"""`spillgate report`: finds the ledger, has the report built, and writes it where it was asked for."""

import os
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from shutil import get_terminal_size

import click

from gateway.cli.main import Failure
from gateway.config.findings import nearest
from gateway.reports.period import parse_time
from gateway.reports.report import BASES, Basis, Report
from gateway.reports.rows import DEFAULT_BY, GROUPINGS

_FORMATS = ("table", "json", "csv")
_CONFIG = Path("spillgate.yaml")
_LEDGER = "sqlite:///spillgate.db"
_WIDTH = 100


class _Time(click.ParamType[datetime]):
    """A point in time: how long ago, or an ISO time."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read it; what cannot be read ends the command with a sentence."""
        if isinstance(value, datetime):
            return value
        try:
            return parse_time(str(value), datetime.now(UTC))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Groupings(click.ParamType[tuple[str, ...]]):
    """Names of GROUPINGS, joined by commas."""

    name = "names"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Split and check them; an unknown one is answered with the nearest."""
        names = tuple(dict.fromkeys(name.strip() for name in str(value).split(",")))
        for name in names:
            if name not in GROUPINGS:
                known = nearest(name, GROUPINGS) or f"; it takes {', '.join(GROUPINGS)}"
                self.fail(f"nothing is named {name!r} to group by{known}.", param, ctx)
        return names


@click.command(epilog="Example: spillgate report --since 7d --by model,day --format csv -o costs.csv")
@click.option(
    "--since",
    type=_Time(),
    default="24h",
    show_default=True,
    help="Begin: 24h, 90m, 7d ago, or ISO time in UTC.",
)
@click.option("--until", type=_Time(), help="End, not included; as --since. Absent: now.")
@click.option(
    "--by",
    type=_Groupings(),
    default=",".join(DEFAULT_BY),
    show_default=True,
    help=f"What to group by, joined by commas: {', '.join(GROUPINGS)}.",
)
@click.option(
    "--basis",
    type=click.Choice(BASES),
    default=BASES[0],
    show_default=True,
    help="Cost that orders the groups.",
)
@click.option("--format", "kind", type=click.Choice(_FORMATS), help="Absent: as FILE is named, else a table.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to FILE instead.",
    metavar="FILE",
)
@click.option(
    "-c",
    "--config",
    "path",
    type=click.Path(path_type=Path),
    help="Configuration that names the ledger.",
    metavar="FILE",
)
@click.option("--ledger", "url", metavar="URL", help="The ledger itself: sqlite:///FILE or postgresql://...")
@click.pass_context
def report(
    ctx: click.Context,
    since: datetime,
    until: datetime | None,
    by: tuple[str, ...],
    basis: Basis,
    kind: str | None,
    as_json: bool,
    output: Path | None,
    path: Path | None,
    url: str | None,
) -> None:
    """Report what requests cost, on either route, and what the other route would have cost.

    Without -c and --ledger it reads the ledger that ./spillgate.yaml names, else ./spillgate.db.
    """
    if as_json and kind not in (None, "json"):
        raise click.UsageError(f"--json and --format {kind} exclude each other.")
    if path is not None and url is not None:
        raise click.UsageError("-c and --ledger exclude each other: both say where the ledger is.")
    now = datetime.now(UTC)
    until = until or now
    if since >= until:
        raise click.UsageError(
            f"--since ({since:%Y-%m-%d %H:%M:%S} UTC) is not before --until ({until:%Y-%m-%d %H:%M:%S} UTC)."
        )
    built = _build(url or _configured_url(path), since, until, by, basis, now)
    render = _renderer("json" if as_json else kind or _kind_of(output), ctx, output)
    if output is None:
        click.echo(render(built), nl=False)
    else:
        _write(output, render(built))


def _build(
    url: str, since: datetime, until: datetime, by: tuple[str, ...], basis: Basis, now: datetime
) -> Report:
    # Imported here: `--help` and wrong use must not pay for the database's library.
    from gateway.ledger.errors import LedgerError
    from gateway.reports.query import fetch, open_ledger
    from gateway.reports.report import build

    try:
        engine = open_ledger(url)
        try:
            rows = fetch(engine, since, until, by)
        finally:
            engine.dispose()
    except LedgerError as error:
        raise Failure(f"{str(error).rstrip('.?')}. Name the ledger with -c FILE or --ledger URL.") from error
    return build(rows, since=since, until=until, by=by, basis=basis, generated_at=now)


def _configured_url(path: Path | None) -> str:
    if path is None and not _CONFIG.exists():
        return _LEDGER
    from gateway.config.load import load

    return load(path or _CONFIG, os.environ).ledger.url.reveal()


def _kind_of(output: Path | None) -> str:
    suffix = output.suffix.lstrip(".").lower() if output else ""
    return suffix if suffix in _FORMATS else "table"


def _renderer(kind: str, ctx: click.Context, output: Path | None) -> Callable[[Report], str]:
    if kind != "table":
        renderer: Callable[[Report], str] = import_module(f"gateway.reports.render.{kind}_").render
        return renderer
    from gateway.reports.render import table

    on_terminal = output is None and sys.stdout.isatty()
    width = get_terminal_size().columns if on_terminal else _WIDTH
    return lambda built: table.render(built, width=width, color=on_terminal and ctx.color is not False)


def _write(path: Path, text: str) -> None:
    """In one step: a reader sees the old file or the new one, and a crash leaves no half."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        # A device or a pipe is written to, never replaced.
        path.write_text(text, "utf-8")
        return
    if not path.parent.is_dir():
        raise Failure(f"{path.parent}: no such folder.")
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    # There is no way to ask but to set it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
