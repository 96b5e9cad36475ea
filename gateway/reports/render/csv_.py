"""The report as CSV: a line for each group, then one with the totals. Works out no figure.

Column `record` tells the two kinds apart, so that nobody adds the totals to the groups. Unknown is an empty
cell.
"""

import csv
import io
from typing import Any

from gateway.reports.columns import COLUMNS
from gateway.reports.figures import Figures
from gateway.reports.render.json_ import utc_text
from gateway.reports.report import Report
from gateway.reports.rows import Key

# Spreadsheets take cells that begin so for formulas, and tags are what any client may write.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def render(report: Report) -> str:
    """The text, lines ended by line feeds."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["record", "since", "until", *report.by, *(column.csv_name for column in COLUMNS)])
    for row in report.rows:
        writer.writerow(_line("group", report, row.key, row.figures))
    writer.writerow(_line("total", report, (None,) * len(report.by), report.totals))
    return out.getvalue()


def _line(record: str, report: Report, key: Key, figures: Figures) -> list[Any]:
    period = (utc_text(report.since), utc_text(report.until))
    return [record, *period, *map(_name, key), *(column.plain(figures) for column in COLUMNS)]


def _name(value: str | None) -> str | None:
    return f"'{value}" if value and value.startswith(_FORMULA_STARTS) else value
