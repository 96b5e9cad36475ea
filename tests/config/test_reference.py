"""The reference page says what the types say."""

import sys
from pathlib import Path
from subprocess import run

import pytest

from gateway.config.findings import CODES
from gateway.config.hints import keys_of
from gateway.config.reference import renewed, tables
from gateway.config.schema import EngineCost, Limits
from gateway.config.shipped import SHIPPED

PAGE = Path(__file__).parents[2] / "docs/configuration.md"


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text()
    assert renewed(text) == text, "renew it: python -m gateway.config.reference docs/configuration.md"


def test_a_page_that_differs_is_put_right(tmp_path: Path) -> None:
    stale = tmp_path / "page.md"
    stale.write_text(PAGE.read_text().replace("| `max_body` |", "| `max_bodies` |"))
    run([sys.executable, "-m", "gateway.config.reference", stale], check=True, timeout=20)
    assert stale.read_text() == PAGE.read_text()


def test_every_part_must_be_on_the_page() -> None:
    with pytest.raises(ValueError, match="no part named 'policy'"):
        renewed(PAGE.read_text().replace("<!-- begin policy -->", ""))


def test_tables_show_keys_limits_and_defaults() -> None:
    file, policy = tables()["file"], tables()["policy"]
    for key in (*keys_of(EngineCost), *keys_of(Limits)):
        assert f"| `{key}` |" in file
    assert "| `max_body` | size, above 0 | `20MiB` |" in file
    assert "| `stale_after` | duration, above 0 | `3s` |" in policy
    assert "| `return` | mapping |" in policy
    assert "return_" not in policy


def test_every_code_and_built_in_policy_is_on_the_page() -> None:
    text = PAGE.read_text()
    for word in (*CODES, *SHIPPED):
        assert f"`{word}`" in text
