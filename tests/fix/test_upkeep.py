"""What becomes of proposals after their run: settled by looking, closed with their item, withdrawn."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import anyio
import pytest

from fleet.clock import SystemClock
from fleet.errors import FixError, Refused, UsageError
from fleet.fix.model import Published
from fleet.fix.proposal_row import OWED, row_of, task_again, task_of
from fleet.fix.recovery import EVIDENCE
from fleet.fix.remains import clear_remains
from fleet.fix.repository.git import DEADLINE_S
from fleet.gate.model import Rung
from fleet.service.proposal_watch import ProposalWatch
from fleet.store.rows import ProposalState
from tests.doubles.fix import patch_of
from tests.fix.homes import PASSED, FixHome, MemoryFeedback
from tests.fix.tasks import FP, item

pytestmark = pytest.mark.anyio
BRANCH = f"qa-fleet/{FP}"
WAY: tuple[ProposalState, ...] = ("checked", "pushing", "opening")


async def left_at(here: FixHome, state: ProposalState, *, pushed: bool, opened: bool) -> None:
    """What a killed run leaves."""
    await here.begin("r1")
    task = await task_of(here, item(), "r1")
    assert not await here.journal.begin_proposal(row_of(here, task), per_item=1, most=3)
    data = {"title": "t", "body": "b", "message": "m"}
    for step in WAY[: WAY.index(state) + 1] if state in WAY else ():
        await here.journal.move_proposal("r1", step, data)
    if pushed:
        await here.parts.publisher_.push(task, patch_of(task), "m")
    if opened:
        await here.parts.publisher_.open(task, "t", "b")
    (here.folder("r1") / "fix").mkdir(parents=True)


@pytest.mark.parametrize(
    ("state", "pushed", "opened", "after"),
    [
        ("begun", False, False, "withdrawn"),
        ("checked", False, False, "withdrawn"),
        ("pushing", False, False, "withdrawn"),
        ("pushing", True, False, "open"),
        ("opening", True, False, "open"),
        ("opening", True, True, "open"),
        ("opening", False, False, "withdrawn"),
    ],
)
async def test_a_dead_run_is_settled_by_looking(
    here: FixHome, state: ProposalState, pushed: bool, opened: bool, after: str
) -> None:
    await left_at(here, state, pushed=pushed, opened=opened)
    assert await here.upkeep.run() == []  # its run lives, for all that is known
    await here.end("r1")
    await here.upkeep.run()
    await here.upkeep.run()
    assert await here.states() == [after]
    assert here.parts.publisher_.pushes == int(pushed)
    assert here.parts.publisher_.opened == int(after == "open")
    assert len(here.log.texts) == int(after == "open")
    assert not (here.folder("r1") / "fix").exists()


async def test_no_draft_is_opened_of_a_branch_that_holds_commits_of_others(here: FixHome) -> None:
    await left_at(here, "pushing", pushed=False, opened=False)
    await here.end("r1")
    theirs = Published(BRANCH, BRANCH, "f" * 40, "pushed", ours=False)
    here.parts.publisher_.branches[BRANCH] = theirs
    await here.upkeep.settle()
    assert (await here.states(), here.parts.publisher_.opened) == (["withdrawn"], 0)
    assert here.parts.publisher_.branches[BRANCH] == theirs


@pytest.mark.parametrize("again", [False, True], ids=["alone", "another-has-the-branch"])
async def test_a_push_that_arrives_after_the_look_is_looked_for_once_more(here: FixHome, again: bool) -> None:
    """A server may end a push without its client; the branch goes, unless a later proposal has it."""
    await left_at(here, "pushing", pushed=False, opened=False)
    await here.end("r1")
    here.clock = AdvancedClock()
    await here.upkeep.settle()
    (row,) = await here.rows()
    await here.parts.publisher_.push(task_again(here, row), patch_of(task_again(here, row)), "m")
    if again:
        await here.journal.begin_proposal(replace(row, proposal_id="r2"), per_item=1, most=3)
        await here.begin("r2")
    await here.upkeep.settle()
    assert here.parts.publisher_.branches[BRANCH].state == "pushed"
    here.clock.late += timedelta(seconds=DEADLINE_S + 2)
    await here.upkeep.settle()
    assert here.parts.publisher_.branches[BRANCH].state == ("pushed" if again else "closed")
    closed = len(here.parts.publisher_.reasons)
    await here.upkeep.settle()
    assert (closed, len(here.parts.publisher_.reasons)) == (int(not again), int(not again))


class AdvancedClock(SystemClock):
    """A clock that can be put forward."""

    late = timedelta()

    def now(self) -> datetime:
        return super().now() + self.late


@pytest.mark.parametrize("fence", ["dial", "token"])
async def test_a_pushed_branch_waits_until_it_may_be_opened(here: FixHome, fence: str) -> None:
    await left_at(here, "opening", pushed=True, opened=False)
    await here.end("r1")
    if fence == "dial":
        here.turn(Rung.EXERCISE)
    else:
        (here.tokens / FP).unlink()
    await here.upkeep.run()
    assert (await here.states(), here.parts.publisher_.opened) == (["opening"], 0)
    here.turn(Rung.PROPOSE)
    here.allow()
    await here.upkeep.run()
    assert (await here.states(), here.parts.publisher_.opened) == (["open"], 1)


@pytest.mark.parametrize("state", ["verified-fixed", "fixed", "dismissed"])
async def test_a_draft_is_closed_with_its_item(here: FixHome, state: str) -> None:
    await here.propose()
    await here.upkeep.run([item()])
    assert await here.states() == ["open"]
    await here.upkeep.run([item("aaaaaaaaaaaa", state=state, names=("aaaaaaaaaaaa", FP))])
    assert await here.states() == ["closed"]
    assert here.parts.publisher_.reasons == {BRANCH: f"the item is {state}"}


async def test_below_propose_not_even_a_draft_is_closed(here: FixHome) -> None:
    await here.propose()
    here.turn(Rung.EXERCISE)
    await here.upkeep.run([item(state="verified-fixed")])
    assert (await here.states(), here.parts.publisher_.reasons) == (["open"], {})


@pytest.mark.parametrize("state", ["merged", "closed"])
async def test_what_a_person_did_is_noticed(here: FixHome, state: str) -> None:
    await here.propose()
    here.parts.publisher_.turn(BRANCH, state)  # type: ignore[arg-type]
    assert await here.upkeep.run() == [f"proposal r1 of {FP}: {state} https://example.org/pull/1"]
    assert await here.states() == [state]


async def test_a_person_withdraws_at_any_rung_but_not_from_a_live_run(here: FixHome) -> None:
    await here.propose()
    here.turn(Rung.OBSERVE)
    (row,) = await here.rows()
    done = await here.upkeep.withdraw(row, "not wanted")
    assert (done.state, done.why) == ("withdrawn", "not wanted")
    assert here.parts.publisher_.reasons == {BRANCH: "not wanted"}
    await here.begin("r2")
    with pytest.raises(UsageError, match="still at work"):
        await here.upkeep.withdraw(replace(row, proposal_id="r2"), "x")


async def test_a_person_asks_for_an_answer_and_it_holds_what_the_gate_saw(here: FixHome) -> None:
    await here.propose()
    (row,) = await here.rows()
    assert await here.upkeep.answer(row, 31) == "https://example.org/pull/1#31"
    assert here.parts.publisher_.answers == {31: PASSED}
    (here.tokens / FP).unlink()
    with pytest.raises(Refused, match="no token"):
        await here.upkeep.answer(row, 32)
    here.allow()
    here.turn(Rung.EXERCISE)
    with pytest.raises(Refused, match="needs propose"):
        await here.upkeep.answer(row, 32)
    here.turn(Rung.PROPOSE)
    (here.folder("r1") / "evidence" / EVIDENCE).unlink()
    with pytest.raises(FixError, match="what the gate saw is not here"):
        await here.upkeep.answer(row, 32)
    assert list(here.parts.publisher_.answers) == [31]


async def test_a_repository_that_is_gone_makes_it_wait(here: FixHome) -> None:
    await here.propose()
    here.config = here.config.model_copy(update={"repositories": {}})
    await here.upkeep.run([item(state="dismissed")])
    assert await here.states() == ["open"]


async def test_a_start_settles_what_is_halfway_and_leaves_open_drafts_alone(here: FixHome) -> None:
    await left_at(here, "opening", pushed=True, opened=True)
    watch = ProposalWatch(here.upkeep)
    assert not await watch.look()  # its run lives, for all that is known
    await here.end("r1")
    assert await watch.look()
    assert (await here.states(), len(here.log.texts)) == (["open"], 1)
    here.parts.publisher_.turn(BRANCH, "merged")
    assert not await watch.look()


async def test_below_propose_a_start_only_keeps_its_books(here: FixHome) -> None:
    await left_at(here, "pushing", pushed=True, opened=False)
    await here.end("r1")
    here.turn(Rung.OBSERVE)
    assert await here.upkeep.settle() == []
    assert (await here.states(), here.parts.publisher_.opened, here.log.texts) == (["pushing"], 0, [])
    owed = {OWED: "a record"}
    await here.journal.move_proposal("r1", "withdrawn", owed)
    assert (await here.upkeep.settle(), here.log.texts) == ([], [])
    here.turn(Rung.PROPOSE)
    await here.upkeep.settle()
    assert here.log.texts == ["a record"]


class SlowFeedback(MemoryFeedback):
    """Others get their turn between a look and a post."""

    async def find(self, text: str, sender: str, *, since: int = 0) -> int | None:
        found = await super().find(text, sender, since=since)
        await anyio.sleep(0.05)
        return found


async def test_two_looks_at_once_post_one_record(here: FixHome) -> None:
    here.log = SlowFeedback()
    await left_at(here, "opening", pushed=True, opened=True)
    await here.end("r1")
    upkeep = here.upkeep
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(upkeep.settle)
    assert len(here.log.texts) == 1


async def test_remains_of_the_dead_are_removed_at_a_start(here: FixHome) -> None:
    kept = here.state / "proposals" / "sample" / BRANCH / "request.txt"
    left = ("runs/r1/fix/tree", "trees/r1-00/tree", f"proposals/sample/{BRANCH}/index-0/x")
    for name in left:
        (here.state / name).mkdir(parents=True)
    kept.write_text("a request")
    assert await clear_remains(here.state) == 3
    assert [name for name in left if (here.state / name).parent.exists()] == []
    assert kept.exists()
    (here.state / "trees" / "a-file").write_text("of somebody else")
    assert await clear_remains(here.state) == 0


async def test_a_draft_that_conflicts_with_its_base_is_marked(here: FixHome) -> None:
    await here.propose()
    branches, name = here.parts.publisher_.branches, f"qa-fleet/{FP}"
    for conflicts, why in ((True, "conflicts with main as it is now"), (False, "")):
        branches[name] = replace(branches[name], conflicts=conflicts)
        await here.upkeep.run()
        (row,) = await here.rows()
        assert (row.state, row.why.partition(":")[0]) == ("open", why)
