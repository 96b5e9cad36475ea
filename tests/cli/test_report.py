"""`spillgate report`: a period, a ledger and a format in, one report or one clear sentence out."""

import csv
import io
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli.main import cli
from gateway.ledger.records import AttemptRecord, EngineSpan, RequestRecord
from gateway.ledger.store import Store

DAY = ("--since", "2026-12-01T00:00", "--until", "2026-12-02T00:00")


def attempt(**changes: object) -> AttemptRecord:
    fields: dict[str, object] = {
        "n": 1, "target": "h100-a", "route": "local", "remote_model": None, "reason": "headroom",
        "moment": "end", "outcome": "ok", "status": 200, "billable": "no",
        "t_dial": "2026-12-01T08:00:00.000100+00:00", "ms_to_sent": 0.2, "ms_to_headers": 11.5,
        "ms_to_first_event": 35.25, "ms_total": 900.0, "prompt_tokens": 1000, "cached_tokens": 900,
        "completion_tokens": 100, "reasoning_tokens": 0, "usage_source": "reported", "cash_marginal": 0,
        "standard": 350_000_000, "price_id": None, "price_source": None, "rate_id": "rate-1",
    }  # fmt: skip
    return AttemptRecord(**{**fields, **changes})  # type: ignore[arg-type] -- fields of a test's record


def request(request_id: str, **changes: object) -> RequestRecord:
    fields: dict[str, object] = {
        "request_id": request_id, "t_in": "2026-12-01T08:00:00.000000+00:00", "key": "team-a", "tags": None,
        "path": "/v1/chat/completions", "requested_model": "llama", "model": "llama-70b",
        "policy": "balanced", "stream": True, "route": "local", "target": "h100-a", "reason": "headroom",
        "outcome": "ok", "status": 200, "attempts": (attempt(),), "prompt_tokens": 1000,
        "cached_tokens": 900, "completion_tokens": 100, "reasoning_tokens": 0, "usage_source": "reported",
        "cash_marginal": 0, "standard": 350_000_000, "work_units_milli": 590_000, "weight_set": "1/0.1/4",
        "price_id": None, "price_source": None, "alternative_route": "overflow",
        "alternative_target": "serverless", "alternative_kind": "serverless",
        "alternative_cash": 640_000_000, "alternative_standard": None, "alternative_low": 590_000_000,
        "equivalent": True, "ttft_ms": 35.5, "duration_ms": 901.0, "overhead_ms": 0.4,
    }  # fmt: skip
    return RequestRecord(**{**fields, **changes})  # type: ignore[arg-type] -- fields of a test's record


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """Two requests on an engine and an hour of its time, in a real database."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    store = Store(url)
    store.migrate()
    times = ("2026-12-01T08:00:00+00:00", "2026-12-01T08:00:10+00:00")
    span = EngineSpan("h100-a", "serving_busy", *times, 10.0, "rate-1", 7_000)
    assert store.write([request("r1"), request("r2", key="team-b"), span]) == []
    store.close()
    return url


def report(*arguments: str, **env: str) -> Result:
    return CliRunner(env=env).invoke(cli, ["report", *arguments])


def test_the_table_names_the_period_and_ends_with_the_net_position(ledger: str) -> None:
    result = report("--ledger", ledger, *DAY)
    assert result.exit_code == 0, result.output
    assert "2026-12-01 00:00:00 to 2026-12-02 00:00:00 UTC" in result.stdout
    assert "et position" in result.stdout
    assert "saving" not in result.stdout.lower()
    assert "saved" not in result.stdout.lower()


def test_a_table_that_is_not_for_a_terminal_is_plain_and_at_most_100_wide(ledger: str) -> None:
    for env in ({}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"COLUMNS": "40"}):
        result = report("--ledger", ledger, *DAY, **env)
        assert "\x1b" not in result.stdout
        assert max(map(len, result.stdout.splitlines())) <= 100
        assert "llama-70b" in result.stdout


def test_json_has_the_totals_of_the_ledger(ledger: str) -> None:
    read = json.loads(report("--ledger", ledger, *DAY, "--format", "json").stdout)
    assert read["schema"] == "spillgate.report/1"
    assert read["totals"]["requests"] == 2
    assert read["totals"]["alternative"] == "0.00128"
    assert read["totals"]["cash_marginal"] == "0"
    assert read["totals"]["engine_bill"] == "0.000000007"
    assert read["totals"]["attributed"] is None
    assert read["totals"]["loaded"] is None


def test_groups_are_what_by_names(ledger: str) -> None:
    read = json.loads(report("--ledger", ledger, *DAY, "--format", "json", "--by", " key, hour").stdout)
    assert sorted((row["key"]["key"], row["key"]["hour"], row["requests"]) for row in read["rows"]) == [
        ("team-a", "2026-12-01T08:00Z", 1),
        ("team-b", "2026-12-01T08:00Z", 1),
    ]


def test_csv_has_a_line_for_each_group_and_one_for_the_total(ledger: str) -> None:
    text = report("--ledger", ledger, *DAY, "--format", "csv", "--by", "key").stdout
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [line["record"] for line in lines] == ["group", "group", "total"]
    assert [line["requests"] for line in lines] == ["1", "1", "2"]


def test_a_file_is_written_whole_and_nothing_else(ledger: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "r.json").write_text("old")
    result = report("--ledger", ledger, *DAY, "--format", "json", "-o", str(folder / "r.json"))
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads((folder / "r.json").read_text())["totals"]["requests"] == 2
    assert [p.name for p in folder.iterdir()] == ["r.json"]


def test_the_files_name_says_the_format(ledger: str, tmp_path: Path) -> None:
    for name, start in (("r.json", "{"), ("r.csv", "record,"), ("r.txt", "Cost report")):
        assert report("--ledger", ledger, *DAY, "-o", str(tmp_path / name)).exit_code == 0
        assert (tmp_path / name).read_text().startswith(start)


def test_a_folder_that_is_not_there_is_one_sentence(ledger: str, tmp_path: Path) -> None:
    result = report("--ledger", ledger, *DAY, "-o", str(tmp_path / "none" / "r.json"))
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "none").exists()


def test_durations_are_counted_back_from_now(tmp_path: Path) -> None:
    url, now = f"sqlite:///{tmp_path / 'ledger.db'}", datetime.now(UTC)
    store = Store(url)
    store.migrate()
    for minutes in (10, 100, 1000):
        arrived = (now - timedelta(minutes=minutes)).isoformat()
        assert store.write([request(f"r{minutes}", t_in=arrived)]) == []
    store.close()

    def counted(*period: str) -> int:
        read = json.loads(report("--ledger", url, *period, "--format", "json").stdout)
        requests: int = read["totals"]["requests"]
        return requests

    assert [counted(), counted("--since", "90m"), counted("--since", "3h")] == [3, 1, 2]
    assert counted("--since", "7d", "--until", "1h") == 2


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_an_empty_period_is_reported_as_such(ledger: str, form: str) -> None:
    result = report("--ledger", ledger, "--since", "2020-01-01", "--until", "2020-01-02", "--format", form)
    assert result.exit_code == 0
    if form == "table":
        assert "no requests in this period" in result.stdout.lower()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--since", "yesterday"], "'--since': 'yesterday' is neither how long ago"),
        (["--until", "24 parsecs"], "'--until': '24 parsecs' is neither how long ago"),
        (["--since", "999999999w"], "'--since': '999999999w' is neither how long ago"),
        (["--by", "modle"], "'modle' to group by; nearest known name: 'model'"),
        (["--by", "zzz"], "'zzz' to group by; it takes model, "),
        (["--by", ","], "'' to group by; it takes model, "),
        (["--since", "2026-12-02", "--until", "2026-12-01"], "is not before --until"),
        (["--json", "--format", "csv"], "exclude each other"),
        (["-c", "spillgate.yaml"], "exclude each other"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(ledger: str, arguments: list[str], says: str) -> None:
    result = report("--ledger", ledger, *arguments)
    assert result.exit_code == 2
    assert says in result.stderr.splitlines()[-1]
    assert result.stdout == ""


@pytest.mark.parametrize("option", [["--format", "tabel"], ["--basis", "cash"]])
def test_other_words_for_a_choice_are_wrong_use(ledger: str, option: list[str]) -> None:
    assert report("--ledger", ledger, *option).exit_code == 2


def test_a_ledger_that_is_not_there_is_named_and_not_made(tmp_path: Path) -> None:
    result = report("--ledger", f"sqlite:///{tmp_path / 'none.db'}")
    assert result.exit_code == 2
    assert str(tmp_path / "none.db") in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"not a database, but as long as the header of one" * 4])
def test_a_file_that_holds_no_ledger_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)
    result = report("--ledger", f"sqlite:///{path}")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert path.read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == ["other.db"]


def test_a_url_that_is_none_is_not_repeated() -> None:
    result = report("--ledger", "postgres-with-hunter2")
    assert result.exit_code == 2
    assert "hunter2" not in result.output


def test_the_configuration_names_the_ledger(
    ledger: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        f"ledger: {{url: '{ledger}'}}\n"
        "engines: [{name: a, url: 'http://127.0.0.1:8000'}]\nmodels: [{name: m, engines: [a]}]\n"
    )
    (tmp_path / "spillgate.yaml").write_text(text)
    named = report("-c", str(tmp_path / "spillgate.yaml"), *DAY, "--format", "json")
    monkeypatch.chdir(tmp_path)
    found = report(*DAY, "--format", "json")
    for result in (named, found):
        assert json.loads(result.stdout)["totals"]["requests"] == 2, result.output


def test_without_a_configuration_the_ledger_is_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = report()
    assert result.exit_code == 2
    assert "spillgate.db" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    result = report("-c", str(tmp_path / "none.yaml"))
    assert result.exit_code == 2
    assert "none.yaml" in result.stderr


def test_help_and_wrong_use_do_not_load_the_database() -> None:
    code = """
import sys
from gateway.cli.main import cli
for arguments in (["report", "--help"], ["report", "--by", "x"]):
    try:
        cli(arguments)
    except SystemExit:
        pass
print("loaded:", *sorted({"sqlalchemy", "rich", "pydantic", "alembic"} & set(sys.modules)))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.splitlines()[-1].strip() == "loaded:"
