"""Every figure of a report as data: its key, unit, basis, meaning and where its value is. Knows no format.

To add a figure, add a Column: JSON, CSV and the page docs/cost-model.md are made from this one list, and the
table shows some of it.
"""

from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from gateway.costs.money import usd_text
from gateway.reports.figures import Figures

Unit = Literal["requests", "tokens", "USD", "share"]
# `sum`: the groups' values add up to the total. `whole`: worked out from all of the period at once.
Total = Literal["sum", "whole"]
# `bill` and `net` are no bases of a request's cost: what engines cost by the hour, and what is left between
# sums.
MoneyBasis = Literal["bill", "cash_marginal", "standard", "attributed", "loaded", "net"]

_SHARE_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Column:
    """One figure. `key` is its place in Figures and in JSON, with dots between the levels."""

    key: str
    unit: Unit
    total: Total
    meaning: str
    basis: MoneyBasis | None = None

    def value(self, figures: Figures) -> int | float | None:
        """The figure itself: amounts in pico-USD; None where unknown."""
        value: int | float | None = attrgetter(self.key)(figures)
        return value

    def plain(self, figures: Figures) -> int | float | str | None:
        """The figure as JSON and CSV write it: money as an exact decimal text in USD."""
        value = self.value(figures)
        if self.unit == "USD":
            return usd_text(None if value is None else int(value))
        return round(value, _SHARE_DIGITS) if isinstance(value, float) else value

    @property
    def csv_name(self) -> str:
        """Header of the column in CSV: money says its basis and its currency."""
        name = self.key.replace(".", "_")
        if self.unit != "USD":
            return name
        parts = [name, "usd"] if self.basis is None or self.basis in name else [name, self.basis, "usd"]
        return "_".join(parts)


COLUMNS: tuple[Column, ...] = (
    Column("requests", "requests", "sum", "requests that arrived in the period, whatever became of them"),
    Column("outcomes.ok", "requests", "sum", "answered to the end"),
    Column("outcomes.failed", "requests", "sum", "failed at a target or in the gateway, or cut by a crash"),
    Column("outcomes.shed", "requests", "sum", "refused by a decision: no target could or might take it"),
    Column("outcomes.rejected", "requests", "sum", "refused before routing: the request itself was wrong"),
    Column("outcomes.client_left", "requests", "sum", "the client went away, or stopped reading"),
    Column("tokens.prompt", "tokens", "sum", "prompt tokens, cached ones included"),
    Column("tokens.cached", "tokens", "sum", "prompt tokens that were found in a prefix cache"),
    Column("tokens.completion", "tokens", "sum", "output tokens, reasoning included"),
    Column(
        "engine_bill", "USD", "sum",
        "what the engines cost by the hour over their time on record, busy or not; unknown where an engine"
        " that answered has no time on record",
        "bill",
    ),
    Column(
        "idle", "USD", "sum",
        "the part of engine_bill in which no request ran: idle, booting, boot failed, unreachable, draining",
        "bill",
    ),
    Column(
        "overflow", "USD", "sum",
        "what attempts at endpoints cost, also those that another attempt followed",
        "cash_marginal",
    ),
    Column(
        "cash_marginal", "USD", "sum",
        "what they changed on an invoice: the token bill at endpoints, 0 on engines that are paid for anyway",
        "cash_marginal",
    ),
    Column(
        "standard", "USD", "sum",
        "what they used: work units at the engine's rate and practical capacity; the token bill at endpoints",
        "standard",
    ),
    Column("attributed", "USD", "sum", "share of the engines' busy time; needs settlement", "attributed"),
    Column("loaded", "USD", "sum", "share of the whole bill, idle included; needs settlement", "loaded"),
    Column(
        "alternative", "USD", "sum",
        "the route not taken: for requests of engines the endpoint's price of the same tokens, for requests"
        " of endpoints 0 where an engine could have served them. Not a saving",
        "cash_marginal",
    ),
    Column(
        "all_overflow", "USD", "sum",
        "the same traffic all at the endpoints: what the requests that went there cost, plus the alternative"
        " of the others",
        "cash_marginal",
    ),
    Column(
        "net_position", "USD", "whole",
        "all_overflow - (engine_bill + overflow); negative: the engines cost more; unknown where a part is",
        "net",
    ),
    Column(
        "net_position_of_known", "USD", "whole",
        "the same without the requests whose part is unknown; equal to net_position where none is",
        "net",
    ),
    Column("unpriced.requests", "requests", "sum", "requests whose cash_marginal is unknown"),
    Column("unpriced.tokens", "tokens", "sum", "prompt and output tokens of those, as far as known"),
    Column("missing.prompt", "requests", "sum", "requests that tokens.prompt lacks: the count was not given"),
    Column("missing.cached", "requests", "sum", "requests that tokens.cached lacks"),
    Column("missing.completion", "requests", "sum", "requests that tokens.completion lacks"),
    Column("missing.standard", "requests", "sum", "requests that standard lacks"),
    Column("missing.alternative", "requests", "sum", "requests that alternative lacks"),
    Column("missing.all_overflow", "requests", "sum", "requests that all_overflow lacks"),
    Column(
        "left_out.not_equivalent", "requests", "sum",
        "requests of engines in no alternative: the endpoint serves another quantisation or context",
    ),
    Column(
        "left_out.no_usage", "requests", "sum",
        "requests of engines in no alternative: no token was counted (they failed, or their path has none)",
    ),
    Column("left_out.infeasible", "requests", "sum", "requests of endpoints that no engine could serve"),
    Column("coverage", "share", "whole", "share of the requests sent to a target whose usage was reported"),
)  # fmt: skip

BY_KEY: dict[str, Column] = {column.key: column for column in COLUMNS}
