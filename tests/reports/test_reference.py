"""The page on costs says what the program says."""

import sys
from pathlib import Path
from subprocess import run

import pytest

from gateway.reports.columns import COLUMNS
from gateway.reports.reference import renewed, tables
from gateway.reports.rows import GROUPINGS

PAGE = Path(__file__).parents[2] / "docs/cost-model.md"


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text("utf-8")
    assert renewed(text) == text, "renew it: python -m gateway.reports.reference docs/cost-model.md"


def test_a_page_that_differs_is_put_right(tmp_path: Path) -> None:
    stale = tmp_path / "page.md"
    stale.write_text(PAGE.read_text("utf-8").replace("| `standard` |", "| `norm` |", 1), "utf-8")
    run([sys.executable, "-m", "gateway.reports.reference", stale], check=True, timeout=20)
    assert renewed(stale.read_text("utf-8")) == stale.read_text("utf-8")


def test_every_part_must_be_on_the_page() -> None:
    with pytest.raises(ValueError, match="no part named"):
        renewed("# A page")


def test_every_column_and_every_name_to_group_by_has_its_line() -> None:
    parts = tables()
    for column in COLUMNS:
        assert f"| `{column.key}` |" in parts["columns"]
    for name in GROUPINGS:
        assert f"| `{name}`" in parts["groupings"]


def test_the_page_calls_nothing_a_saving() -> None:
    words = PAGE.read_text("utf-8").lower().replace("not a saving", "")
    assert "saving" not in words
    assert "saved" not in words
