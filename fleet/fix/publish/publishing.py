"""From a checked patch to an open draft: intent, look at the fences, act, record.

STOP, dial, token and lease are read right before each push and each writing request, and again and again
while one is in flight, which ends it. A refusal before anything was sent withdraws the proposal. After that
it stays where it is and waits: a later look finds what has reached the server, and opens the draft once
that is permitted again; nothing is pushed twice. A process that a peer has taken for dead (one that was
stopped) ends without an act or a record; a branch that it pushed all the same, after the peer had withdrawn
the proposal, it deletes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fleet.errors import LostRun
from fleet.fix.model import CheckedPatch, FixTask, Published
from fleet.fix.parts import FixParts, FixWorld
from fleet.fix.permission.guard import FenceClosed, in_words
from fleet.fix.permission.permit import ProposePermit
from fleet.fix.permission.preconditions import ProposeRefusal
from fleet.fix.proposal_row import OWED, current, record_text, row_of
from fleet.store.failpoints import point
from fleet.store.rows import ProposalState

Moved = Callable[[str, str, str], None]
"""Told of each move: state, ref, why."""


@dataclass(frozen=True, slots=True)
class Publishing:
    """Publishes the proposal of one task. `who` is named in the record; `moved` gets each move."""

    world: FixWorld
    permit: ProposePermit
    parts: FixParts
    task: FixTask
    who: str
    moved: Moved

    async def push(self, patch: CheckedPatch, message: str) -> Published:
        """Push the branch; RunOver when it is not permitted."""
        run = self.task.run
        await self._move("pushing")
        point("push.begun")
        try:
            pushed = await self.permit.publisher(self.parts, self.task, run=run).push(
                self.task, patch, message
            )
        except FenceClosed as closed:
            state: ProposalState = "pushing" if closed.sent else "withdrawn"
            await self._note(state, closed, "waits: " if closed.sent else "")
            raise
        try:
            await self._move("opening", head=pushed.head, ref=pushed.ref)
        except (LostRun, ValueError):
            if await self.world.source.mine(run):
                raise
            row = await current(self.world, row_of(self.world, self.task))
            if row.state == "withdrawn":
                await self.permit.tidier(self.parts, self.task).close(self.task, row.why)
            raise FenceClosed(_lost(run)) from None
        return pushed

    async def open(self, title: str, body: str, *, run: str) -> Published:
        """Open the draft of a pushed branch; RunOver when it is not permitted now. `run`: still ours?"""
        point("open.begun")
        try:
            opened = await self.permit.publisher(self.parts, self.task, run=run).open(self.task, title, body)
        except FenceClosed as closed:
            await self._note("opening", closed, "waits: ")
            raise
        if run and not await self.world.source.mine(run):
            raise FenceClosed(_lost(run))
        await self.found(opened)
        return opened

    async def found(self, published: Published) -> None:
        """Record an opened proposal, and with it what the log is to have."""
        state: ProposalState = "opening" if published.state == "pushed" else published.state
        owed = {}
        if state in ("open", "merged"):
            reason = f"draft {published.ref}"
            owed = {OWED: record_text(self.world, self.task, "proposed", reason, self.who)}
        await self._move(state, owed, head=published.head, ref=published.ref, why="")

    async def _note(self, state: ProposalState, closed: FenceClosed, how: str = "") -> None:
        """Record a refusal; one by lease is for the peer to record, if it has ended the run already."""
        try:
            await self._move(state, why=f"{how}{in_words(closed.found)}")
        except (LostRun, ValueError):
            if closed.found.rule != "lease":
                raise

    async def _move(self, state: ProposalState, data: dict[str, str] | None = None, **changes: str) -> None:
        await self.world.journal.move_proposal(self.task.run, state, data, **changes)
        self.moved(state, changes.get("ref", ""), changes.get("why", ""))


def _lost(run: str) -> ProposeRefusal:
    return ProposeRefusal("lease", f"a peer owns run {run} now")
