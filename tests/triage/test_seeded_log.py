"""The list of one seeded log, byte for byte: what is made faster says the same."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

from fleet.findings.recurrence import Recurrence
from fleet.triage.items.fold import TriageFold
from fleet.triage.items.pass_inputs import PassInputs
from fleet.triage.items.worklist import as_json
from fleet.triage.run import decide
from tests.triage.seeded_log import SeededLog
from tests.triage.triage_log import START, TRUSTED

DIGEST = "534c183c79f8f1d234b10e16aee93b78598f4f87e6fff94198546a652910be55"


def digest_of(count: int, cuts: int) -> str:
    """SHA-256 over the lists of all passes on a log of this many entries, and of the records they post."""
    made = SeededLog(7)
    entries, found = made.entries(count), hashlib.sha256()
    fold, size = TriageFold(TRUSTED), -(-count // cuts)
    for cut in range(cuts):
        at = datetime.fromtimestamp(START, UTC) + timedelta(hours=10 * cut)
        figures = {name: Recurrence(runs=cut + 2, last="2026-07-01T00:00:00Z") for name in made.names[:9]}
        known = PassInputs(now=at, figures=figures)
        fold.add(entries[cut * size : (cut + 1) * size])
        decided = fold.decide(known)
        asked = [(one.a, one.b) for one in fold.similar()]
        found.update(as_json([decided.items, decided.summary, decided.records, decided.unread, asked]))
    assert decide(entries, TRUSTED, known) == decided
    return found.hexdigest()


def test_the_list_of_a_seeded_log_has_the_same_bytes() -> None:
    assert digest_of(1_500, 5) == DIGEST
