"""Items whose defect is gone: a record is due once, hides what came before it, and a later report is back."""

from __future__ import annotations

from fleet.findings.reader import read
from fleet.findings.recurrence import Recurrence
from fleet.store.rows import MirroredEntry
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.run import decide
from tests.triage.triage_log import FLEET, HUMAN, START, TRUSTED, finding, inputs

FP = "0123456789ab"
CLEAN = Recurrence().shown("2026-11-22T10:00:00Z", "r1").clean("2026-11-22T12:00:00Z", "r2")


def log(*texts: str, sender: str = FLEET) -> list[MirroredEntry]:
    return [
        MirroredEntry(epoch=0, index=index, sender=sender, timestamp=START, text=text)
        for index, text in enumerate(texts)
    ]


def listed(
    entries: list[MirroredEntry], figures: Recurrence | None = None
) -> tuple[tuple[WorklistItem, ...], tuple[str, ...]]:
    """The open items, and the records that are due."""
    done = decide(entries, TRUSTED, inputs(figures={FP: figures} if figures else {}))
    return tuple(item for item in done.items if item.rank), done.records


def test_a_clean_item_leaves_the_list_and_its_record_is_due_once() -> None:
    entries = log(finding(seen=FP))
    items, texts = listed(entries, CLEAN)
    assert items == ()
    (text,) = texts
    assert read(text).fp == FP
    assert read(text).title == "verified-fixed: compile panics"
    assert read(text).body == '{"at":"2026-11-22T12:00:00Z","runs":3,"who":"r2"}'
    items, texts = listed(log(finding(seen=FP), text), CLEAN)
    assert (items, texts) == ((), ())


def test_what_was_only_seen_or_not_reached_stays_and_counts() -> None:
    seen = Recurrence().shown("2026-11-22T10:00:00Z", "r1").shown("2026-11-23T10:00:00Z", "r2", "qa-x")
    (item,), texts = listed(log(finding(seen=FP)), seen.unreached("2026-11-23T11:00:00Z"))
    assert (item.count, item.last_seen, texts) == (2, "2026-11-23T10:00:00Z", ())


def test_a_report_after_the_record_is_a_regression_of_the_same_item_in_the_same_second_too() -> None:
    (text,) = listed(log(finding(seen=FP)), CLEAN)[1]
    entries = log(finding(seen=FP), text, finding(seen=FP, run="r3"))
    (item,), texts = listed(entries, CLEAN.shown("2026-11-24T00:00:00Z", "r3"))
    assert (item.fingerprint, item.regression, texts) == (FP, True, ())


def test_a_strangers_record_resolves_nothing() -> None:
    (text,) = listed(log(finding(seen=FP)), CLEAN)[1]
    ours = log(finding(seen=FP))
    theirs = [MirroredEntry(epoch=0, index=1, sender=HUMAN, timestamp=START, text=text)]
    items, _ = listed([*ours, *theirs])
    assert FP in [item.fingerprint for item in items]
    assert not any(item.regression for item in items)


def test_after_the_log_was_cleared_an_old_record_hides_nothing() -> None:
    (text,) = listed(log(finding(seen=FP)), CLEAN)[1]
    old = log(finding(seen=FP), text)
    new = [MirroredEntry(epoch=1, index=0, sender=FLEET, timestamp=START, text=finding(seen=FP))]
    (item,), _ = listed(new)
    assert (item.fingerprint, item.regression, listed(old)[0]) == (FP, False, ())
