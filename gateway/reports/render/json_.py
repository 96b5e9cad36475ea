"""The report as one JSON object: `spillgate.report/1`. Works out no figure.

Keys are stable, more may be added. Money is USD as exact decimal texts, shares are 0 to 1, unknown is null.
"""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from gateway.costs.money import usd_text
from gateway.reports.columns import COLUMNS
from gateway.reports.figures import Figures
from gateway.reports.report import EngineTime, Report

SCHEMA = "spillgate.report/1"


def render(report: Report) -> str:
    """The object as indented text, with a line feed at its end."""
    return json.dumps(as_object(report), indent=2, allow_nan=False) + "\n"


def as_object(report: Report) -> dict[str, Any]:
    """The object as Python values."""
    totals = _nested(report.totals)
    return {
        "schema": SCHEMA,
        "generated_at": utc_text(report.generated_at),
        "period": {"since": utc_text(report.since), "until": utc_text(report.until)},
        "currency": "USD",
        "by": list(report.by),
        "basis": report.basis,
        "coverage": totals["coverage"],
        "unpriced": totals["unpriced"],
        "totals": totals,
        "rows": [
            {"key": dict(zip(report.by, row.key, strict=True)), **_nested(row.figures)} for row in report.rows
        ],
        "engines": [_engine(engine) for engine in report.engines],
        "prices": [asdict(price) for price in report.prices],
        "engine_rates": [asdict(rate) for rate in report.rates],
        "compared_with": list(report.compared_with),
        "notes": list(report.notes),
    }


def utc_text(time: datetime) -> str:
    """`2026-12-01T08:00:00Z`, with microseconds where there are any."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _nested(figures: Figures) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for column in COLUMNS:
        *path, last = column.key.split(".")
        place = nested
        for step in path:
            place = place.setdefault(step, {})
        place[last] = column.plain(figures)
    return nested


def _engine(engine: EngineTime) -> dict[str, Any]:
    return {
        "engine": engine.engine,
        "engine_bill": usd_text(engine.bill),
        "idle": usd_text(engine.idle),
        "seconds": {state: round(seconds, 6) for state, seconds in engine.seconds.items()},
    }
