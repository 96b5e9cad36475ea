"""Configuration files on disk, small and complete, and what is found in them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from gateway.config.findings import Finding
from gateway.config.load import Examined, examine

GOOD = """\
engines:
  - name: a
    url: http://127.0.0.1:8000
endpoints:
  - name: e
    base_url: https://api.example.com/v1
models:
  - name: m
    engines: [a]
    overflow: [{endpoint: e, model: remote}]
"""


@pytest.fixture
def good() -> str:
    return GOOD


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file below the test's folder; text may be indented."""

    def write_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
        return path

    return write_file


@pytest.fixture
def examined(write: Callable[[str, str], Path]) -> Callable[..., Examined]:
    """Examine a spillgate.yaml given as text."""

    def examine_text(text: str, environ: Mapping[str, str] | None = None) -> Examined:
        return examine(write("spillgate.yaml", text), environ or {})

    return examine_text


@pytest.fixture
def found(examined: Callable[..., Examined]) -> Callable[..., list[str]]:
    """Findings of a spillgate.yaml given as text, as `line:column code`."""

    def find(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
        return [at(finding) for finding in examined(text, environ).findings]

    return find


def at(finding: Finding) -> str:
    return f"{finding.line}:{finding.column} {finding.code}"
