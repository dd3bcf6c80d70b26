"""`[post] hold`: grave findings are posted once, after a person released them, whatever cuts that off."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fleet.config.platform import PostSection
from fleet.findings.closing import is_commitment
from fleet.findings.outage import WORD
from fleet.findings.reader import read
from fleet.findings.redact import Redactor
from fleet.runs.context import RunContext
from fleet.runs.proof.grades import graded
from fleet.runs.settlement.outbox import report_released
from fleet.store.journal import MEMORY, Journal
from fleet.store.rows import HOLD, DecisionRow, FindingRow
from fleet.triage.items.index import TriageIndex
from fleet.triage.items.unproven import PROVEN, WAITS, proving
from tests.runs.test_outbox import FP, HEADER, NOTHING, US, Rig

pytestmark = pytest.mark.anyio


class Cut(BaseException):
    """The process ends here."""


async def held(journal: Journal, **fields: Any) -> Rig:
    """A run that ended with a proven finding of severity critical."""
    rig = Rig(journal, hold=("critical",))
    await rig.confirmed("old")
    await journal.set_finding("old", FP, severity="critical", **fields)
    assert await rig.report("old") == "confirmed"
    await journal.claim("old", pid=1, pid_start=1)
    await journal.finish("old", "done", "")
    return rig


async def decide(rig: Rig, number: int, **fields: Any) -> None:
    at = f"2026-11-27T18:00:{number:02}Z"
    base = {"item": FP, "kind": "release", "reason": "read it", "who": "ann@desk", "platform": "devnet"}
    await rig.journal.add_decision(DecisionRow(**(base | {"at": at, "name": f"{number:012x}"} | fields)))


async def settle(rig: Rig, run: str) -> None:
    """The step of the settlement of `run` that posts what was released."""
    if not [row for row in await rig.journal.runs() if row.run_id == run]:
        await rig.confirmed(run)
        await rig.journal.set_finding(run, FP, state="posting")  # not its subject
        await rig.journal.set_finding(run, FP, state="repeated")
    parts = SimpleNamespace(fleet=rig.world, run=run, stream=NOTHING)
    await report_released(cast(RunContext, parts))


async def test_a_grave_finding_waits_until_a_person_releases_it_and_is_posted_once() -> None:
    async with await Journal.open(MEMORY) as journal:
        rig = await held(journal)
        await settle(rig, "new")
        (row,) = await journal.findings("old")
        assert (rig.log.texts, row.state, row.data) == ([], "confirmed", {HOLD: True})
        assert "fleet items release" in graded(row).why
        (waiting,) = proving([row], (), rig.world.clock.now())
        assert waiting.why == WAITS
        await decide(rig, 1)
        for _ in range(3):
            await settle(rig, "new")
        assert rig.log.texts == [f"{FP} by old"]
        assert [one.state for one in await journal.findings("old")] == ["posted"]


async def test_a_hash_keeps_the_date_of_what_waits_once_and_the_entry_itself_reveals_it() -> None:
    async with await Journal.open(MEMORY) as journal:
        rig = Rig(journal, hold=("critical",))
        rig.world.platform.post = PostSection(hold=("critical",), commit=True)  # type: ignore[misc]
        rig.world.redactor = Redactor()  # type: ignore[misc]
        await rig.confirmed("old")
        await journal.set_finding("old", FP, severity="critical")
        await rig.report("old")
        (only,) = rig.log.texts
        entry = read(only)
        assert is_commitment(entry)
        assert entry.title.endswith(hashlib.sha256(f"{FP} by old".encode()).hexdigest())
        assert FP not in only
        await journal.set_finding("old", FP, data={HOLD: True})  # killed before it was known
        assert [await rig.report("old") for _ in range(2)] == ["confirmed", "confirmed"]
        assert rig.log.texts == [only]
        await journal.claim("old", pid=1, pid_start=1)
        await journal.finish("old", "done", "")
        await decide(rig, 1)
        await settle(rig, "new")
        assert rig.log.texts == [only, f"{FP} by old"]
        index = TriageIndex(frozenset({US}))
        index.add_rows(0, [(at, US, at, text.encode()) for at, text in enumerate(rig.log.texts)])
        assert len(index.items()) == 1


async def test_an_undo_before_the_posting_keeps_it_back_and_a_release_again_lets_it_go() -> None:
    async with await Journal.open(MEMORY) as journal:
        rig = await held(journal)
        await decide(rig, 1)
        await decide(rig, 2, kind="undo", undoes=f"{1:012x}")
        await settle(rig, "new")
        assert rig.log.texts == []
        await decide(rig, 3)
        await settle(rig, "new")
        assert rig.log.texts == [f"{FP} by old"]


async def test_a_later_run_that_sees_it_again_is_held_too_and_one_of_both_is_posted() -> None:
    async with await Journal.open(MEMORY) as journal:
        text = HEADER.replace("low", "critical")
        rig = await held(journal, envelope=text)
        await rig.confirmed("again")
        await journal.set_finding("again", FP, severity="critical", envelope=text.replace("old", "again"))
        assert await rig.report("again") == "confirmed"
        await decide(rig, 1)
        await settle(rig, "new")
        assert await rig.report("again") == "repeated"
        assert rig.log.texts == [text]


@pytest.mark.parametrize(("severity", "probe"), [("high", "a"), ("critical", WORD)])
async def test_what_is_less_grave_and_an_outage_are_posted_at_once(severity: str, probe: str) -> None:
    async with await Journal.open(MEMORY) as journal:
        rig = Rig(journal, hold=("critical",))
        await rig.confirmed("old")
        await rig.report("old")
        row = FindingRow(run_id="old", fingerprint="f" * 12, state="confirmed", envelope="another")
        await journal.add_finding(replace(row, severity=severity, probe=probe))
        await rig.report_all("old")
        assert rig.log.texts == [f"{FP} by old", "another"]


def cutting(rig: Rig, at: int, *, after: bool) -> Callable[[], int]:
    """Cut at the so-manieth step of posting, before or after it takes effect; the number of steps so far."""
    steps = [0]

    def cut(call: Callable[..., Any]) -> Callable[..., Any]:
        async def step(*args: Any, **named: Any) -> Any:
            steps[0] += 1
            if steps[0] == at and not after:
                raise Cut
            found = await call(*args, **named)
            if steps[0] == at and after:
                raise Cut
            return found

        return step

    for owner, name in ((rig.journal, "set_finding"), (rig.journal, "claim_posting"), (rig.log, "post")):
        setattr(owner, name, cut(getattr(owner, name)))
    return lambda: steps[0]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 5))
async def test_a_posting_that_is_cut_off_anywhere_is_finished_by_its_recovery_alone(
    at: int, after: bool
) -> None:
    async with await Journal.open(MEMORY) as journal:
        rig = await held(journal)
        await settle(rig, "other")
        await decide(rig, 1)
        plain = journal.set_finding, journal.claim_posting, rig.log.post
        steps = cutting(rig, at, after=after)
        with pytest.raises(Cut):
            await settle(rig, "other")
        assert steps() == at
        journal.set_finding, journal.claim_posting, rig.log.post = plain  # type: ignore[method-assign]
        (row,) = await journal.findings("old")
        if row.state == "posting":  # its transaction may still come: no other run touches it
            before = list(rig.log.texts)
            await settle(rig, "third")
            assert rig.log.texts == before
        await settle(rig, "other")
        await settle(rig, "third")
        assert rig.log.texts == [f"{FP} by old"]
        (row,) = await journal.findings("old")
        assert (row.state, row.index) == ("posted", 0)
        assert [one.why for one in proving([row], (), rig.world.clock.now())] != [PROVEN]
