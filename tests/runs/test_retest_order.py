"""Which items are due: not what is known to be clean, unless it was seen or reopened since."""

from __future__ import annotations

import pytest

from fleet.findings.recurrence import Recurrence
from fleet.runs.proof.retest_order import is_due
from fleet.store.rows import ItemRow

FP = "ab" * 6
SEEN, CLEAN, AFTER = "2026-06-12T10:00:00Z", "2026-06-12T11:00:00Z", "2026-06-12T12:00:00Z"


@pytest.mark.parametrize(
    ("state", "since", "last", "due"),
    [
        ("confirmed", SEEN, SEEN, False),
        ("confirmed", SEEN, AFTER, True),
        ("confirmed", AFTER, SEEN, True),  # a person reopened it
        ("fixed", AFTER, SEEN, True),  # and another one said that it is fixed
        ("verified-fixed", CLEAN, SEEN, False),
        ("dismissed", AFTER, AFTER, False),
    ],
)
def test_what_is_clean_is_due_again(state: str, since: str, last: str, due: bool) -> None:
    item = ItemRow(
        fingerprint=FP,
        state=state,
        severity="low",
        surface="ux",
        title="it is wrong",
        persona="qa-ux",
        repro="",
        since=since,
    )
    figures = Recurrence(runs=1, last=last, clean_at=CLEAN, looked=CLEAN)
    assert is_due(item, {FP: figures}) is due
