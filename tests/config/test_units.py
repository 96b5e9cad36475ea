"""Durations, sizes and decimals: every spelling that is taken, and that nothing else is."""

import doctest
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config import units


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(units).failed == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0s", 0),
        ("500ms", 0.5),
        ("2s", 2),
        ("1.5s", 1.5),
        ("15m", 900),
        ("1h", 3600),
        ("1d", 86400),
        (" 2 s ", 2),
    ],
)
def test_durations(text: str, value: float) -> None:
    assert units.seconds(text) == value


@pytest.mark.parametrize(
    "text", ["", "2", "s", "-2s", "2 sec", "2S", "1e3s", "1m30s", "٢s", "inf s", "9" * 400 + "s"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="500ms"):
        units.seconds(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1B", 1), ("20MiB", 20 * 2**20), ("20MB", 20_000_000), ("0.5KiB", 512), ("1GiB", 2**30)],
)
def test_sizes(text: str, value: int) -> None:
    assert units.size(text) == value


@pytest.mark.parametrize("text", ["20", "20M", "20mib", "-1B", "0.3B", "1.0001KiB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        units.size(text)


@pytest.mark.parametrize("text", ["0.40", "5", "-1", "1.5e-7", "1E3"])
def test_decimals_are_exact(text: str) -> None:
    assert units.decimal(text) == Decimal(text)


@pytest.mark.parametrize(
    "text", ["", "0,40", "$5", "1_000", "NaN", "Infinity", "0x10", "٤", "5 USD", "1" * 5000]
)
def test_what_is_no_decimal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="decimal"):
        units.decimal(text)


@given(st.integers(min_value=0, max_value=2**45))
def test_a_written_size_reads_back(value: int) -> None:
    assert units.size(units.size_text(value)) == value


@given(st.integers(min_value=0, max_value=10**7).map(lambda ms: ms / 1000))
def test_a_written_duration_reads_back(value: float) -> None:
    assert units.seconds(units.seconds_text(value)) == pytest.approx(value, rel=1e-5)


@given(st.text())
def test_no_message_repeats_its_value(text: str) -> None:
    marked = f"CANARY{text}"
    for read in (units.seconds, units.size, units.decimal):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 -- the text is what is looked at
            read(marked)
        assert "CANARY" not in str(caught.value)
