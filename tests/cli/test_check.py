"""`spillgate check`: findings where a person or a script looks for them, and the exit code that fits."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli.main import cli

GOOD = "engines: [{name: a, url: 'http://127.0.0.1:8000'}]\nmodels: [{name: m, engines: [a]}]\n"
WARNING = GOOD.replace("}]\nmodels", "}, {name: b, url: 'http://b'}]\nmodels")
ERROR = GOOD.replace("engines: [a]", "engines: [aa]")


def check(tmp_path: Path, text: str, *options: str, **env: str) -> Result:
    path = tmp_path / "spillgate.yaml"
    path.write_text(text)
    return CliRunner(env=env).invoke(cli, ["check", "-c", str(path), *options])


def test_a_sound_file_is_counted_in_one_line(tmp_path: Path) -> None:
    result = check(tmp_path, GOOD)
    assert result.exit_code == 0
    assert result.stdout == f"{tmp_path}/spillgate.yaml ok: 1 engine, 0 endpoints, 1 model, 4 policies\n"


def test_warnings_alone_are_exit_code_1(tmp_path: Path) -> None:
    result = check(tmp_path, WARNING)
    first, last = result.stdout.splitlines()
    assert result.exit_code == 1
    assert first.endswith("spillgate.yaml:1:59: warning: no model uses 'b' [unused]")
    assert " ok: 2 engines," in last


def test_errors_are_exit_code_2_and_nothing_is_ok(tmp_path: Path) -> None:
    result = check(tmp_path, ERROR)
    assert result.exit_code == 2
    assert (
        "spillgate.yaml:2:30: error: no engine is named 'aa'; nearest known name: 'a' [unknown_name]"
        in result.stdout
    )
    assert " ok: " not in result.stdout


@pytest.mark.parametrize(("text", "count", "code"), [(GOOD, 0, 0), (WARNING, 1, 1), (ERROR, 2, 2)])
def test_json_lists_the_findings_and_keeps_the_exit_code(
    tmp_path: Path, text: str, count: int, code: int
) -> None:
    result = check(tmp_path, text, "--json")
    findings = json.loads(result.stdout)
    assert (len(findings), result.exit_code) == (count, code)
    for finding in findings:
        assert list(finding) == ["file", "line", "column", "level", "code", "message"]


def test_a_missing_file_is_one_finding(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["check", "-c", str(tmp_path / "none.yaml")])
    assert result.exit_code == 2
    assert result.stdout.count("\n") == 1
    assert "cannot be read" in result.stdout


def test_the_schema_is_printed_without_a_file() -> None:
    result = CliRunner().invoke(cli, ["check", "--schema"])
    described = json.loads(result.stdout)
    assert result.exit_code == 0
    assert described["title"] == "spillgate.yaml"
    assert "return" in described["$defs"]["Policy"]["properties"]


def test_no_output_holds_a_secret(tmp_path: Path) -> None:
    text = (
        GOOD
        + "admin: {key: '${ADMIN}'}\nlisten: {port: '${ADMIN}'}\nledger: {url: 'postgresql://u:CANARY2@h/d'}\n"
    )
    for options in ([], ["--json"]):
        result = check(tmp_path, text, *options, ADMIN="CANARY1")
        assert result.exit_code == 2
        assert "CANARY" not in result.output


def test_variables_come_from_the_environment(tmp_path: Path) -> None:
    text = GOOD + "listen: {port: '${GATEWAY_PORT}'}\n"
    assert check(tmp_path, text, GATEWAY_PORT="8090").exit_code == 0
    assert "GATEWAY_PORT is not set" in check(tmp_path, text).stdout
