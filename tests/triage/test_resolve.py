"""Items that a person marked fixed: off the list until reported again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fleet.clock import iso_seconds
from fleet.errors import ConfigError
from fleet.findings.recurrence import Recurrence
from fleet.store.journal import MEMORY, Journal
from fleet.store.rows import DecisionRow, MirroredEntry
from fleet.triage.items.decisions import named
from fleet.triage.items.fold import Decided
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.run import RESOLUTIONS, decide, migrate
from tests.triage.triage_log import HUMAN, START, TRUSTED, finding, folded, inputs, log

KEY = folded(log(finding()))[0].fingerprint


def worklist(
    entries: list[MirroredEntry], *decisions: DecisionRow, since: str = ""
) -> tuple[WorklistItem, ...]:
    done = decide(entries, TRUSTED, inputs(decisions=decisions, since=since))
    return tuple(item for item in done.items if item.rank)


def resolved(minute: int) -> DecisionRow:
    at = iso_seconds(START + 60 * minute)
    return named(DecisionRow(item=KEY, kind="fixed", reason="deployed", who="alice", at=at))


def test_row_45_a_resolved_item_is_gone_and_kept_with_its_state() -> None:
    entries = log(finding(run="r1"), finding(run="r2"), finding("other"))
    assert len(worklist(entries)) == 2
    assert [item.repro for item in worklist(entries, resolved(1))] == ['qa_compile(source="other")']
    done = decide(entries, TRUSTED, inputs(decisions=(resolved(1),)))
    assert [(item.rank, item.state) for item in done.items] == [(1, "confirmed"), (0, "fixed")]


def test_row_45_a_later_report_is_a_regression_with_both_dates() -> None:
    entries = log(finding(run="r1"), finding("other"), finding(run="r2"))
    item = next(i for i in worklist(entries, resolved(1)) if i.regression)
    assert (item.fingerprint, item.count, item.proof, item.state) == (KEY, 1, "confirmed", "regression")
    assert (item.resolved_at, item.first_seen) == ("2026-06-12T10:21:48Z", "2026-06-12T10:22:48Z")
    assert item.why.endswith("regression: resolved 2026-06-12T10:21:48Z, reported again 2026-06-12T10:22:48Z")


def test_resolving_the_regression_hides_it_again() -> None:
    entries = log(finding(run="r1"), finding(run="r2"))
    assert worklist(entries, resolved(0), resolved(1)) == ()


def test_row_44_what_was_decided_before_the_log_was_cleared_hides_nothing() -> None:
    entries = log(finding(run="r1"), finding("other"), (HUMAN, "third"), epoch=1)
    found = worklist(entries, resolved(1_000), since=iso_seconds(START + 60 * 1_001))
    assert [(item.regression, item.count) for item in found] == [(False, 1)] * 3


def test_a_stranger_reopens_nothing() -> None:
    entries = log(finding(run="r1"), (HUMAN, finding(run="r2", sev="critical")))
    assert worklist(entries, resolved(0)) == ()
    (item,) = decide(entries, TRUSTED, inputs(decisions=(resolved(0),))).items
    assert (item.state, item.trusted, item.severity) == ("fixed", True, "high")


def test_a_reopened_item_that_is_clean_again_gets_a_record_of_its_own() -> None:
    def passed(entries: list[MirroredEntry], clean: int, *decisions: DecisionRow) -> Decided:
        figures = {KEY: Recurrence(runs=1, clean_at=iso_seconds(START + 60 * clean), clean_run="r2")}
        return decide(entries, TRUSTED, inputs(figures=figures, decisions=decisions))

    (record,) = passed(log(finding()), 1).records
    entries = log(finding(), record)
    assert passed(entries, 1).records == ()
    reopened = named(replace(resolved(2), kind="reopen"))
    assert passed(entries, 1, reopened).items[0].state == "confirmed"
    (again,) = passed(entries, 3, reopened).records
    assert passed(log(finding(), record, again), 3, reopened).records == ()


@pytest.mark.anyio
async def test_older_resolutions_become_decisions_once_and_damage_is_loud() -> None:
    async with await Journal.open(MEMORY) as journal:
        old = [{"key": KEY, "at": START, "epoch": 0, "note": "deployed", "index": -1}]
        await journal.put(RESOLUTIONS, json.dumps(old))
        for _ in range(2):
            await migrate(journal, "p")
            (made,) = await journal.decisions("p")
            assert (made.item, made.kind, made.reason, made.at) == (
                KEY,
                "fixed",
                "deployed",
                iso_seconds(START),
            )
        await journal.put(RESOLUTIONS, '[{"key": "x"}]')
        with pytest.raises(ConfigError, match="cannot be read"):
            await migrate(journal, "p")
