"""The worklist as CSV (RFC 4180) for a spreadsheet: no cell is read as a formula."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO

from fleet.text import csv_cell
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import WorklistHeader

COLUMNS = (
    "rank",
    "fingerprint",
    "severity",
    "surface",
    "title",
    "state",
    "proof",
    "count",
    "days",
    "score",
    "first_seen",
    "last_seen",
    "since",
    "reason",
    "source",
    "why",
    "repro",
)
_LONGEST = 32_000
"""Characters of a cell; the usual spreadsheets take 32,767."""


def to_csv(items: Sequence[WorklistItem], _header: WorklistHeader | None = None) -> bytes:
    """UTF-8 with a header line; one line per item."""
    out = StringIO()
    rows = csv.writer(out, quoting=csv.QUOTE_MINIMAL)
    rows.writerow(COLUMNS)
    rows.writerows([_cell(getattr(item, column)) for column in COLUMNS] for item in items)
    return out.getvalue().encode()


def _cell(value: object) -> object:
    return csv_cell(value, _LONGEST) if isinstance(value, str) else value
