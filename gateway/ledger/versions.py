"""What the configuration says of money, as versions: prices and engine rates in force, and their rows in the
ledger.
"""

from collections.abc import Mapping
from datetime import datetime

from gateway.config.schema import Config, Price
from gateway.costs.work import EngineRate, bill_of, new_engine_rate
from gateway.ledger.prices import ContractPrice, PriceBook, PricedTarget
from gateway.ledger.records import EngineSpan, Partition


def price_book(config: Config, effective_from: str) -> PriceBook:
    """Every overflow target's price: the contract's, else the bundled map's. Reads a file; not on the event
    loop.
    """
    kinds = {endpoint.name: endpoint.kind for endpoint in config.endpoints}
    targets = [
        PricedTarget(o.endpoint, kinds[o.endpoint], o.model, _contract(o.price))
        for model in config.models
        for o in model.overflow
    ]
    return PriceBook(targets, effective_from)


def _contract(price: Price | None) -> ContractPrice | None:
    if price is None:
        return None
    return ContractPrice(price.input, price.output, price.cached_input, price.per_request)


def engine_rates(config: Config, effective_from: str) -> dict[str, EngineRate]:
    """The rate of every engine that has one; the others' requests have no `standard` cost, and no bill."""
    return {
        engine.name: new_engine_rate(
            engine.name,
            effective_from,
            usd_per_hour=engine.cost.usd_per_hour,
            overhead_usd_per_hour=engine.cost.overhead_usd_per_hour,
            billing=engine.cost.billing,
            capacity=engine.cost.capacity_work_units_per_second,
        )
        for engine in config.engines
        if engine.cost is not None
    }


def span_record(
    engine: str,
    partition: Partition,
    start: datetime,
    end: datetime,
    seconds: float,
    rates: Mapping[str, EngineRate],
) -> EngineSpan | None:
    """A stretch of provisioned time with its part of the bill; None for an engine whose rate is not known."""
    rate = rates.get(engine)
    if rate is None:
        return None
    return EngineSpan(
        engine,
        partition,
        start.isoformat(timespec="microseconds"),
        end.isoformat(timespec="microseconds"),
        seconds,
        rate.rate_id,
        bill_of(seconds, rate),
    )
