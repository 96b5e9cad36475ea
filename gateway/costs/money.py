"""Amounts of money as whole pico-USD (1e-12 USD), and how exact prices become them. Knows no tokens and no
targets.

Prices are exact decimals; an amount is rounded half-even once, where a price term ends, and only added up
afterwards (cost-model §2). Nothing here touches a float or depends on the decimal context.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

PicoUSD = int
PICO_PER_USD = 10**12


@dataclass(frozen=True, slots=True)
class Rated:
    """An amount in pico-USD, or None with why it is unknown. `flags` say what the amount rests on.

    `source` is the rung of the evidence ladder (cost-model §4): `contract`, `map`, `provider_cost`,
    `estimated_usage` or `unknown` for token prices, `engine_rate` for amounts worked out from an engine's
    hourly rate.
    """

    amount: PicoUSD | None
    why: str | None = None
    flags: tuple[str, ...] = ()
    source: str = "unknown"


class Total(NamedTuple):
    """A sum of what is known, and how many amounts are missing from it."""

    amount: PicoUSD
    unknown: int

    @property
    def exact(self) -> PicoUSD | None:
        """The sum where nothing is missing; None where it is only a part."""
        return None if self.unknown else self.amount


def round_half_even(numerator: int, denominator: int) -> int:
    """The whole number nearest to numerator / denominator (> 0); a tie goes to the even one."""
    quotient, rest = divmod(numerator, denominator)
    if 2 * rest > denominator or (2 * rest == denominator and quotient % 2):
        quotient += 1
    return quotient


def times(price: Decimal, factor: int, divisor: int = 1) -> int:
    """price * factor / divisor as a whole number, rounded half-even once. Raises on a price that is not
    finite.
    """
    numerator, denominator = price.as_integer_ratio()
    return round_half_even(numerator * factor, denominator * divisor)


def pico(usd: Decimal) -> PicoUSD:
    """USD as whole pico-USD. Raises OverflowError or ValueError on infinity and NaN."""
    return times(usd, PICO_PER_USD)


def usd_text(amount: PicoUSD | None) -> str | None:
    """An amount as an exact decimal text in USD, without trailing zeros; None stays None.

    >>> usd_text(590_000_000)
    '0.00059'
    """
    if amount is None:
        return None
    whole, fraction = divmod(abs(amount), PICO_PER_USD)
    text = f"{whole}.{fraction:012d}".rstrip("0").rstrip(".")
    return f"-{text}" if amount < 0 else text


def decimal_text(value: Decimal) -> str:
    """A decimal as its one shortest plain text: 0.40, 0.4 and 4E-1 are all `0.4`."""
    text = f"{value:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def add_up(amounts: Iterable[PicoUSD | None]) -> Total:
    """The sum of the known amounts and the count of unknown ones. No amounts at all are an exact 0."""
    total = unknown = 0
    for amount in amounts:
        if amount is None:
            unknown += 1
        else:
            total += amount
    return Total(total, unknown)
