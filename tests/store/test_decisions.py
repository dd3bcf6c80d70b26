"""Decisions of persons, and the records among the mirrored entries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.chain.node.codec import Entry
from fleet.store.journal import Journal
from fleet.store.rows import QUEUED, DecisionRow

pytestmark = pytest.mark.anyio
ONE = DecisionRow(
    item="0123456789ab",
    kind="snooze",
    reason="later",
    who="alice@box",
    at="2026-11-23T07:00:00Z",
    platform="p",
    name="aaaaaaaaaaaa",
    until="2026-11-24T07:00:00Z",
)


async def test_a_decision_is_kept_once_and_only_its_entry_becomes_known(journal: Journal) -> None:
    assert await journal.add_decision(ONE)
    assert not await journal.add_decision(replace(ONE, reason="another"))
    assert await journal.decisions("p") == [ONE]
    assert not await journal.add_decision(replace(ONE, entry=QUEUED))
    assert await journal.decisions("p") == [replace(ONE, entry=QUEUED)]
    assert not await journal.add_decision(ONE)
    assert not await journal.add_decision(replace(ONE, entry=7))
    assert not await journal.add_decision(replace(ONE, entry=QUEUED))
    assert await journal.decisions("p") == [replace(ONE, entry=7)]
    assert await journal.decisions("other") == []


async def test_records_are_found_among_the_entries(journal: Journal) -> None:
    head = "qa/v1 source=qa-triage "
    texts = [f"{head}sev=info", "a note", "qa/v1 source=qa-triage2 sev=info", f"{head}\U0010ffff", "qa/v1"]
    await journal.mirror(0, 0, [Entry("0xAA", n, text) for n, text in enumerate(texts)])
    found = await journal.record_entries("qa-triage")
    assert [(one.epoch, one.index, one.sender, one.text) for one in found] == [
        (0, 0, "0xaa", texts[0]),
        (0, 3, "0xaa", texts[3]),
    ]
