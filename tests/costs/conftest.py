"""Prices and rates with good defaults."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from gateway.costs.prices import TokenPrice, new_price
from gateway.costs.work import EngineRate, new_engine_rate

PriceMaker = Callable[..., TokenPrice]
RateMaker = Callable[..., EngineRate]


def _decimal(value: str | None) -> Decimal | None:
    return None if value is None else Decimal(value)


@pytest.fixture(scope="session")
def price() -> PriceMaker:
    """USD per million tokens as texts; the worked example of the cost model unless said otherwise."""

    def make(
        input: str | None = "0.20",
        cached_input: str | None = "0.10",
        output: str | None = "0.60",
        per_request: str | None = None,
        longest_prompt: int | None = None,
    ) -> TokenPrice:
        return new_price(
            "serverless",
            "org/model",
            "2026-12-01T00:00:00.000000Z",
            input=_decimal(input),
            cached_input=_decimal(cached_input),
            output=_decimal(output),
            per_request=_decimal(per_request),
            longest_prompt=longest_prompt,
        )

    return make


@pytest.fixture(scope="session")
def engine_rate() -> RateMaker:
    """The worked example's engine: 2.50 + 0.30 USD per hour, 8,000 work units per second."""

    def make(usd_per_hour: str = "2.50", overhead: str = "0.30", capacity: str | None = "8000") -> EngineRate:
        return new_engine_rate(
            "h100-a",
            "2026-12-01T00:00:00.000000Z",
            usd_per_hour=Decimal(usd_per_hour),
            overhead_usd_per_hour=Decimal(overhead),
            capacity=_decimal(capacity),
        )

    return make
