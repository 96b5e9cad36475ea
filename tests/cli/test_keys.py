"""`spillgate keys`: a key is seen once, and afterwards only its hash is anywhere."""

import hashlib
import json
import re
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli.main import cli
from gateway.config.keys import KeyRing


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.yaml"


def run(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["keys", *arguments, "-f", str(path)])


def test_a_new_key_is_printed_once_and_stored_hashed(path: Path) -> None:
    result = run(path, "add", "batch")
    key = result.stdout.strip()
    assert result.exit_code == 0
    assert re.fullmatch(r"sg-[A-Za-z0-9_-]{43}", key)
    assert result.stderr == "", "nothing but the key where nobody watches"
    assert key not in path.read_text()
    assert hashlib.sha256(key.encode()).hexdigest() in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = KeyRing.load(path).find(key)
    assert found is not None
    assert found.name == "batch"


def test_options_are_kept_in_the_entry(path: Path) -> None:
    run(path, "add", "lab", "--expires", "2099-06-30", "--policy", "balanced", "--show-costs")
    (row,) = json.loads(run(path, "list", "--json").stdout)
    assert (row["expires"], row["expired"], row["policy"], row["show_costs"]) == (
        "2099-06-30",
        False,
        "balanced",
        True,
    )


def test_a_list_shows_no_whole_hash(path: Path) -> None:
    run(path, "add", "a")
    run(path, "add", "old", "--expires", "2020-01-01")
    for options in ([], ["--json"]):
        result = run(path, "list", *options)
        assert result.exit_code == 0
        assert max(len(word) for word in re.findall("[0-9a-f]+", result.stdout)) <= 8
    assert [row["name"] for row in json.loads(run(path, "list", "--json").stdout)] == ["a", "old"]
    assert re.search(r"old .* expired ", run(path, "list").stdout)


def test_a_revoked_key_opens_nothing(path: Path) -> None:
    key = run(path, "add", "a").stdout.strip()
    run(path, "add", "b")
    assert run(path, "revoke", "a").exit_code == 0
    ring = KeyRing.load(path)
    assert ring.find(key) is None
    assert [entry.name for entry in ring.entries] == ["b"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["add", "batch"], "a key named 'batch' exists"),
        (["add", "two words"], "printable ASCII"),
        (["revoke", "bach"], "no key is named 'bach'; nearest known name: 'batch'"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(path: Path, arguments: list[str], says: str) -> None:
    run(path, "add", "batch")
    before = path.read_bytes()
    result = run(path, *arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert says in result.stderr
    assert path.read_bytes() == before


@pytest.mark.parametrize("arguments", [["list"], ["revoke", "a"]])
def test_a_missing_file_is_named(path: Path, arguments: list[str]) -> None:
    result = run(path, *arguments)
    assert result.exit_code == 2
    assert str(path) in result.stderr
    assert not path.exists()


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    result = run(tmp_path / "none" / "keys.yaml", "add", "a")
    assert result.exit_code == 2
    assert result.stderr == f"Error: {tmp_path}/none: No such file or directory.\n"


def test_a_file_with_errors_is_left_alone(path: Path) -> None:
    path.write_text("keys: [{name: a}]\n")
    result = run(path, "add", "b")
    assert result.exit_code == 2
    assert "key 'hash' is missing here" in result.stderr
    assert path.read_text() == "keys: [{name: a}]\n"
