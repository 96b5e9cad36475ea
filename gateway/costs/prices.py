"""Immutable price versions of per-token targets, in exact USD per million tokens. Knows not where prices come
from.
"""

import hashlib
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from gateway.costs.money import decimal_text

PriceSource = Literal["contract", "map", "provider_cost"]

# The dearest token price known in public lists is some 600 USD per million; a per-token price read as
# per-million or the reverse is off by a million, so everything above this is a unit mistake and nothing real
# is refused.
HIGHEST_SANE_USD_PER_MTOK = Decimal(10_000)


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """One price version. `per_request` is USD per request, the others USD per million tokens; None is
    unknown.

    `effective_from` is UTC text. `longest_prompt`: beyond this many prompt tokens the target charges other
    prices that are not known here, so a longer request has no price (None: no such step).
    """

    price_id: str
    target: str
    remote_model: str
    effective_from: str
    input: Decimal | None
    cached_input: Decimal | None
    output: Decimal | None
    per_request: Decimal | None
    source: PriceSource
    longest_prompt: int | None = None


def new_price(
    target: str,
    remote_model: str,
    effective_from: str,
    *,
    input: Decimal | None,
    output: Decimal | None,
    cached_input: Decimal | None = None,
    per_request: Decimal | None = None,
    source: PriceSource = "contract",
    longest_prompt: int | None = None,
) -> TokenPrice:
    """A price version under the id of its content.

    The id does not cover `effective_from`: the same prices seen again after a restart are the same version,
    and the ledger keeps the time at which it first saw them.
    """
    content = (target, remote_model, input, cached_input, output, per_request, source, longest_prompt)
    return TokenPrice(
        price_id=content_hash(*content)[:16],
        target=target,
        remote_model=remote_model,
        effective_from=effective_from,
        input=input,
        cached_input=cached_input,
        output=output,
        per_request=per_request,
        source=source,
        longest_prompt=longest_prompt,
    )


def content_hash(*content: str | int | Decimal | None) -> str:
    """SHA-256 (hex) over the parts; equal decimals count as equal however they are written."""
    texts = (decimal_text(part) if isinstance(part, Decimal) else repr(part) for part in content)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def problem_with(price: TokenPrice) -> str | None:
    """Why this price must be refused, as a sentence that begins with the field; None where it is sane.

    Refused: no price for either direction, negative or not finite, above 10,000 USD per million tokens (a
    unit mistake), and zero for input and output alike (a price that is not known is left out, never written
    as 0).
    """
    tokens = {"input": price.input, "cached_input": price.cached_input, "output": price.output}
    for name, value in (*tokens.items(), ("per_request", price.per_request)):
        problem = _problem_with_value(value)
        if problem is not None:
            return f"{name} {problem}"
    if price.input is None and price.output is None:
        return "input and output are both missing: give USD per million tokens, or leave the price out"
    if not price.input and not price.output and not price.per_request:
        return "input and output are both 0: leave an unknown price out, so that it is counted as unpriced"
    return None


def _problem_with_value(value: Decimal | None) -> str | None:
    if value is None:
        return None
    if not value.is_finite():
        return f"is {value}: give a plain number of USD"
    if value < 0:
        return f"is negative ({decimal_text(value)})"
    if value > HIGHEST_SANE_USD_PER_MTOK:
        return f"is {decimal_text(value)}, above 10000: prices are USD per million tokens"
    return None
