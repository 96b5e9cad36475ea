"""Where prices come from: the configuration's contract prices, else the price map inside the litellm package.

The map is read from its file; litellm is never imported and nothing is downloaded. A target's price is looked
up by the name that is sent to it, never by a name that comes back. Knows no arithmetic: costs.rate applies a
price.
"""

import importlib.util
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from gateway.costs.money import decimal_text
from gateway.costs.prices import TokenPrice, content_hash, new_price, problem_with
from gateway.costs.work import EngineRate
from gateway.ledger.records import PriceRow, RateRow

_MAP_FILE = "model_prices_and_context_window_backup.json"
_TOKENS_PER_PRICE = 1_000_000
_STEP = re.compile(r"(?:input|output)_cost_per_token_above_(\d+)k_tokens$")


@dataclass(frozen=True, slots=True)
class ContractPrice:
    """Prices of the configuration in USD per million tokens, `per_request` in USD."""

    input: Decimal | None
    output: Decimal | None
    cached_input: Decimal | None = None
    per_request: Decimal | None = None


@dataclass(frozen=True, slots=True)
class PricedTarget:
    """One model at one endpoint. For kind `litellm` the remote model is a litellm model string, the map's own
    key.
    """

    endpoint: str
    kind: Literal["openai", "litellm"]
    remote_model: str
    contract: ContractPrice | None = None


class PriceBook:
    """Every target's price in force, looked up once. Blocking where the map has to be read (some 50 ms)."""

    def __init__(
        self, targets: Iterable[PricedTarget], effective_from: str, map_path: Path | None = None
    ) -> None:
        """`effective_from`: UTC text. `map_path` None: the map of the installed litellm; read only if a
        target needs it.
        """
        self.prices: dict[tuple[str, str], TokenPrice] = {}
        self.unpriced: list[tuple[str, str]] = []
        entries: Mapping[str, Any] | None = None
        for target in targets:
            if target.contract is None and entries is None:
                entries = read_map(map_path or bundled_map())
            price = _contract(target, effective_from) or _mapped(target, effective_from, entries or {})
            if price is None:
                self.unpriced.append((target.endpoint, target.remote_model))
            else:
                self.prices[target.endpoint, target.remote_model] = price

    def price_for(self, endpoint: str, remote_model: str) -> TokenPrice | None:
        """The price in force; None where it is unknown, which makes the request unpriced and never free."""
        return self.prices.get((endpoint, remote_model))


def bundled_map() -> Path | None:
    """The price map's file in the installed litellm package, found without importing it; None where there is
    none.
    """
    spec = importlib.util.find_spec("litellm")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder) / _MAP_FILE
        if path.is_file():
            return path
    return None


def read_map(path: Path | None) -> Mapping[str, Any]:
    """The map's entries by litellm model string, its numbers as exact decimals; empty where there is no
    readable file.
    """
    if path is None:
        return {}
    try:
        entries = json.loads(path.read_bytes(), parse_float=Decimal, parse_int=Decimal)
    except (OSError, ValueError):
        return {}
    return entries if isinstance(entries, dict) else {}


def price_row(price: TokenPrice) -> PriceRow:
    """A price version as the ledger keeps it."""
    return PriceRow(
        price_id=price.price_id,
        target=price.target,
        remote_model=price.remote_model,
        effective_from=price.effective_from,
        source=price.source,
        input=_text(price.input),
        cached_input=_text(price.cached_input),
        output=_text(price.output),
        per_request=_text(price.per_request),
        hash=content_hash(
            price.input, price.cached_input, price.output, price.per_request, price.longest_prompt
        ),
    )


def rate_row(rate: EngineRate) -> RateRow:
    """An engine's rate version as the ledger keeps it."""
    return RateRow(
        rate_id=rate.rate_id,
        engine=rate.engine,
        effective_from=rate.effective_from,
        usd_per_hour=decimal_text(rate.usd_per_hour),
        overhead_usd_per_hour=decimal_text(rate.overhead_usd_per_hour),
        billing=rate.billing,
        capacity=_text(rate.capacity),
        hash=content_hash(rate.usd_per_hour, rate.overhead_usd_per_hour, rate.billing, rate.capacity),
    )


def _text(value: Decimal | None) -> str | None:
    return None if value is None else decimal_text(value)


def _contract(target: PricedTarget, effective_from: str) -> TokenPrice | None:
    given = target.contract
    if given is None:
        return None
    return new_price(
        target.endpoint,
        target.remote_model,
        effective_from,
        input=given.input,
        cached_input=given.cached_input,
        output=given.output,
        per_request=given.per_request,
    )


def _mapped(target: PricedTarget, effective_from: str, entries: Mapping[str, Any]) -> TokenPrice | None:
    for key in _keys(target):
        entry = entries.get(key)
        if isinstance(entry, dict):
            return _price_of_entry(target, effective_from, entry)
    return None


def _keys(target: PricedTarget) -> tuple[str, ...]:
    """Names under which the map may list it, each exactly: a price of a similar name is a wrong price."""
    _, slash, bare = target.remote_model.partition("/")
    return (target.remote_model, bare) if target.kind == "openai" and slash else (target.remote_model,)


def _price_of_entry(target: PricedTarget, effective_from: str, entry: Mapping[str, Any]) -> TokenPrice | None:
    """None for entries that do not bill by the token, or whose token prices are placeholders (0 both
    ways).
    """
    if entry.get("tiered_pricing"):
        return None
    price = new_price(
        target.endpoint,
        target.remote_model,
        effective_from,
        input=_per_mtok(entry.get("input_cost_per_token")),
        cached_input=_per_mtok(entry.get("cache_read_input_token_cost")),
        output=_per_mtok(entry.get("output_cost_per_token")),
        source="map",
        longest_prompt=_first_step(entry),
    )
    return None if problem_with(price) else price


def _per_mtok(per_token: object) -> Decimal | None:
    return per_token * _TOKENS_PER_PRICE if isinstance(per_token, Decimal) else None


def _first_step(entry: Mapping[str, Any]) -> int | None:
    """Prompt tokens up to which the entry's plain prices hold (cost-model §4, long-context steps)."""
    steps = [
        int(found[1]) * 1000
        for key, value in entry.items()
        if value is not None and (found := _STEP.match(key))
    ]
    return min(steps, default=None)
