"""What the demo's figures say: the object that scripts read, and the paragraph that people do. Pure."""

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from gateway.costs.money import usd_text


@dataclass(slots=True)
class Figures:
    """What happened. Amounts are pico-USD, None where unknown; `cash_marginal` and the others are report
    totals."""

    seconds: float
    sent: int = 0
    failed: int = 0
    preemptions: int = 0
    by_route: Counter[str] = field(default_factory=Counter)
    by_reason: Counter[str] = field(default_factory=Counter)
    engine_bill: int | None = None
    overflow: int | None = None
    cash_marginal: int | None = None
    standard: int | None = None
    all_overflow: int | None = None
    net_position: int | None = None
    ledger: str = ""
    report: str | None = None
    unbootable_cause: str | None = None
    errors: list[str] = field(default_factory=list)


def as_object(figures: Figures) -> dict[str, Any]:
    """`demo --json`, interface.md §7."""
    return {
        "requests": {
            "total": figures.sent,
            "failed": figures.failed,
            "by_route": dict(figures.by_route),
            "by_reason": dict(figures.by_reason),
        },
        "preemptions": figures.preemptions,
        "cost_usd": {
            "engine_bill": usd_text(figures.engine_bill),
            "overflow": usd_text(figures.overflow),
            "cash_marginal": usd_text(figures.cash_marginal),
            "standard": usd_text(figures.standard),
            "all_overflow": usd_text(figures.all_overflow),
        },
        "net_position_usd": usd_text(figures.net_position),
        "ledger": figures.ledger,
        "report": figures.report,
        "errors": figures.errors,
    }


def paragraph(figures: Figures) -> str:
    """What happened and what it would have cost otherwise."""
    local, overflow = figures.by_route.get("local", 0), figures.by_route.get("overflow", 0)
    sentences = [
        f"In {figures.seconds:.0f} s clients sent {figures.sent} requests; {_failures(figures)}.",
        f"{local} were served by the engines, {overflow} by the serverless endpoint ({_reasons(figures)}),"
        f" and the engines preempted {_times(figures.preemptions)}.",
    ]
    if figures.unbootable_cause:
        sentences.append(
            f"One engine could not boot ({figures.unbootable_cause}); its model was served all the same."
        )
    sentences.append(_money(figures))
    return " ".join(sentences)


def _failures(figures: Figures) -> str:
    """An answer that broke off with its engine is not begun again elsewhere: what its client saw is said."""
    if figures.failed == 0:
        return "none failed"
    why = f" ({figures.errors[0]})" if figures.errors else ""
    return f"{figures.failed} failed{why}"


def _times(count: int) -> str:
    return {0: "nothing", 1: "once"}.get(count, f"{count} times")


def _reasons(figures: Figures) -> str:
    kept = {"headroom", "affinity", "only_choice"}
    left = [(reason, n) for reason, n in figures.by_reason.most_common() if reason not in kept]
    return ", ".join(f"{reason} {n}" for reason, n in left) or "for no reason"


def _money(figures: Figures) -> str:
    bill, spent, instead, net = (
        _usd(a) for a in (figures.engine_bill, figures.overflow, figures.all_overflow, figures.net_position)
    )
    if figures.net_position is None:
        return f"The engines cost {bill} USD and the endpoint {spent}; with prices unknown there is no net."
    verdict = "cheaper" if figures.net_position >= 0 else "dearer"
    return (
        f"The engines cost {bill} USD for this time and the endpoint {spent} USD; sending everything to the"
        f" endpoint would have cost {instead} USD, so this fleet was {net} USD {verdict} than none."
    )


def _usd(amount: int | None) -> str:
    if amount is None:
        return "an unknown amount in"
    text = usd_text(abs(amount))
    return f"{Decimal(text or 0):.6f}"
