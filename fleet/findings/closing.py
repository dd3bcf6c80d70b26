"""The entry with which a run that spent its budget ends: of the run, and no item of the platform."""

from __future__ import annotations

from fleet.findings.reader import ParsedEntry

TITLE = "run ended: "
BODY = "budget-exceeded: "


def is_closing(entry: ParsedEntry) -> bool:
    """Whether an entry closes a run, if its sender is trusted: it reports no defect."""
    return entry.title.startswith(TITLE) and entry.body.startswith(BODY) and not entry.repro
