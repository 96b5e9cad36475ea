"""The Dockerfile: what it copies builds, what it installs is pinned, what it runs answers."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def rests(stage: Any, word: str) -> list[str]:
    return [instruction.rest for instruction in stage if instruction.word == word]


def copied(stages: Any) -> list[str]:
    """What comes from the build context."""
    lines = [rest for stage in stages for rest in rests(stage, "COPY") if not rest.startswith("--from")]
    return [source for line in lines for source in line.split()[:-1]]


def test_every_base_is_slim_python_311(stages: Any) -> None:
    assert {rests(stage, "FROM")[0].split()[0] for stage in stages} == {"python:3.11-slim"}


def test_it_does_not_run_as_root(image: Any) -> None:
    user = rests(image, "USER")[-1]
    assert user not in ("root", "0")
    assert any(re.search(rf"useradd .*\b{user}\b", rest) for rest in rests(image, "RUN"))
    # Nothing is done as root afterwards: the last USER stands before what runs.
    words = [instruction.word for instruction in image]
    assert "RUN" not in words[len(words) - words[::-1].index("USER") :]


def test_packages_are_installed_by_hash_and_the_project_alone_without(stages: Any) -> None:
    installs = [
        part.strip()
        for stage in stages
        for rest in rests(stage, "RUN")
        for part in rest.split("&&")
        if "pip install" in part
    ]
    by_file = [line for line in installs if "-r " in line]
    assert len(by_file) == 2
    for line in by_file:
        assert "--require-hashes" in line
        assert line.split()[-1] in copied(stages)
    for line in set(installs) - set(by_file):
        assert "--no-deps" in line
        assert "--no-build-isolation" in line


def test_what_is_copied_exists_and_holds_all_that_building_needs(stages: Any, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in copied(stages):
        path = ROOT / name
        assert path.exists(), name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source / name)
    command = [
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        str(tmp_path),
        ".",
    ]
    subprocess.run([sys.executable, "-m", "pip", *command], cwd=source, check=True, timeout=50)
    (wheel,) = tmp_path.glob("spillgate-*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "gateway"
    wanted = {
        str(path.relative_to(ROOT))
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted <= inside


def test_the_health_check_asks_the_gateway(image: Any, running: Any) -> None:
    command = rests(image, "HEALTHCHECK")[0].partition("CMD ")[2]
    port = rests(image, "EXPOSE")[0]
    assert f":{port}/healthz" in command
    assert _check(command, port, running.ports["gateway"]) == 0


@pytest.mark.parametrize("service", ["vllm-a", "endpoint"])
def test_the_health_check_fails_where_no_gateway_is(image: Any, running: Any, service: str) -> None:
    command = rests(image, "HEALTHCHECK")[0].partition("CMD ")[2]
    assert _check(command, rests(image, "EXPOSE")[0], running.ports[service]) != 0


def _check(command: str, inside: str, port: int) -> int:
    argv = [part.replace(f":{inside}/", f":{port}/") for part in json.loads(command)]
    assert argv[0] == "python"
    return subprocess.run(
        [sys.executable, *argv[1:]], capture_output=True, timeout=15, check=False
    ).returncode


def test_the_ledger_folder_belongs_to_the_user(image: Any) -> None:
    workdir = rests(image, "WORKDIR")[-1]
    assert any(f"--home-dir {workdir} --create-home" in rest for rest in rests(image, "RUN"))
