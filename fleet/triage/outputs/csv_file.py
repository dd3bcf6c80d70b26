"""The worklist as CSV (RFC 4180) for a spreadsheet: no cell is read as a formula."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO

from fleet.text import csv_cell
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import WorklistHeader, remedy_of

COLUMNS = (
    *("rank", "fingerprint", "severity", "surface", "title", "state", "proof", "count", "days"),
    *("score", "first_seen", "last_seen", "since", "reason", "source", "why", "repro", "evidence", "remedy"),
)
_LONGEST = 32_000
"""Characters of a cell; the usual spreadsheets take 32,767."""


def to_csv(items: Sequence[WorklistItem], _header: WorklistHeader | None = None) -> bytes:
    """UTF-8 with a header line; one line per item."""
    out = StringIO()
    rows = csv.writer(out, quoting=csv.QUOTE_MINIMAL)
    rows.writerow(COLUMNS)
    for item in items:
        known = {column: getattr(item, column, "") for column in COLUMNS} | {"remedy": remedy_of(item)}
        values = known.values()
        rows.writerow([csv_cell(one, _LONGEST) if isinstance(one, str) else one for one in values])
    return out.getvalue().encode()
