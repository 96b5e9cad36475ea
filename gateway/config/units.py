"""Spellings of durations, sizes and decimal numbers. Knows no keys; a ValueError never repeats the value."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TypeVar

_N = TypeVar("_N", int, float)

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
# Bounded digit runs: no spelling of a few seconds or dollars needs more, and none may cost time to read.
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"
_MEASURE = re.compile(rf"({_NUMBER})\s*([A-Za-z]+)", re.ASCII)
_DECIMAL = re.compile(rf"[+-]?{_NUMBER}(?:[eE][+-]?[0-9]{{1,3}})?", re.ASCII)

DURATION_PATTERN = rf"^{_NUMBER}\s*({'|'.join(_SECONDS)})$"
SIZE_PATTERN = rf"^{_NUMBER}\s*({'|'.join(_BYTES)})$"


def seconds(text: str) -> float:
    """A duration in seconds.

    >>> seconds("500ms"), seconds("2s"), seconds("15m")
    (0.5, 2.0, 900.0)
    """
    problem = "a duration is a number and a unit, like 500ms, 2s, 15m, 1h or 1d"
    number, factor = _measure(text, _SECONDS, problem)
    return float(number * Decimal(str(factor)))


def size(text: str) -> int:
    """A size in bytes.

    >>> size("20MiB"), size("1.5KiB")
    (20971520, 1536)
    """
    number, factor = _measure(
        text, _BYTES, f"a size is a number and a unit ({', '.join(_BYTES)}), like 20MiB"
    )
    exact = number * factor
    if exact != int(exact):
        raise ValueError("a size must come out at whole bytes")
    return int(exact)


def decimal(text: str) -> Decimal:
    """An exact decimal number.

    >>> decimal("0.40")
    Decimal('0.40')
    """
    if not _DECIMAL.fullmatch(text):
        raise ValueError("takes a decimal number, like 0.40")
    return Decimal(text)


def seconds_text(value: float) -> str:
    """How a duration is best written in a file.

    >>> seconds_text(0.5), seconds_text(90.0), seconds_text(3600.0)
    ('500ms', '90s', '1h')
    """
    if value and value < 1:
        return f"{value * 1000:g}ms"
    unit = next((u for u in ("d", "h", "m") if value and value % _SECONDS[u] == 0), "s")
    return f"{value / _SECONDS[unit]:g}{unit}"


def size_text(value: int) -> str:
    """How a size is best written in a file.

    >>> size_text(20971520), size_text(1000)
    ('20MiB', '1000B')
    """
    unit = next((u for u in ("GiB", "MiB", "KiB") if value and value % _BYTES[u] == 0), "B")
    return f"{value // _BYTES[unit]}{unit}"


def _measure(text: str, units: Mapping[str, _N], problem: str) -> tuple[Decimal, _N]:
    match = _MEASURE.fullmatch(text.strip())
    if match is None or match[2] not in units:
        raise ValueError(problem)
    return Decimal(match[1]), units[match[2]]
