"""Whether something may leave this machine now: STOP, dial, token and lease, read afresh at each use."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from fleet.clock import iso
from fleet.errors import FixError
from fleet.fix.build_calls import applicable, resolved
from fleet.fix.model import FixTask
from fleet.fix.parts import FixParts, FixWorld, repository_for
from fleet.fix.permission.allow_git import GitPermission, permission
from fleet.fix.permission.guard import ActGuard, GuardedPublisher
from fleet.fix.permission.preconditions import ProposeFacts, ProposeRefusal, calls_of
from fleet.gate.budget import Ledger
from fleet.gate.dial import DIAL, read_dial
from fleet.gate.model import Rung
from fleet.gate.stop import stopped
from fleet.store.rows import HELD_AT, OPEN_PROPOSALS, TRACKED, UNLIKE, ItemRow, ProposalRow
from fleet.text import clean
from fleet.triage.items.worklist import WorklistItem


@dataclass(frozen=True, slots=True)
class ProposePermit:
    """Reads STOP, dial and token; nothing is kept between two readings."""

    world: FixWorld
    tokens: Path

    def token(self, item: str) -> GitPermission:
        return permission(self.tokens, item, self.world.clock.now())

    def fences(self) -> ProposeRefusal | None:
        """STOP and dial: below `propose` nothing of a proposal happens, not even its clean-up."""
        if pause := stopped(self.world.state):
            return ProposeRefusal("stop", clean(pause.why))
        reading = read_dial(self.world.state / DIAL)
        if reading.rung.height < Rung.PROPOSE.height:
            why = f" ({reading.why})" if reading.why else ""
            return ProposeRefusal(
                "dial", f"a proposal needs {Rung.PROPOSE}; the dial says {reading.rung}{why}"
            )
        return None

    async def refused(self, item: str, run: str = "") -> ProposeRefusal | None:
        """Why nothing may be pushed or opened now; `run` must still be this process's."""
        if run and not await self.world.source.mine(run):
            return ProposeRefusal("lease", f"a peer owns run {run} now")
        if (found := self.fences()) is not None:
            return found
        token = self.token(item)
        return None if token.allowed else ProposeRefusal("token", token.why)

    def publisher(self, parts: FixParts, task: FixTask, *, run: str = "") -> GuardedPublisher:
        """The publisher of a task while it may be pushed and opened; `run` must still be this process's."""
        guard = ActGuard(lambda: self.refused(task.item.fingerprint, run))
        return GuardedPublisher(parts.publisher(task, guard.ask), guard)

    def tidier(self, parts: FixParts, task: FixTask) -> GuardedPublisher:
        """The publisher of a task for a look and for clean-up, which STOP and dial alone hold back."""

        async def refused() -> ProposeRefusal | None:
            return self.fences()

        guard = ActGuard(refused)
        return GuardedPublisher(parts.publisher(task, guard.ask), guard)

    async def facts(
        self, asked: str, item: WorklistItem | None, *, named: bool, ledger: Ledger | None = None
    ) -> ProposeFacts:
        """The facts of one item now; without a ledger the budget is not known and does not refuse."""
        world, config = self.world, self.world.config
        rows = await world.journal.proposals(world.platform.name)
        live = [row for row in rows if row.state in OPEN_PROPOSALS]
        names = {item.fingerprint, *item.names} if item else set()
        room = (await ledger.room())["calls"] if ledger else None
        place = repository_for(config, item.surface) if item else None
        pause = stopped(world.state)
        return ProposeFacts(
            asked=clean(asked, 40),
            item=item,
            named=named,
            rung=read_dial(world.state / DIAL).rung,
            stop=clean(pause.why) if pause else "",
            permission=self.token(item.fingerprint if item else ""),
            limits=config.propose,
            repository=place[0] if place else "",
            tracked=await tracked(world, item.fingerprint) if item else "",
            tried=await tried(world, item, rows) if item else "",
            unbuilt=unbuilt(world, item) if item else "",
            live=sum(one.item in names for one in live),
            every=len(live),
            calls=room.left if room else 1,
            budget=room.limit if room else "the budget of calls",
        )


async def tried(world: FixWorld, item: WorklistItem | ItemRow, rows: Sequence[ProposalRow]) -> str:
    """What the gate held the item at, in words; "" when it has not, when the item has changed since (repro,
    state), or when a person has reopened it. `rows` are proposals, the oldest first."""
    names = {item.fingerprint, *item.names}
    last = next((row for row in reversed(rows) if row.item in names), None)
    if last is None or last.state != "held" or not last.data.get(HELD_AT):
        return ""
    then = last.data["item"]
    if [item.repro, item.state, item.since] != [then.get(key) for key in ("repro", "state", "since")]:
        return ""
    decided = await world.journal.decisions(world.platform.name)
    if any(one.kind == "reopen" and one.item in names and one.at >= last.created for one in decided):
        return ""
    return clean(f"the gate held it at {last.created}, and it is as it was then: {last.why}", 300)


def unbuilt(world: FixWorld, item: WorklistItem | ItemRow) -> str:
    """Why a build of the item's repository cannot answer its repro; "" when it can, or there is neither."""
    place = repository_for(world.config, item.surface)
    calls, _ = calls_of(item.repro)
    for call in calls if place else ():
        assert place is not None
        try:
            applicable(place[1], call)
            resolved(world.platform, call)
        except FixError as error:
            return str(error)
    return ""


async def unlike(world: FixWorld, item: str) -> dict[str, str]:
    """Hits of searches that a person has called another defect than the item's: who said so, and when."""
    kept = await world.journal.get(f"{UNLIKE}{world.platform.name}.{item}")
    return dict(json.loads(kept or "{}"))


async def say_unlike(world: FixWorld, item: str, refs: Collection[str], who: str) -> None:
    """Record that these (URLs, commits) are not about the item; what was said before stays."""
    said = f"{who} {iso(world.clock.now())}"
    kept = dict.fromkeys(refs, said) | await unlike(world, item)
    await world.journal.put(f"{UNLIKE}{world.platform.name}.{item}", json.dumps(kept))


async def tracked(world: FixWorld, item: str) -> str:
    """What a tracker said of an item at the last search, in words; "" for nothing."""
    return await world.journal.get(f"{TRACKED}{world.platform.name}.{item}") or ""
