"""What a usage costs at a per-token price: exact, or None with why. Knows neither engines nor where prices
come from.
"""

from decimal import Decimal

from gateway.costs.money import PicoUSD, Rated, pico, times
from gateway.costs.prices import TokenPrice
from gateway.costs.tokens import INCONSISTENT, BilledTokens, billed_tokens
from gateway.wire.usage import Usage

CACHE_PRICE_MISSING = "cache_price_missing"
USAGE_ESTIMATED = "usage_estimated"

NO_PRICE = "price unknown"
NO_PROMPT_COUNT = "prompt tokens unknown"
NO_OUTPUT_COUNT = "completion tokens unknown"

# Pico-USD per token of a price of 1 USD per million tokens.
_PICO_PER_TOKEN = 10**6


def rate(usage: Usage | None, price: TokenPrice | None, *, generates: bool = True) -> Rated:
    """S = per_request + input * uncached + cached_input * cached + output * completion (cost-model §4), in
    pico-USD.

    Each term is rounded half-even once. Reasoning tokens are inside the completion and not charged again.
    Where the target has no cached price, cached tokens cost the input price and the flag
    `cache_price_missing` says so. Unknown counts or prices give amount None and a why, never 0.
    `generates=False`: see `billed_tokens`.
    """
    if price is None:
        return Rated(None, NO_PRICE)
    tokens = billed_tokens(usage, generates=generates)
    if usage is None or tokens is None:
        return Rated(None, NO_PROMPT_COUNT)
    why = _unpriceable(tokens, price)
    flags = _flags(usage, tokens, price)
    if why is not None:
        return Rated(None, why, flags)
    source = "estimated_usage" if USAGE_ESTIMATED in flags else price.source
    return Rated(token_bill(tokens, price), None, flags, source)


def token_bill(tokens: BilledTokens, price: TokenPrice) -> PicoUSD:
    """The sum of the price terms; a term without a price counts nothing, so ask `rate` whether one is
    missing.
    """
    cached_price = price.input if price.cached_input is None else price.cached_input
    bill = 0 if price.per_request is None else pico(price.per_request)
    for count, per_mtok in (
        (tokens.uncached, price.input),
        (tokens.cached, cached_price),
        (tokens.output, price.output),
    ):
        if count and per_mtok:
            bill += times(per_mtok, count * _PICO_PER_TOKEN)
    return bill


def _unpriceable(tokens: BilledTokens, price: TokenPrice) -> str | None:
    if price.longest_prompt is not None and tokens.prompt > price.longest_prompt:
        return f"no price known for prompts above {price.longest_prompt} tokens"
    if tokens.uncached and price.input is None:
        return "input price unknown"
    if tokens.cached and price.input is None and price.cached_input is None:
        return "cached input price unknown"
    if tokens.output is None:
        # A target that charges nothing for output has no term that could be unknown.
        return NO_OUTPUT_COUNT if _is_charged(price.output) else None
    return "output price unknown" if tokens.output and price.output is None else None


def _is_charged(price: Decimal | None) -> bool:
    return price is not None and price != 0


def _flags(usage: Usage, tokens: BilledTokens, price: TokenPrice) -> tuple[str, ...]:
    flags = []
    if tokens.inconsistent:
        flags.append(INCONSISTENT)
    if tokens.cached and price.cached_input is None:
        flags.append(CACHE_PRICE_MISSING)
    if usage.source != "reported":
        flags.append(USAGE_ESTIMATED)
    return tuple(flags)
