"""One proposal over a real journal: its ways, what is recorded, and that each fence stops it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from fleet.drivers.session import RunOver
from fleet.errors import FixError
from fleet.findings.envelope import read
from fleet.findings.records import read_record
from fleet.fix.model import CheckedPatch, CommandEnd, FixTask, GateStep, Published, StepResult, TrackerHit
from fleet.fix.ports import TreeCommand
from fleet.fix.propose import PATCH
from fleet.fix.recovery import EVIDENCE
from fleet.gate.model import Rung
from fleet.gate.stop import resume
from tests.doubles.fix import MemoryPublisher, MemoryTreeJails
from tests.fix.homes import FENCES, PASSED, FixHome
from tests.fix.tasks import FP, item

pytestmark = pytest.mark.anyio
HIT = TrackerHit("issue", "https://example.org/issues/7", "compile panics", "open", "names the fingerprint")
WAY = ["begun", "checked", "pushing", "opening", "open"]


async def test_a_checked_patch_becomes_an_open_draft(here: FixHome) -> None:
    assert await here.propose() == "open: https://example.org/pull/1"
    (row,) = await here.rows()
    assert (row.state, row.ref, row.item) == ("open", "https://example.org/pull/1", FP)
    assert (row.branch, row.base) == (f"qa-fleet/{FP}", "b" * 40)
    assert here.moves == WAY
    assert here.steps == [str(step) for step in GateStep]
    assert (await here.journal.spent("r1"))["calls"] == len(PASSED)
    evidence = here.folder("r1") / "evidence"
    assert len(json.loads((evidence / EVIDENCE).read_text())["steps"]) == len(PASSED)
    assert (evidence / PATCH).read_bytes() == b"--- a\n+++ b\n"
    assert not (here.folder("r1") / "fix").exists()


async def test_the_log_gets_one_record_of_it(here: FixHome) -> None:
    await here.propose()
    (text,) = here.log.texts
    record = read_record(read(text))
    assert record is not None
    assert (record.kind, record.item, record.reason) == ("proposed", FP, "draft https://example.org/pull/1")
    await here.upkeep.run()
    assert len(here.log.texts) == 1


@pytest.mark.parametrize("place", ["tracker", "commits"])
async def test_a_hit_is_linked_and_nothing_is_repeated(here: FixHome, place: str) -> None:
    if place == "tracker":
        here.parts.tracker_.hits = [HIT]
    else:
        here.parts.recent = [HIT]
    assert "nothing proposed: open issue https://example.org/issues/7" in await here.propose()
    assert (await here.rows(), here.parts.publisher_.pushes, here.steps) == ([], 0, [])
    kept = await here.journal.facts("propose.tracked.p.")
    assert list(kept) == [f"propose.tracked.p.{FP}"]
    facts = await here.permit.facts(FP, item(), named=False)
    assert "issues/7" in facts.tracked
    here.parts.tracker_.hits, here.parts.recent = (), ()
    assert (await here.propose("r2")).startswith("open")  # a person asks again: the hit is gone
    assert await here.journal.get(f"propose.tracked.p.{FP}") == ""


async def test_our_own_closed_draft_is_no_hit(here: FixHome) -> None:
    await here.propose()
    here.parts.publisher_.turn(f"qa-fleet/{FP}", "closed")
    await here.upkeep.run()
    here.parts.tracker_.hits = [TrackerHit("pull-request", "https://example.org/pull/1", "t", "closed", "w")]
    here.parts.publisher_.branches.clear()
    assert (await here.propose("r2")).startswith("open")


async def test_what_the_gate_holds_is_kept_with_its_reason(here: FixHome) -> None:
    here.parts.steps = (*PASSED[:5], StepResult(GateStep.OWN_TESTS, False, "3 failed"))
    assert await here.propose() == "held at own-tests: 3 failed"
    (row,) = await here.rows()
    assert (row.state, row.why) == ("held", "own-tests: 3 failed")
    assert (here.parts.publisher_.pushes, here.log.texts) == (0, [])


async def test_an_item_that_does_not_show_needs_a_repro(here: FixHome) -> None:
    here.parts.steps = (StepResult(GateStep.REPRODUCE, False, "clean in 3 of 3", {"looked": True}),)
    assert "held at reproduce" in await here.propose()
    (text,) = here.log.texts
    record = read_record(read(text))
    assert record is not None
    assert (record.kind, record.who) == ("needs-repro", "qa-fix")
    assert "does not show on a build of sample (main)" in record.reason


async def test_nothing_is_said_of_an_item_that_shows_now_and_then(here: FixHome) -> None:
    seen = {"looked": True, "shown": 1, "of": 3}
    here.parts.steps = (StepResult(GateStep.REPRODUCE, False, "shown 1 of 3 on the base", seen),)
    assert "held at reproduce" in await here.propose()
    assert here.log.texts == []


async def test_nothing_is_said_of_an_item_that_could_not_be_looked_at(here: FixHome) -> None:
    here.parts.steps = (StepResult(GateStep.REPRODUCE, False, "it does not build", {"code": 2}),)
    assert await here.propose() == "held at reproduce: it does not build"
    assert here.log.texts == []


async def test_a_slot_is_for_one_proposal(here: FixHome) -> None:
    await here.propose()
    with pytest.raises(RunOver, match="slots: 1 of 1 proposals of this item are open"):
        await here.propose("r2")
    assert await here.states() == ["open"]


async def test_a_failure_in_the_gate_frees_the_slot(here: FixHome) -> None:
    here.parts.fails = FixError("the repository does not answer")
    with pytest.raises(FixError):
        await here.propose()
    assert await here.states() == ["held"]


async def test_the_budget_ends_it_before_a_jail_starts(here: FixHome) -> None:
    with pytest.raises(RunOver) as over:
        await here.propose(calls=3)
    assert over.value.outcome == "budget_exceeded"
    assert len(here.parts.jails_.commands) == 3
    assert await here.states() == ["held"]


async def test_a_patch_with_a_secret_goes_nowhere(here: FixHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(here.redactor), "text", lambda self, text: text.replace("+++", "xxx"))
    with pytest.raises(RunOver, match="secret"):
        await here.propose()
    assert (await here.states(), here.parts.publisher_.pushes) == (["held"], 0)
    assert "secret" in (await here.permit.facts(FP, item(), named=False)).tried


@pytest.mark.parametrize("fence", FENCES)
async def test_nothing_is_pushed_once_a_fence_closes(here: FixHome, fence: str) -> None:
    """It closes with the last step of the gate, when everything was checked."""
    close, outcome = FENCES[fence]
    texts = here.parts.texts

    def closing(*args: object) -> object:
        close(here)
        return texts(*args)  # type: ignore[arg-type]

    here.parts.texts = closing  # type: ignore[method-assign,assignment]
    with pytest.raises(RunOver, match=fence) as over:
        await here.propose()
    assert over.value.outcome == outcome
    assert here.parts.publisher_.pushes == 0
    assert await here.states() == ["withdrawn"]


@pytest.mark.parametrize("fence", FENCES)
async def test_nothing_is_opened_once_a_fence_closes(here: FixHome, fence: str) -> None:
    close, _ = FENCES[fence]
    here.parts.publisher_.after = lambda act: close(here) if act == "push" else None
    with pytest.raises(RunOver, match=fence):
        await here.propose()
    assert (here.parts.publisher_.pushes, here.parts.publisher_.opened) == (1, 0)
    (row,) = await here.rows()
    assert (row.state, row.why.startswith(f"waits: {fence}")) == ("opening", True)


@pytest.mark.parametrize("fence", ["stop", "dial"])
async def test_no_jail_starts_once_a_fence_closes(here: FixHome, fence: str) -> None:
    close, _ = FENCES[fence]
    ran = here.parts.jails_.commands
    append = ran.append

    class Closing(list):  # type: ignore[type-arg]
        def append(self, command: object) -> None:
            close(here)
            append(command)  # type: ignore[arg-type]

    here.parts.jails_.commands = Closing()
    with pytest.raises(RunOver):
        await here.propose()
    assert len(ran) == 1


class Slow(MemoryPublisher):
    """Its server closes a fence, has the branch or not, and does not answer."""

    def __init__(self, here: FixHome, fence: str, *, arrives: bool) -> None:
        super().__init__()
        self._here, self._fence, self._arrives = here, fence, arrives

    async def push(self, task: FixTask, patch: CheckedPatch, message: str) -> Published:
        if self._arrives:
            await super().push(task, patch, message)
        else:
            await self.ask()
        FENCES[self._fence][0](self._here)
        await anyio.sleep_forever()
        raise AssertionError


@pytest.mark.parametrize("fence", FENCES)
@pytest.mark.parametrize("arrives", [True, False], ids=["arrives", "is lost"])
async def test_a_push_that_a_fence_cut_off_is_settled_by_looking(
    here: FixHome, fence: str, arrives: bool
) -> None:
    here.parts.publisher_ = slow = Slow(here, fence, arrives=arrives)
    with pytest.raises(RunOver, match=fence):
        await here.propose()
    (row,) = await here.rows()
    assert (row.state, row.why.startswith(f"waits: {fence}")) == ("pushing", True)
    resume(here.state)
    here.turn(Rung.PROPOSE)
    here.allow()
    here.owned = True
    await here.upkeep.run()
    assert await here.states() == ["open" if arrives else "withdrawn"]
    assert (slow.pushes, slow.opened) == (int(arrives), int(arrives))


@pytest.mark.parametrize("fence", ["stop", "dial"])
async def test_a_jail_that_runs_ends_once_a_fence_closes(here: FixHome, fence: str) -> None:
    class Endless(MemoryTreeJails):
        async def run(self, tree: Path, command: TreeCommand) -> CommandEnd:
            FENCES[fence][0](here)
            await anyio.sleep_forever()
            raise AssertionError

    here.parts.jails_ = Endless()
    with pytest.raises(RunOver, match=fence) as over:
        await here.propose()
    assert over.value.outcome == FENCES[fence][1]
    assert await here.states() == ["held"]


@pytest.mark.parametrize("fence", ["stop", "dial"])
async def test_the_record_of_a_draft_waits_once_a_fence_closes(here: FixHome, fence: str) -> None:
    here.parts.publisher_.after = lambda act: FENCES[fence][0](here) if act == "open" else None
    await here.propose()
    assert (await here.states(), here.log.texts) == (["open"], [])
    resume(here.state)
    here.turn(Rung.PROPOSE)
    await here.upkeep.run()
    assert len(here.log.texts) == 1


async def test_what_was_merged_of_us_is_no_hit_when_the_item_is_back(here: FixHome) -> None:
    await here.propose("r1")
    (row,) = await here.rows()
    here.parts.recent = (TrackerHit("commit", row.head, "a fix", "merged", f"its message names {FP}"),)
    await here.journal.move_proposal("r1", "closed")
    assert (await here.propose("r2")).startswith("open: ")
    await here.journal.move_proposal("r2", "merged")
    here.parts.recent = (TrackerHit("commit", "5" * 40, "squashed", "merged", f"its message names {FP}"),)
    assert (await here.propose("r3")).startswith("open: ")


async def test_a_commit_of_a_person_is_a_hit(here: FixHome) -> None:
    here.parts.recent = (TrackerHit("commit", "5" * 40, "by hand", "merged", f"its message names {FP}"),)
    assert (await here.propose("r1")).startswith("nothing proposed: merged commit 5555")


async def test_a_branch_pushed_after_a_peer_had_withdrawn_it_is_deleted(here: FixHome) -> None:
    """Stopped between the last look and the push, taken for dead, and gone on."""

    def taken_for_dead(act: str) -> None:
        if act == "push":
            here.owned = False
            over = "UPDATE proposals SET state = 'withdrawn'"
            with closing(sqlite3.connect(here.state / "fleet.db")) as peer, peer:
                peer.execute(over)

    here.parts.publisher_.before = taken_for_dead
    with pytest.raises(RunOver, match="lease"):
        await here.propose()
    assert (here.parts.publisher_.pushes, here.parts.publisher_.opened) == (1, 0)
    assert here.parts.publisher_.branches[f"qa-fleet/{FP}"].state == "closed"
    assert await here.states() == ["withdrawn"]


async def test_a_draft_opened_after_its_run_was_lost_is_for_the_peer_to_record(here: FixHome) -> None:
    here.parts.publisher_.after = lambda act: setattr(here, "owned", act != "open")
    with pytest.raises(RunOver, match="lease"):
        await here.propose()
    assert (await here.states(), here.log.texts) == (["opening"], [])
    here.owned = True
    await here.upkeep.settle()
    assert (await here.states(), len(here.log.texts), here.parts.publisher_.opened) == (["open"], 1, 1)
