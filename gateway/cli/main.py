"""The `spillgate` command: which commands there are, and how they end. Knows nothing of what they do.

A command's module is imported when it runs or shows its help: `spillgate --help` stays fast.
Exit codes: 0 fine, 1 a finding, 2 wrong use or bad configuration, 3 target unreachable.
"""

import importlib
import os
from difflib import get_close_matches
from typing import NamedTuple

import click

from gateway.config.findings import ConfigErrors


class Entry(NamedTuple):
    """Where a command lives, and its line in the list of commands."""

    target: str
    summary: str


COMMANDS: dict[str, Entry] = {
    "serve": Entry("gateway.cli.serve:serve", "Run the gateway."),
    "check": Entry("gateway.cli.check:check", "Check the configuration and policies."),
    "demo": Entry("gateway.cli.demo:demo", "Show it at work: no GPU, no keys."),
    "report": Entry("gateway.cli.report:report", "Report what requests cost, on either route."),
    "keys": Entry("gateway.cli.keys:keys", "Add, list and revoke client keys."),
}


class BadConfig(click.ClickException):
    """A configuration that cannot be used: its findings, one a line, as `check` prints them."""

    exit_code = 2

    def show(self, file: object = None) -> None:
        """Print the findings as they are, to stderr."""
        click.echo(self.message, err=True)


class Failure(click.ClickException):
    """Something outside that a user can put right, in one sentence."""

    exit_code = 2


class Unreachable(click.ClickException):
    """A target that does not answer."""

    exit_code = 3


class Commands(click.Group):
    """Imports a command when it is asked for, and turns known errors into a sentence and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is meant; an unknown name is answered with the nearest one."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; what a user can cause ends without a traceback."""
        try:
            return super().invoke(ctx)
        except ConfigErrors as error:
            raise BadConfig(str(error)) from error
        except BrokenPipeError:
            raise
        except ConnectionError as error:
            raise Unreachable(f"no answer: {error.strerror or error}.") from error
        except OSError as error:
            raise Failure(_sentence(error)) from error


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: spillgate demo --seconds 20",
)
@click.version_option(package_name="spillgate", prog_name="spillgate")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """An OpenAI-compatible gateway in front of self-hosted vLLM engines."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False


def main() -> None:
    """Entry point of `spillgate` and of `python -m gateway`."""
    cli(prog_name="spillgate")


def _sentence(error: OSError) -> str:
    what = error.strerror or str(error)
    return f"{error.filename}: {what}." if error.filename else f"{what}."
