"""Which items are due, and which come first: what asks for code that changed since."""

from __future__ import annotations

import pytest

from fleet.chain.node.abi import FUNCTIONS
from fleet.findings.recurrence import Recurrence
from fleet.runs.proof.item_questions import KnownItem
from fleet.runs.proof.retest_order import changed_first, is_due
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


def test_what_asks_for_a_function_that_changed_since_comes_first() -> None:
    def known(name: str, repro: str) -> KnownItem:
        item = ItemRow(
            fingerprint=name,
            state="confirmed",
            severity="low",
            surface="on-chain",
            title="it is wrong",
            persona="qa-security",
            repro=repro,
        )
        return KnownItem(item)

    credit = "0x" + FUNCTIONS["creditOf"].selector.hex()
    order = [
        known("other", 'qa_chain(function="creditOfAll")'),
        known("named", 'qa_chain(watch=["creditOf(1)"])'),
        known("again", 'qa_chain(function="creditOf")'),
        known("raw", 'qa_chain(simulate="0x11223344")'),
    ]
    figures = {name: Recurrence(looked=SEEN) for name in ("other", "named", "raw")} | {
        "again": Recurrence(looked=AFTER)
    }
    changed = {credit: CLEAN, "0x11223344": CLEAN}
    found = [one.item.fingerprint for one in changed_first(order, figures, changed)]
    assert found == ["named", "raw", "other", "again"]
