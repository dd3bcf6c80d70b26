"""Entries of the fleet's that are no item of the platform: of a run that spent its budget, at its end, and of
a finding that waits for a person, by its hash alone."""

from __future__ import annotations

import hashlib

from fleet.findings.reader import ParsedEntry

TITLE = "run ended: "
BODY = "budget-exceeded: "


def is_closing(entry: ParsedEntry) -> bool:
    """Whether an entry closes a run, if its sender is trusted: it reports no defect."""
    return entry.title.startswith(TITLE) and entry.body.startswith(BODY) and not entry.repro


COMMITTED = "a finding waits for a person; its entry will have the SHA-256 "


def digest_of(entry: str) -> str:
    """The SHA-256 of an entry's text."""
    return hashlib.sha256(entry.encode()).hexdigest()


def is_commitment(entry: ParsedEntry) -> bool:
    """Whether an entry only keeps the date of one to come, if its sender is trusted: it reports no defect."""
    return entry.title.startswith(COMMITTED) and not entry.body and not entry.repro
