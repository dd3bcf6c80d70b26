"""The work of a run of the driver `fix`, and what every pass of triage does about open proposals."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import anyio

from fleet.config import FleetConfig, Platform
from fleet.errors import ConfigError, FleetError
from fleet.fix.parts import FixParts, FixRun, repository_for
from fleet.fix.permission.allow_git import allow_folder
from fleet.fix.permission.guard import FenceClosed
from fleet.fix.permission.permit import ProposePermit, tried, unbuilt
from fleet.fix.permission.preconditions import ProposeRefusal, calls_of, refusal
from fleet.fix.propose import Proposer, best
from fleet.fix.recovery import ProposalUpkeep
from fleet.gate.budget import Ledger
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext
from fleet.runs.proof.item_questions import ItemQuestion, known_items, questions
from fleet.runs.queue import FIX
from fleet.store.rows import OPEN_PROPOSALS, ItemRow
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.run import TriageMemory
from fleet.triage.triage_pass import TRIAGE, in_words, pass_over
from fleet.triggers.items import item_asked, item_of

_LOG = logging.getLogger("fleet.fix")


@dataclass(slots=True)
class Fixing:
    """Proposals of one platform in one process. `tokens` is the folder of ALLOW_GIT; `parts` are made when
    they are needed."""

    world: FleetContext
    parts: Callable[[], FixParts]
    tokens: Path
    memory: TriageMemory = field(default_factory=TriageMemory)
    alone: anyio.Lock = field(default_factory=anyio.Lock)
    """Held by the one task of this process that looks after proposals."""

    @classmethod
    def of(cls, world: FleetContext, make: Callable[[FleetConfig, Platform, Path], FixParts]) -> Self:
        """With the parts that are configured when they are needed, and the tokens beside fleet.toml."""
        return cls(world, lambda: make(world.config, world.platform, world.state), allow_folder())

    @property
    def permit(self) -> ProposePermit:
        return ProposePermit(self.world, self.tokens)

    @property
    def upkeep(self) -> ProposalUpkeep:
        return ProposalUpkeep(self.world, self.parts, self.permit, self.alone)

    async def fix(self, run: str) -> str:
        """Propose a fix of the item named, or of the best one that may be; RunOver when none may be."""
        if (found := self.permit.fences()) is not None:
            raise FenceClosed(found)
        context = self.world.in_flight.get(run)
        assert context is not None, "the run is open while its work is done"
        # the worklist as the log is now; nothing is posted
        triage = self.world.personas.get(TRIAGE)
        if triage is None:
            raise ConfigError(f"there is no persona {TRIAGE}", remedy="fleet personas list")
        result = await pass_over(self.world, triage, self.memory, post=False)
        items = (*result.items, *result.closed)
        await self.upkeep.run(items)
        return await self.propose(context, items, (await self.world.journal.run(run)).key)

    async def propose(self, run: FixRun, items: Sequence[WorklistItem], key: str) -> str:
        """The same for a worklist that is known; `key` is the run's, and may name an item."""
        proposer = Proposer(self.world, run, self.parts(), self.permit)
        by_name = self.world.item or item_asked(key)
        if asked := by_name or item_of(key):
            item = next((one for one in items if asked in (one.fingerprint, *one.names)), None)
            question = await self._question(item) if item else None
            return await proposer.propose(asked, item, named=bool(by_name), question=question)
        item = await self._best(items, run.ledger)
        return await proposer.propose("", item, named=False, question=await self._question(item))

    async def triage(self, persona: LoadedPersona) -> str:
        """A pass of triage, then a look after proposals; what came of both in a line.

        What the look changes is on the list at once: then there is a second pass.
        """
        result = await pass_over(self.world, persona, self.memory)
        said = [in_words(result)]
        try:
            if changed := await self.upkeep.run((*result.items, *result.closed)):
                said = [in_words(await pass_over(self.world, persona, self.memory)), *changed]
        except FleetError as error:  # the list is made; the next pass looks again
            _LOG.warning("proposals: %s", error)
        return "; ".join(said)

    async def waits(self, item: ItemRow) -> str:
        """Why no run should start for this item now, by what can be known without one."""
        world, config = self.world, self.world.config
        if (found := self.permit.fences()) is not None:
            return found.reason
        if repository_for(config, item.surface) is None or not item.repro:
            return "no repository, or no repro"
        token = self.permit.token(item.fingerprint)
        if not token.allowed:
            return token.why
        queued, _ = await world.journal.at_hand(world.platform.name)
        if any(queued.get(name) for name, one in world.personas.items() if one.persona.driver == FIX):
            return "a run waits already"
        if why := unbuilt(world, item):
            return why
        rows = await world.journal.proposals(world.platform.name)
        if why := await tried(world, item, rows):
            return why
        live = [row for row in rows if row.state in OPEN_PROPOSALS]
        names = {item.fingerprint, *item.names}
        mine = sum(one.item in names for one in live)
        full = len(live) >= config.propose.open or mine >= config.propose.per_item
        return "no slot is free" if full else ""

    async def _question(self, item: WorklistItem) -> ItemQuestion | None:
        """How re-runs ask for the item, if that is by the calls of its repro; None when it is not known."""
        names = {item.fingerprint, *item.names}
        rows = await known_items(self.world)
        known = next((one for one in rows if names & {one.item.fingerprint, *one.item.names}), None)
        if known is None:
            return None
        found = questions(known, self.world)
        calls = [call.tool for call in calls_of(item.repro)[0]]
        for one in () if isinstance(found, str) else found:
            if not one.unsure and [step.tool for step in one.probe.steps] == calls:
                return one
        return None

    async def _best(self, items: Sequence[WorklistItem], ledger: Ledger) -> WorklistItem:
        """The best ranked item that passes the preconditions; RunOver with the first reason if none does."""
        first: ProposeRefusal | None = None
        for item in best(items):
            facts = await self.permit.facts(item.fingerprint, item, named=False, ledger=ledger)
            found = refusal(facts)
            if found is None:
                return item
            reason = f"of {len(best(items))} open items none may be fixed; {item.fingerprint}: {found.reason}"
            first = first or ProposeRefusal(found.rule, reason)
        raise FenceClosed(first or ProposeRefusal("item", "no item is open"))
