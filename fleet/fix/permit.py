"""Whether something may leave this machine now: STOP, dial, token and lease, read afresh at each use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fleet.fix.allow_git import GitPermission, permission
from fleet.fix.parts import FixWorld, repository_for
from fleet.fix.preconditions import ProposeFacts, ProposeRefusal
from fleet.gate.budget import Ledger
from fleet.gate.dial import DIAL, read_dial
from fleet.gate.model import Rung
from fleet.gate.stop import stopped
from fleet.store.proposal_rows import OPEN_PROPOSALS, TRACKED
from fleet.text import clean
from fleet.triage.worklist import WorklistItem


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

    async def facts(
        self, asked: str, item: WorklistItem | None, *, named: bool, ledger: Ledger | None = None
    ) -> ProposeFacts:
        """The facts of one item now; without a ledger the budget is not known and does not refuse."""
        world, config = self.world, self.world.config
        live = await world.journal.proposals(world.platform.name, states=OPEN_PROPOSALS)
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
            live=sum(one.item in names for one in live),
            every=len(live),
            calls=room.left if room else 1,
            budget=room.limit if room else "the budget of calls",
        )


async def tracked(world: FixWorld, item: str) -> str:
    """What a tracker said of an item at the last search, in words; "" for nothing."""
    return await world.journal.get(f"{TRACKED}{world.platform.name}.{item}") or ""
