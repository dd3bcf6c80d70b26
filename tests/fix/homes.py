"""A state directory with a real journal, dial, STOP and tokens, a log in memory, and items."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fleet.chain.node.codec import Entry
from fleet.clock import SystemClock
from fleet.config import FleetConfig
from fleet.events.model import Event, FixStepTaken, ProposalMoved
from fleet.findings.redact import Redactor
from fleet.fix.model import GateStep, StepResult
from fleet.fix.permission.allow_git import FOLDER
from fleet.fix.permission.permit import ProposePermit
from fleet.fix.propose import Proposer
from fleet.fix.recovery import ProposalUpkeep
from fleet.gate.budget import Budget, Ledger
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.gate.stop import stop
from fleet.store.journal import Journal
from fleet.store.rows import ProposalRow
from fleet.triage.items.worklist import WorklistItem
from tests.doubles.fix import MemoryParts
from tests.doubles.journal import new_run
from tests.fix.tasks import FP, item, repository

PASSED = tuple(StepResult(step, True, "as it should") for step in GateStep)
CLOCK = SystemClock()
WEB = SimpleNamespace(face="", site="", proxy="")


@dataclass
class MemoryFeedback:
    """The end of a log to which one sender posts."""

    texts: list[str] = field(default_factory=list)

    async def find(self, text: str, sender: str, *, since: int = 0) -> int | None:
        return self.texts.index(text) if text in self.texts else None

    async def post(self, text: str, *, run: str = "", charge: str = "reports") -> Any:
        self.texts.append(text)
        return SimpleNamespace(index=len(self.texts) - 1)

    async def count(self) -> int:
        return len(self.texts)

    async def range(self, start: int, count: int) -> list[Entry]:
        return [Entry("0x1", 1_700_000_000, text) for text in self.texts[start : start + count]]


@dataclass
class FixHome:
    """A FixWorld; `propose` is the work of one run, `look` a round of upkeep once the run has ended."""

    state: Path
    journal: Journal
    parts: MemoryParts = field(default_factory=lambda: MemoryParts(steps=PASSED))
    log: MemoryFeedback = field(default_factory=MemoryFeedback)
    config: FleetConfig = field(default_factory=lambda: FleetConfig(repositories={"sample": repository()}))
    platform: Any = field(default_factory=lambda: SimpleNamespace(name="p", targets={}, web=WEB))
    redactor: Redactor = field(default_factory=Redactor)
    clock: SystemClock = CLOCK
    personas: Any = field(default_factory=dict)
    item: str = ""
    owned: bool = True
    me: str = ""
    events: list[Event] = field(default_factory=list)

    @property
    def source(self) -> Any:
        async def mine(run: str) -> bool:
            return self.owned

        return SimpleNamespace(mine=mine)

    @property
    def chain(self) -> Any:
        return SimpleNamespace(log=self.log, identity="0x1")

    def folder(self, run: str) -> Path:
        return self.state / "runs" / run

    @property
    def tokens(self) -> Path:
        return self.state.parent / FOLDER

    @property
    def permit(self) -> ProposePermit:
        return ProposePermit(self, self.tokens)

    @property
    def upkeep(self) -> ProposalUpkeep:
        return ProposalUpkeep(self, lambda: self.parts, self.permit)

    def allow(self, name: str = FP, text: str = "allow\n") -> Path:
        """What a person does."""
        self.tokens.mkdir(mode=0o755, exist_ok=True)
        path = self.tokens / name
        path.write_text(text)
        path.chmod(0o644)
        return path

    def turn(self, rung: Rung) -> None:
        write_dial(self.state, rung, "a test", "t", CLOCK)

    async def begin(self, run: str, *, calls: int = 20) -> SimpleNamespace:
        """An open run with a ledger and an event stream."""
        await self.journal.trigger(new_run(run, "qa-fix", platform="p", rung="propose"))
        await self.journal.claim(run, pid=os.getpid(), pid_start=1, daemon=self.me)
        budget = Budget(calls=calls, writes=0, reports=0, wall_s=600.0, acts=False, tokens=1000)
        emit = SimpleNamespace(emit=self.events.append)
        return SimpleNamespace(
            run=run, persona="qa-fix", ledger=Ledger(self.journal, run, budget), stream=emit
        )

    async def end(self, run: str) -> None:
        await self.journal.finish(run, "done", "")

    async def propose(self, run: str = "r1", one: WorklistItem | None = None, **more: Any) -> str:
        asked = one or item()
        open_run = await self.begin(run, **more)
        try:
            proposer = Proposer(self, open_run, self.parts, self.permit)
            return await proposer.propose(asked.fingerprint, asked, named=True)
        finally:
            await self.end(run)

    async def rows(self) -> list[ProposalRow]:
        return await self.journal.proposals("p")

    async def states(self) -> list[str]:
        return [row.state for row in await self.rows()]

    @property
    def moves(self) -> list[str]:
        return [one.state for one in self.events if isinstance(one, ProposalMoved)]

    @property
    def steps(self) -> list[str]:
        return [one.step for one in self.events if isinstance(one, FixStepTaken)]


@asynccontextmanager
async def home(folder: Path, **more: Any) -> AsyncIterator[FixHome]:
    """At the rung `propose`, with a token for the item."""
    state = folder / "state"
    state.mkdir(mode=0o700, exist_ok=True)
    async with await Journal.open(state / "fleet.db", keeper="") as journal:
        made = FixHome(state, journal, **more)
        made.turn(Rung.PROPOSE)
        made.allow()
        yield made


def pause(here: FixHome) -> None:
    stop(here.state, "t", "a test", SystemClock())


FENCES: dict[str, tuple[Callable[[FixHome], None], str]] = {
    "stop": (pause, "stopped"),
    "dial": (lambda here: here.turn(Rung.EXERCISE), "refused"),
    "token": (lambda here: (here.tokens / FP).unlink(missing_ok=True), "refused"),
    "lease": (lambda here: setattr(here, "owned", False), "crashed"),
}
