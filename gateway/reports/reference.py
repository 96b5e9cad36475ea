"""The tables of docs/cost-model.md, made from columns and groupings, so that page and program cannot differ.

`python -m gateway.reports.reference docs/cost-model.md` renews the page. Knows no particular column.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from gateway.config.reference import filled
from gateway.reports.columns import COLUMNS, Column
from gateway.reports.rows import DEFAULT_BY, GROUPINGS


def tables() -> Mapping[str, str]:
    """Name of each generated part of the page -> its text."""
    return {"columns": "\n".join(_columns()), "groupings": "\n".join(_groupings())}


def renewed(page: str) -> str:
    """The page with its generated parts made anew."""
    return filled(page, tables())


def _columns() -> Iterator[str]:
    yield "| JSON key | CSV column | unit | basis | groups add up | means |"
    yield "|---|---|---|---|---|---|"
    for column in COLUMNS:
        yield (
            f"| `{column.key}` | `{column.csv_name}` | {column.unit} | {_basis(column)} |"
            f" {'yes' if column.total == 'sum' else 'no'} | {column.meaning} |"
        )


def _basis(column: Column) -> str:
    return f"`{column.basis}`" if column.basis else ""


def _groupings() -> Iterator[str]:
    yield "| `--by` | groups by |"
    yield "|---|---|"
    for name, meaning in GROUPINGS.items():
        yield f"| `{name}`{' (default)' if name in DEFAULT_BY else ''} | {meaning} |"


def _main(page: Path) -> None:
    page.write_text(renewed(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
