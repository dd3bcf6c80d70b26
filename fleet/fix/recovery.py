"""Proposals that no live run is at work on, settled by looking at the publisher, never by repeating an act.

    begun, checked   nothing left this machine: withdrawn
    pushing          no branch of ours: withdrawn; a branch: it was pushed: its draft is opened, if permitted
    opening          the same
    withdrawn        a push that a kill cut off may arrive later at a server: a second look deletes its branch
    open             merged or closed by a person is noticed; closed by us once its item is resolved

A draft that may not be opened or closed now (STOP, dial, token) waits, and so, below `propose`, do records
that the log lacks. Work trees of ended runs are removed. One task at a time does this; on a shared journal
one daemon, whose turn ends with it (`fleet/runs/settlement/turn.py`).
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import anyio
from anyio import to_thread
from pydantic import TypeAdapter

from fleet.clock import iso
from fleet.drivers.session import RunOver
from fleet.errors import FixError, FleetError, Refused, UsageError
from fleet.fix.model import StepResult
from fleet.fix.parts import WORK, FixParts, FixWorld
from fleet.fix.permission.guard import FenceClosed
from fleet.fix.permission.permit import ProposePermit
from fleet.fix.ports import by_hand
from fleet.fix.proposal_row import current, owes, post_owed, task_again
from fleet.fix.publish.publishing import Publishing
from fleet.fix.repository.git import DEADLINE_S
from fleet.runs.settlement.turn import posting
from fleet.store.rows import OPEN_PROPOSALS, ProposalRow, ProposalState
from fleet.triage.items.worklist import WorklistItem

SETTLING = "propose.settling"
EVIDENCE = "proposal.json"
"""File of a run's evidence: the steps of the gate."""
_STEPS = TypeAdapter(tuple[StepResult, ...])
CONFLICTS = "conflicts with {} as it is now: withdraw it and propose again, or merge by hand"
HALFWAY = tuple(state for state in OPEN_PROPOSALS if state != "open")
LATE = "late"
"""In a proposal's data: when (ISO) to look once more for a branch that was pushed and not found; then ""."""
RESOLVED = frozenset({"fixed", "verified-fixed", "dismissed"})
"""States of an item that close its draft."""
_LOG = logging.getLogger("fleet.fix")


@dataclass(frozen=True, slots=True)
class ProposalUpkeep:
    """Looks after the proposals of one platform; what could not be done is logged and tried again."""

    world: FixWorld
    parts: Callable[[], FixParts]
    permit: ProposePermit
    alone: anyio.Lock = field(default_factory=anyio.Lock)

    async def run(self, items: Sequence[WorklistItem] = ()) -> list[str]:
        """One round; what changed, in words. `items` are those of the worklist, open and closed."""
        return await self._round(OPEN_PROPOSALS, items)

    async def settle(self) -> list[str]:
        """A round over those alone that a dead process left halfway, or whose record the log may lack."""
        return await self._round(HALFWAY, ())

    async def _round(self, states: Collection[ProposalState], items: Sequence[WorklistItem]) -> list[str]:
        said: list[str] = []
        if not await self._due(states):
            return said
        async with self.alone, _turn(self.world) as mine:
            for row in await self._due(states) if mine else ():
                if not await self._over(row):
                    continue
                try:
                    said += await self._one(row, items)
                except (FleetError, RunOver, ValueError) as error:  # ValueError: a person withdrew it now
                    _LOG.warning("proposal %s waits: %s", row.proposal_id, error)
        return said

    async def _due(self, states: Collection[ProposalState]) -> list[ProposalRow]:
        """Rows to look at; read again once it is our turn, since another may have settled them."""
        rows = await self.world.journal.proposals(self.world.platform.name)
        now = iso(self.world.clock.now())
        return [row for row in rows if row.state in states or owes(row) or "" < row.data.get(LATE, "") < now]

    async def withdraw(self, row: ProposalRow, why: str) -> ProposalRow:
        """A person takes a proposal back: its draft is closed, its branch deleted, at any rung."""
        if not await self._over(row):
            raise UsageError(
                f"run {row.proposal_id} is still at work on it", remedy=f"fleet runs cancel {row.proposal_id}"
            )
        if row.state in ("pushing", "opening", "open"):
            task = task_again(self.world, row)
            await self.parts().publisher(task, by_hand).close(task, why)
        await self.world.journal.move_proposal(row.proposal_id, "withdrawn", why=why)
        return await current(self.world, row)

    async def answer(self, row: ProposalRow, comment: int) -> str:
        """A person asks for an answer to a comment on an open draft; where it is. Refused by the fences and
        without the permission to push; FixError when what the gate saw is not here any more."""
        if (found := await self.permit.refused(row.item)) is not None:
            raise Refused(found.reason, rule=found.rule)
        task = task_again(self.world, row)
        path = self.world.folder(row.proposal_id) / "evidence" / EVIDENCE
        try:
            steps = _STEPS.validate_python(json.loads(await to_thread.run_sync(path.read_bytes))["steps"])
        except (OSError, ValueError, KeyError) as error:
            raise FixError(f"what the gate saw is not here: {path.name}: {error}") from None
        try:
            return await self.permit.publisher(self.parts(), task).answer(task, comment, steps)
        except FenceClosed as closed:
            raise Refused(closed.found.reason, rule=closed.found.rule) from None

    async def _over(self, row: ProposalRow) -> bool:
        """Whether the run of a proposal has ended, or its row was pruned."""
        try:
            return (await self.world.journal.run(row.proposal_id)).state == "ended"
        except UsageError:
            return True

    async def _one(self, row: ProposalRow, items: Sequence[WorklistItem]) -> list[str]:
        before = row
        work = self.world.folder(row.proposal_id) / WORK
        if work.exists():
            await to_thread.run_sync(lambda: shutil.rmtree(work, ignore_errors=True))
        if row.state in ("begun", "checked"):
            why = f"its run ended while it was {row.state}: nothing was pushed"
            await self.world.journal.move_proposal(row.proposal_id, "withdrawn", why=why)
        elif row.state in ("pushing", "opening"):
            await self._unfinished(row)
        elif row.state == "open":
            await self._opened(row, items)
        elif row.state == "withdrawn" and row.data.get(LATE):
            await self._late(row)
        row = await current(self.world, row)
        if owes(row) and self.permit.fences() is None:
            await post_owed(self.world, row)
        changed = row.state != before.state
        return (
            [f"proposal {row.proposal_id} of {row.item}: {row.state} {row.ref}".rstrip()] if changed else []
        )

    async def _unfinished(self, row: ProposalRow) -> None:
        if self.permit.fences() is not None:
            return
        task = task_again(self.world, row)
        parts = self.parts()
        found = await self.permit.tidier(parts, task).find(task)
        if found is None:
            late = iso(self.world.clock.now() + timedelta(seconds=DEADLINE_S))
            await self.world.journal.move_proposal(
                row.proposal_id, "withdrawn", {LATE: late}, why="its run ended, and no branch of it was found"
            )
            return
        if found.state == "pushed" and not found.ours:
            await self.world.journal.move_proposal(
                row.proposal_id, "withdrawn", why="its run ended, and its branch holds commits of others"
            )
            return
        if row.state == "pushing":
            await self.world.journal.move_proposal(row.proposal_id, "opening", head=found.head, ref=found.ref)
        publishing = Publishing(self.world, self.permit, parts, task, "qa-fix", lambda *_: None)
        undressed = found.state == "open" and await self.permit.refused(row.item) is None
        if found.state == "pushed" or undressed:
            await publishing.open(str(row.data["title"]), str(row.data["body"]), run="")
        else:
            await publishing.found(found)

    async def _late(self, row: ProposalRow) -> None:
        """Delete a branch that arrived after the look, unless a later proposal has it now."""
        if self.permit.fences() is not None:
            return
        rows = await self.world.journal.proposals(self.world.platform.name, item=row.item)
        if rows[-1].proposal_id == row.proposal_id:
            task = task_again(self.world, row)
            await self.permit.tidier(self.parts(), task).close(task, row.why)
        await self.world.journal.move_proposal(row.proposal_id, row.state, {LATE: ""})

    async def _opened(self, row: ProposalRow, items: Sequence[WorklistItem]) -> None:
        """What persons did with an open draft; and the end of one whose item is resolved."""
        if self.permit.fences() is not None:
            return
        task = task_again(self.world, row)
        publisher = self.permit.tidier(self.parts(), task)
        found = await publisher.find(task)
        state = found.state if found else "closed"
        if state in ("merged", "closed"):
            ref = found.ref if found else row.ref
            why = f"{state} by a person" if found else "its branch is gone"
            await self.world.journal.move_proposal(
                row.proposal_id, "merged" if state == "merged" else "closed", ref=ref, why=why
            )
            return
        item = next((one for one in items if row.item in (one.fingerprint, *one.names)), None)
        if item is not None and item.state in RESOLVED:
            why = f"the item is {item.state}" + (f": {item.reason}" if item.reason else "")
            await publisher.close(task, why)
            await self.world.journal.move_proposal(row.proposal_id, "closed", why=why)
            return
        why = CONFLICTS.format(task.repository.branch) if found and found.conflicts else ""
        if why != row.why:
            await self.world.journal.move_proposal(row.proposal_id, "open", why=why)


@asynccontextmanager
async def _turn(world: FixWorld) -> AsyncIterator[bool]:
    """Whether this process may look now; where the journal is not shared, the state directory's lock says."""
    if not world.journal.shared:
        yield True
        return
    turn_s = world.config.store.stalled_s
    async with posting(world.journal, world.clock, SETTLING, turn_s=turn_s) as mine:
        yield mine
