"""The command itself: lazy commands, one sentence and an exit code for what users can cause."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import click
import pytest
from click.testing import CliRunner

from gateway.cli import main as main_module
from gateway.cli.main import COMMANDS, Entry, cli
from gateway.config.findings import ConfigErrors, Finding

HEAVY = [
    *(
        "pydantic",
        "ruamel",
        "fastapi",
        "starlette",
        "uvicorn",
        "litellm",
        "openai",
        "sqlalchemy",
        "jinja2",
        "rich",
    ),
    *("gateway.cli.check", "gateway.cli.keys", "gateway.config.schema"),
]


def python(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    full = {**os.environ, **env}
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, timeout=20, env=full, check=False
    )


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"]])
def test_the_command_loads_nothing_heavy_before_a_command_is_chosen(arguments: list[str]) -> None:
    code = f"""
import sys
import gateway.cli.main
try:
    {"gateway.cli.main.cli(" + repr(arguments) + ")" if arguments else "pass"}
except SystemExit as end:
    assert end.code == 0, end.code
print("loaded:", *sorted(set({HEAVY!r}) & set(sys.modules)))
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].strip() == "loaded:"


def test_help_lists_every_command_in_order() -> None:
    done = python("-m", "gateway", "--help")
    places = [done.stdout.index(f"  {name} ") for name in COMMANDS]
    assert places == sorted(places)
    assert "Example: spillgate" in done.stdout
    assert set(COMMANDS) == {"serve", "check", "demo", "report", "keys"}


def test_the_module_is_the_same_command() -> None:
    done = python("-m", "gateway", "--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, "spillgate,")
    wrong = python("-m", "gateway", "nonsense")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("Usage: spillgate")


def test_an_unknown_command_is_answered_with_the_nearest_one() -> None:
    result = CliRunner().invoke(cli, ["chekc"])
    assert result.exit_code == 2
    assert "Did you mean 'check'?" in result.stderr


def test_every_command_that_is_there_has_an_example_in_its_help() -> None:
    there = [name for name, entry in COMMANDS.items() if find_spec(entry.target.partition(":")[0])]
    assert {"check", "keys"} <= set(there)
    for name in there:
        result = CliRunner().invoke(cli, [name, "--help"])
        assert result.exit_code == 0, result.output
        assert "Example" in result.output, name


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """A command `fail` that raises what the test puts into the list."""
    raised: list[Exception] = []

    @click.command()
    def fail() -> None:
        raise raised[0]

    monkeypatch.setattr(main_module, "fail", fail, raising=False)
    monkeypatch.setitem(COMMANDS, "fail", Entry("gateway.cli.main:fail", "Fail."))
    return raised


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (
            ConfigErrors([Finding("f.yaml", 1, 2, "error", "syntax", "x")]),
            2,
            "f.yaml:1:2: error: x [syntax]\n",
        ),
        (
            FileNotFoundError(2, "No such file or directory", "x.db"),
            2,
            "Error: x.db: No such file or directory.\n",
        ),
        (OSError(98, "Address already in use"), 2, "Error: Address already in use.\n"),
        (ConnectionRefusedError(111, "Connection refused"), 3, "Error: no answer: Connection refused.\n"),
        (main_module.Failure("Put it right."), 2, "Error: Put it right.\n"),
        (main_module.Unreachable("engine 'a' does not answer."), 3, "Error: engine 'a' does not answer.\n"),
    ],
)
def test_what_users_can_cause_ends_in_one_sentence(
    failing: list[Exception], error: Exception, code: int, says: str
) -> None:
    failing.append(error)
    result = CliRunner().invoke(cli, ["fail"])
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", says)


def test_a_fault_of_ours_is_not_dressed_up(failing: list[Exception]) -> None:
    failing.append(ZeroDivisionError())
    assert isinstance(CliRunner().invoke(cli, ["fail"]).exception, ZeroDivisionError)


@pytest.mark.parametrize(("no_color", "coloured"), [("1", False), ("", True), (None, True)])
def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch, no_color: str | None, coloured: bool) -> None:
    @click.command()
    def paint() -> None:
        click.secho("red", fg="red")

    monkeypatch.setattr(main_module, "paint", paint, raising=False)
    monkeypatch.setitem(COMMANDS, "paint", Entry("gateway.cli.main:paint", "Paint."))
    result = CliRunner(env={"NO_COLOR": no_color}).invoke(cli, ["paint"], color=True)
    assert bool(re.search("\x1b", result.output)) is coloured
