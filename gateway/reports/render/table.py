"""The report for a terminal: the main columns, a row of totals, what it comes to in three lines, and notes.

Works out no figure: rounds money to six decimals and marks what is only a part.
"""

import io
import re
from collections.abc import Iterable, Iterator

from rich.box import Box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.costs.money import PicoUSD, round_half_even
from gateway.reports.columns import BY_KEY, Column
from gateway.reports.figures import Figures
from gateway.reports.report import Report

# Lines above and below the body, and one space between columns: a hundred characters must do.
_LINES = Box("    \n    \n -- \n    \n    \n -- \n    \n    \n", ascii=True)
# Where a name may be broken, and how narrow its column may get.
_PIECES = re.compile(r"[^-_/.:]*[-_/.:]?")
_LEAST = 8
_MICRO = 10**6
_UNKNOWN = "-"
_STEPS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))

# Column key -> its header, and the key of the count that says whether its sum is only a part.
_SHOWN: dict[str, tuple[str, str | None]] = {
    "requests": ("requests", None),
    "outcomes.failed": ("failed", None),
    "tokens.prompt": ("tokens\nin", "missing.prompt"),
    "tokens.completion": ("tokens\nout", "missing.completion"),
    "engine_bill": ("engine\nbill\nUSD", None),
    "cash_marginal": ("cash\nmarginal\nUSD", "unpriced.requests"),
    "standard": ("standard\nUSD", "missing.standard"),
    "attributed": ("attributed\nUSD", None),
    "loaded": ("loaded\nUSD", None),
    "alternative": ("alternative\ncash\nmarginal\nUSD", "missing.alternative"),
}


def render(report: Report, *, width: int = 100, color: bool = False) -> str:
    """The text, with ANSI colours where `color`."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        legacy_windows=False,
    )
    console.print(Text(_title(report), style="bold"))
    console.print(Text(_counts(report.totals)))
    for line in _bases(report):
        console.print(Text(line))
    console.print()
    if report.rows:
        console.print(_table(report, width))
        console.print()
    for line in summary(report):
        console.print(Text(line))
    for note in report.notes:
        console.print(Text(f"note: {note}", style="dim"))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def summary(report: Report) -> tuple[str, str, str]:
    """What engines and endpoints cost, what the endpoints alone would have, and what is between the two."""
    totals = report.totals
    where = f" ({', '.join(report.compared_with)})" if report.compared_with else ""
    instead = _usd(totals.all_overflow, totals.missing.all_overflow)
    return (
        _spent(totals),
        f"the same traffic all at the endpoint{where} would have cost {instead}",
        f"net position {_net(totals)}",
    )


def money_text(amount: PicoUSD | None) -> str:
    """USD to six decimals; what is too small for them is not shown as nothing.

    >>> money_text(590_000_000), money_text(1), money_text(None)
    ('0.000590', '<0.000001', '-')
    """
    if amount is None:
        return _UNKNOWN
    micro = round_half_even(abs(amount), _MICRO)
    sign = "-" if amount < 0 else ""
    if amount and not micro:
        return f"<{sign}0.000001" if amount > 0 else ">-0.000001"
    return f"{sign}{micro // _MICRO:,}.{micro % _MICRO:06d}"


def count_text(count: int) -> str:
    """A count in at most six characters.

    >>> count_text(999), count_text(12_345), count_text(1_999_999)
    ('999', '12.3k', '1.99M')
    """
    for step, letter in _STEPS:
        if count >= step:
            digits = str(count // (step // 1000)) if step >= 1000 else str(count)
            whole, thousandths = digits[:-3], digits[-3:]
            kept = thousandths[: max(0, 3 - len(whole))]
            return f"{whole}.{kept}{letter}" if kept else f"{whole}{letter}"
    return str(count)


def _title(report: Report) -> str:
    return f"Cost report  {report.since:%Y-%m-%d %H:%M:%S} to {report.until:%Y-%m-%d %H:%M:%S} UTC"


def _counts(totals: Figures) -> str:
    if not totals.requests:
        return "no requests in this period"
    outcomes = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in totals.outcomes._asdict().items() if count
    )
    text = f"{totals.requests:,} requests: {outcomes}"
    return text if totals.coverage is None else f"{text}; usage reported for {_share(totals.coverage)}"


def _bases(report: Report) -> Iterator[str]:
    """What the amounts are, what they rest on, and how many are not known."""
    unpriced = report.totals.unpriced
    yield (
        f"basis {report.basis}, in USD; unpriced: {unpriced.requests:,} requests, {unpriced.tokens:,} tokens"
    )
    for price in report.prices:
        named = (("in", price.input), ("cached", price.cached_input), ("out", price.output))
        terms = [f"{name} {amount}" for name, amount in named if amount is not None]
        per_token = f"{', '.join(terms)} USD per million tokens" if terms else "not on record"
        extra = f", {price.per_request} USD per request" if price.per_request is not None else ""
        target = f"{price.target or ''} {price.remote_model or ''}".strip() or "target unknown"
        yield _printable(
            f"price {price.price_id}: {target}: {per_token}{extra} ({price.source or 'unknown'})"
        )


def _share(share: float) -> str:
    # Rounded down: 99.96 % is not all.
    return f"{int(share * 1000) / 10:.1f} %"


def _table(report: Report, width: int) -> Table:
    table = Table(box=_LINES, show_footer=True, show_edge=False, pad_edge=False, padding=0)
    shown = [BY_KEY[key] for key in _order(report) if _is_shown(report, key)]
    everyone = (report.totals, *(row.figures for row in report.rows))
    numbers = [[_cell(column, figures) for figures in everyone] for column in shown]
    headers = [_SHOWN[column.key][0] for column in shown]
    taken = sum(
        _longest([*header.split("\n"), *cells]) + 1 for header, cells in zip(headers, numbers, strict=True)
    )
    names = _folded(
        [[_printable(row.key[n]) for row in report.rows] for n in range(len(report.by))], width - taken
    )
    for place, (header, cells) in enumerate(zip(report.by, names, strict=True)):
        # One more than it needs: names stand closer together than numbers.
        room = _longest([header, *(line for cell in cells for line in cell.split("\n"))]) + 1
        table.add_column(header, "total" if place == 0 else "", no_wrap=True, min_width=room)
    for header, (total, *_) in zip(headers, numbers, strict=True):
        table.add_column(Text(header, justify="right"), Text(total), justify="right", no_wrap=True)
    for line in zip(*names, *(cells for _, *cells in numbers), strict=True):
        table.add_row(*map(Text, line))
    return table


def _folded(columns: list[list[str]], room: int) -> list[list[str]]:
    """Names broken into lines until they fit into `room` characters side by side: the longest first."""
    widths = [_longest(cells) for cells in columns]
    while sum(widths) + 2 * len(widths) > room and max(widths, default=0) > _LEAST:
        widest = widths.index(max(widths))
        folded = [_fold(cell, widths[widest] - 1) for cell in columns[widest]]
        widths[widest] = _longest(line for cell in folded for line in cell.split("\n"))
    return [[_fold(cell, width) for cell in cells] for cells, width in zip(columns, widths, strict=True)]


def _fold(name: str, width: int) -> str:
    """The name in lines of at most `width`, broken after a separator where there is one."""
    lines = [""]
    for piece in _PIECES.findall(name):
        if len(lines[-1]) + len(piece) > width and lines[-1]:
            lines.append("")
        lines[-1] += piece
        while len(lines[-1]) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return "\n".join(lines)


def _longest(texts: Iterable[str]) -> int:
    return max(map(len, texts), default=0)


def _order(report: Report) -> list[str]:
    """Columns from left to right: the report's basis is the first one of money that requests have."""
    keys = [key for key in _SHOWN if key != report.basis]
    first = list(_SHOWN).index("cash_marginal")
    return [*keys[:first], report.basis, *keys[first:]]


def _is_shown(report: Report, key: str) -> bool:
    """Columns for some reports only: the bill where groups have it, a basis not yet known where it is asked
    for.
    """
    if key == "engine_bill":
        return any(row.figures.engine_bill is not None for row in report.rows)
    if key in ("attributed", "loaded"):
        return report.basis == key
    return key != "outcomes.failed" or report.totals.outcomes.failed > 0


def _cell(column: Column, figures: Figures) -> str:
    value = column.value(figures)
    if value is None:
        return _UNKNOWN
    key = _SHOWN[column.key][1]
    mark = "+" if key and BY_KEY[key].value(figures) else ""
    match column.unit:
        case "USD":
            return money_text(int(value)) + mark
        case "tokens":
            return count_text(int(value)) + mark
        case _:
            return f"{value:,}"


def _printable(value: str | None) -> str:
    """A name as one line; whatever could move a terminal's cursor becomes a question mark."""
    if value is None:
        return _UNKNOWN
    return "".join(letter if letter.isprintable() else "?" for letter in value)


def _spent(totals: Figures) -> str:
    bill, idle, overflow = totals.engine_bill, totals.idle, totals.overflow
    amount = None if bill is None or overflow is None else bill + overflow
    engines = f"engines {_short(bill)} (idle {_short(idle)})"
    return f"{engines} and overflow {_short(overflow)} cost {_usd(amount, totals.unpriced.requests)}"


def _short(amount: PicoUSD | None) -> str:
    return "unknown" if amount is None else money_text(amount)


def _usd(amount: PicoUSD | None, missing: int) -> str:
    if amount is None:
        return "an unknown amount"
    return f"{'at least ' if missing else ''}{money_text(amount)} USD"


def _net(totals: Figures) -> str:
    meaning = "(negative: the engines cost more"
    if totals.net_position is not None:
        return f"{money_text(totals.net_position)} USD {meaning} than they replaced)"
    if totals.net_position_of_known is None:
        return "unknown: see the notes"
    return f"unknown; of what is known {money_text(totals.net_position_of_known)} USD {meaning})"
