"""`spillgate serve`: runs the gateway until it is told to stop."""

from pathlib import Path

import click

from gateway.cli.main import Failure

DEFAULT_CONFIG = Path("spillgate.yaml")


@click.command(epilog="Example: spillgate serve -c spillgate.yaml --port 8080")
@click.option(
    "-c", "--config", "path", type=click.Path(path_type=Path), default=DEFAULT_CONFIG, show_default=True
)
@click.option("--host", help="Address to bind, in place of listen.host.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port to bind, in place of listen.port; 0 takes a free one."
)
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
def serve(path: Path, host: str | None, port: int | None, log_level: str) -> None:
    """Run the gateway."""
    # Imported here: `spillgate serve --help` must not pay for the server.
    from gateway.ledger.errors import LedgerError
    from gateway.server import ListenRefused, run

    try:
        run(path, host=host, port=port, log_level=log_level)
    except (ListenRefused, LedgerError) as error:
        raise Failure(str(error)) from error
