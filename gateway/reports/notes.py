"""What a reader must know before believing a report's figures, as sentences. Pure; composes no figure."""

from collections.abc import Iterable, Iterator, Mapping

from gateway.reports.figures import Figures, Tokens
from gateway.reports.rows import RateUse

# Stretches of engine time are written at least this often, so the newest one may still be open.
_OPEN_STRETCH_SECONDS = 15.0
_SHARE_RECORDED = 0.99


def notes_on(
    totals: Figures,
    *,
    bill_is_split: bool,
    without: Iterable[str],
    recorded: Mapping[str, float],
    rates: Iterable[RateUse],
    period_seconds: float,
) -> Iterator[str]:
    """Notes, the weightiest first. `without`: engines that answered and have no time on record; `recorded`:
    seconds of each engine's time on record.
    """
    if not totals.requests:
        yield "no request arrived in this period"
    yield from _on_unknown_costs(totals)
    yield from _on_the_bill(totals, bill_is_split, tuple(without))
    yield from _on_engine_time(recorded, period_seconds)
    yield from _on_what_is_left_out(totals)
    yield from _on_commitments(rates)
    if totals.requests:
        yield "attributed and loaded are unknown: the engines' bill is not yet shared out to requests"


def _on_unknown_costs(totals: Figures) -> Iterator[str]:
    unpriced, missing = totals.unpriced, totals.missing
    if unpriced.requests:
        tokens = f" ({unpriced.tokens:,} tokens)" if unpriced.tokens else ""
        yield f"cash_marginal and overflow lack {_requests(unpriced.requests)}{tokens} whose cost is unknown"
    if missing.standard:
        lacking = _requests(missing.standard)
        yield f"standard lacks {lacking}: tokens, or the engine's rate or capacity, are unknown"
    if missing.alternative:
        yield f"alternative lacks {_requests(missing.alternative)} whose other route has no known price"
    for kind in Tokens._fields:
        if count := getattr(missing, kind):
            yield f"{kind} tokens lack {_requests(count)} that did not report them"


def _on_the_bill(totals: Figures, bill_is_split: bool, without: tuple[str, ...]) -> Iterator[str]:
    unknown = "engine_bill, idle and net_position are unknown"
    if without:
        names = ", ".join(without)
        yield f"{unknown}: {names} answered and has no engine time in the ledger (no `cost` configured?)"
    elif totals.engine_bill is None:
        yield f"{unknown}: the ledger has no engine time in this period"
    elif not bill_is_split:
        yield "groups have engine_bill by engine, target, hour or day only, and net_position by hour or day"


def _on_engine_time(recorded: Mapping[str, float], period_seconds: float) -> Iterator[str]:
    for engine, seconds in recorded.items():
        lacking = period_seconds - seconds
        if lacking > _OPEN_STRETCH_SECONDS and seconds < _SHARE_RECORDED * period_seconds:
            part = f"{_duration(seconds)} of {_duration(period_seconds)}"
            yield f"{engine}: engine_bill counts {part}, the time in which a gateway watched it"


def _on_what_is_left_out(totals: Figures) -> Iterator[str]:
    left_out, sums = totals.left_out, "left out of alternative and all_overflow"
    if left_out.not_equivalent:
        yield f"{_requests(left_out.not_equivalent)} of engines {sums}: endpoint not equivalent"
    if left_out.no_usage:
        yield f"{_requests(left_out.no_usage)} of engines {sums}: no tokens were counted"
    if left_out.infeasible:
        yield f"{_requests(left_out.infeasible)} of endpoints without alternative: no engine could serve them"


def _on_commitments(rates: Iterable[RateUse]) -> Iterator[str]:
    committed = sorted({rate.engine for rate in rates if rate.billing != "on_demand"})
    if committed:
        yield f"the bill of {', '.join(committed)} is committed: stopping the engine would not stop it"


def _requests(count: int) -> str:
    return f"{count:,} request" if count == 1 else f"{count:,} requests"


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:,.2f} h" if seconds >= 3600 else f"{seconds / 60:,.1f} min"
