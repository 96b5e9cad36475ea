"""Findings read as one line, and errors carry all of them."""

import re
from pathlib import Path

from gateway.config.findings import CODES, ConfigErrors, Finding, nearest


def test_a_finding_reads_as_file_line_column_level_text() -> None:
    finding = Finding("a.yaml", 3, 7, "error", "unknown_key", "unknown key 'x'")
    assert str(finding) == "a.yaml:3:7: error: unknown key 'x' [unknown_key]"


def test_errors_carry_every_finding() -> None:
    findings = [Finding("a", n, 1, "error", "syntax", "x") for n in range(3)]
    assert str(ConfigErrors(findings)).count("\n") == 2
    assert ConfigErrors(findings).findings == tuple(findings)


def test_a_name_near_a_known_one_is_named_and_a_far_one_is_not() -> None:
    assert nearest("balancd", ["balanced", "handover"]) == "; nearest known name: 'balanced'"
    assert nearest("zzz", ["balanced"]) == ""


def test_every_code_in_use_is_listed_and_every_listed_code_is_used() -> None:
    room = Path(__file__).parents[2] / "gateway/config"
    text = "\n".join(path.read_text() for path in room.glob("*.py") if path.name != "findings.py")
    used = {word for word in re.findall(r'"([a-z]+(?:_[a-z]+)*)"', text) if word in CODES}
    assert used == set(CODES)
