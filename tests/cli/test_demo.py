"""`spillgate demo` as a command: options, output, errors. The play itself is tests/demo/test_run.py's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli.demo import demo


def test_one_json_object_and_a_report_come_out(tmp_path: Path) -> None:
    report = tmp_path / "report.csv"
    command = [
        sys.executable,
        "-m",
        "gateway",
        "demo",
        "--seconds",
        "5",
        "--json",
        "--keep",
        str(tmp_path / "kept"),
    ]
    done = subprocess.run(
        [*command, "--report", str(report)], capture_output=True, text=True, timeout=55, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert done.stderr == ""
    assert told["requests"]["total"] == sum(told["requests"]["by_route"].values())
    assert set(told["cost_usd"]) == {"engine_bill", "overflow", "cash_marginal", "standard", "all_overflow"}
    assert told["report"] == str(report)
    assert report.read_text().startswith("record,")
    assert Path(told["ledger"]).is_file()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--report", "cost.html"], "cost.html: a report is written as one of .json, .csv"),
        (["--seconds", "1"], "Invalid value for '--seconds'"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_starts(options: list[str], says: str) -> None:
    done = CliRunner().invoke(demo, options)
    assert done.exit_code == 2
    assert says in done.output
