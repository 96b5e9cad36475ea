"""What the README tells people to type works as it stands."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gateway.cli.main import COMMANDS, cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
OPERATIONS = (ROOT / "docs/operations.md").read_text()
# Each as typed in a code block, a table or a sentence: `spillgate report --since 7d`.
NAMES = "|".join(COMMANDS)
TYPED = sorted(set(re.findall(rf"\bspillgate ((?:{NAMES})\b[^\n`#]*)", README + OPERATIONS)))


def block(language: str) -> str:
    """The one code block in this language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return str(found)


def test_the_example_configuration_passes_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVERLESS_API_KEY", "x")
    path = tmp_path / "spillgate.yaml"
    path.write_text(block("yaml"))
    result = CliRunner().invoke(cli, ["check", "-c", str(path)])
    assert (result.exit_code, result.output.count("\n")) == (0, 1), result.output


def test_the_example_client_gets_an_answer_and_reads_its_route(running: Any) -> None:
    code = block("python").replace("http://127.0.0.1:8080", running.url)
    code = code.replace("any, unless keys are configured", running.key)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    answer, route = done.stdout.rstrip().rsplit("\n", 1)
    assert answer
    assert re.fullmatch("local (headroom|affinity)", route)


@pytest.mark.parametrize("typed", TYPED)
def test_every_command_and_option_in_the_pages_exists(typed: str) -> None:
    words = typed.split()
    names = [word for word in words[:2] if re.fullmatch("[a-z]+", word)]
    shown = CliRunner().invoke(cli, [*names, "--help"])
    assert shown.exit_code == 0, shown.output
    for option in (word for word in words if re.fullmatch("--?[a-z-]+", word)):
        assert re.search(rf"{option}\b", shown.output), f"{option} is no option of {' '.join(names)}"


def test_every_make_target_in_the_pages_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z]+)\b", README + OPERATIONS, re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_the_first_two_commands_are_the_demo_and_the_tests() -> None:
    first = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)[0]
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make demo", "make test"]


def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name} -> {target}"
