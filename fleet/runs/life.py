"""One run from trigger to footer, and the same last steps for a run that was killed."""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from fleet.drivers.expect import ExpectationError, number
from fleet.drivers.playbook import Attempt, attempt
from fleet.drivers.session import RunOver
from fleet.errors import FleetError, TryAgain
from fleet.events.model import DialDistrusted, FindingRaised, ProbeSkipped, RunEnded, RunStarted
from fleet.events.stream import Stream
from fleet.events.trajectory import TrajectoryFile
from fleet.gate.budget import Budget, Ledger
from fleet.gate.gate import Gate
from fleet.gate.scope import Scope
from fleet.jail.process import proc_stat
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Persona, Probe
from fleet.runs.prove import candidate, prove
from fleet.runs.report import close_over_budget
from fleet.runs.session import RunSession
from fleet.runs.settle import settle, transactions
from fleet.runs.wallet import Wallet
from fleet.runs.world import World
from fleet.store.rows import FindingRow, RunRow
from sandbox.contract import VIEWS
from sandbox.tools import TOOLS

SETTLE_S = 120.0
"""A shielded settle needs a limit of its own; what it leaves is finished at the next start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """How a run ended. `settled` is false when clean-up must go on at the next start."""

    run: str
    persona: str
    outcome: str
    detail: str
    findings: tuple[FindingRow, ...]
    calls: int
    seconds: float
    settled: bool


def _own_start() -> int:
    """When this process started: tells it apart from a later one with the same pid."""
    stat = proc_stat(os.getpid())
    return stat.start if stat else 0


def new_run_id() -> str:
    """Eight characters that fit a DNS label: 40 random bits."""
    return base64.b32encode(secrets.token_bytes(5)).decode().lower()


async def recover(world: World) -> list[RunReport]:
    """Finish every run that a killed process left behind; the caller holds the lock, so they are all dead.

    What was seen but not proven is proven now, on what is left of that run's budget; nothing is
    exercised a second time.
    """
    await transactions(world, "")
    for row in await world.journal.queued_runs():
        await world.journal.finish(row.run_id, "cancelled", "the process ended before it began")
    reports = []
    for row in await world.journal.open_runs():
        persona = world.personas.get(row.persona) or _gone(row.persona)
        budget = Budget.of(persona.persona.budget, file=str(persona.path))
        async with _opened(world, row.run_id, persona, budget) as run:
            reports.append(await run.recover(row))
    return reports


def _gone(name: str) -> LoadedPersona:
    """Stands for a persona whose file is no longer there: it may clean up, and nothing else."""
    empty = Persona.model_construct(name=name, surface="ux", tools=(), probe=(), budget=None)
    return LoadedPersona(persona=empty, body="", sha256="0" * 64, path=Path(f"{name}.md"))


async def fire(world: World, persona: LoadedPersona, *, trigger: str = "manual") -> RunReport:
    """Start one run of a persona and see it through; exactly one outcome is recorded, whatever happens."""
    run = new_run_id()
    budget = Budget.of(persona.persona.budget, file=str(persona.path))
    await world.journal.trigger(
        run,
        persona=persona.persona.name,
        key=f"{persona.persona.name}@{trigger}:{run}",
        platform=world.platform.name,
        trigger=trigger,
        rung="",
        budget={str(unit): limit for unit, limit in budget.limits().items()},
    )
    if not await world.journal.claim(run, pid=os.getpid(), pid_start=_own_start()):
        raise TryAgain(f"run {run} was claimed by another process")
    async with _opened(world, run, persona, budget) as open_run:
        return await open_run.live(trigger)


@asynccontextmanager
async def _opened(world: World, run: str, persona: LoadedPersona, budget: Budget) -> AsyncIterator[_Run]:
    folder = world.folder(run)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sink = TrajectoryFile(folder / "trajectory.jsonl")
    stream = Stream(run, clock=world.clock, sink=sink, readers=world.watch)
    started = world.clock.monotonic()
    gate = Gate(
        state=world.state,
        run=run,
        grant=persona.persona.tools,
        tools=TOOLS,
        scope=Scope.of(world.platform, VIEWS),
        ledger=Ledger(world.journal, run, budget),
        clock=world.clock,
        deadline=started + budget.wall_s,
        distrusted=lambda why: _tell(stream, why),
    )
    world.gates[run] = gate
    try:
        wallet = Wallet(world, run)
        names = await world.journal.effects(run, ["name"])
        session = RunSession(
            world,
            run=run,
            persona=persona.persona.name,
            gate=gate,
            stream=stream,
            wallet=wallet,
            history=await world.journal.history(),
            first_name=len(names) + 1,
        )
        yield _Run(world, run, persona, budget, gate, stream, sink, wallet, session, started)
    finally:
        world.gates.pop(run, None)
        world.closing.discard(run)
        sink.close()


async def _tell(stream: Stream, why: str) -> None:
    stream.emit(DialDistrusted(reason=why))


@dataclass(slots=True)
class _Run:
    """A claimed run with everything it holds open."""

    world: World
    run: str
    persona: LoadedPersona
    budget: Budget
    gate: Gate
    stream: Stream
    sink: TrajectoryFile
    wallet: Wallet
    session: RunSession
    started: float

    async def live(self, trigger: str) -> RunReport:
        self.stream.emit(self._header(trigger))
        outcome, detail = "cancelled", "the process was told to stop"
        try:
            outcome, detail = await self._exercise()
        except Exception as error:
            outcome, detail = "failed", f"a fault of ours: {type(error).__name__}"
            raise
        finally:
            with anyio.CancelScope(shield=True):
                report = await self.finish(outcome, detail)
        return report

    async def recover(self, row: RunRow) -> RunReport:
        """The last steps of a run whose process is gone."""
        detail = f"the process ended while {row.state}"
        if not self.sink.started:
            self.stream.emit(self._header(row.trigger))
        if row.state == "running":
            self.world.signer.open_run(self.wallet.scope)
            try:
                await self.prove_raised()
            except (RunOver, FleetError) as error:
                detail += f"; not all was proven: {error}"
        return await self.finish("crashed", detail)

    async def finish(self, outcome: str, detail: str) -> RunReport:
        """Settle, then the footer, then the journal's last word on this run."""
        world, settled = self.world, True
        try:
            with anyio.fail_after(SETTLE_S):
                await world.journal.start_settling(self.run)
                if outcome == "budget_exceeded":
                    await self._closing_report(detail)
                await settle(world, self.run, self.stream, self.wallet)
        except (FleetError, TimeoutError) as error:
            settled, detail = False, f"{detail}; clean-up goes on at the next start: {error}".lstrip("; ")
        seconds = round(world.clock.monotonic() - self.started, 3)
        if settled:
            if not self.sink.ended:
                calls = self.session.calls
                self.stream.emit(RunEnded(outcome=outcome, detail=detail, calls=calls, seconds=seconds))
            await world.journal.finish(self.run, outcome, detail)
        return RunReport(
            run=self.run,
            persona=self.persona.persona.name,
            outcome=outcome,
            detail=detail,
            findings=tuple(await world.journal.findings(self.run)),
            calls=self.session.calls,
            seconds=seconds,
            settled=settled,
        )

    async def _exercise(self) -> tuple[str, str]:
        self.world.signer.open_run(self.wallet.scope)
        try:
            with anyio.fail_after(self.budget.wall_s):
                for probe in self.persona.persona.probe:
                    await self._probe(probe)
                await self.prove_raised()
        except RunOver as over:
            return over.outcome, over.detail
        except TimeoutError:
            return "deadline_exceeded", f"after {self.budget.wall_s:.0f} s"
        except FleetError as error:
            return "failed", str(error)
        finally:
            self.world.signer.close_run(self.run)
        return "done", ""

    async def _probe(self, probe: Probe) -> None:
        seen = await attempt(self.session, probe)
        if seen.state == "inconclusive":
            self.stream.emit(ProbeSkipped(probe=probe.id, reason=seen.reason))
        elif seen.state == "healthy":
            await self._note(probe, seen)
        else:
            row = candidate(self.run, self.persona, probe, seen)
            await self.world.journal.add_finding(row)
            self.stream.emit(
                FindingRaised(fingerprint=row.fingerprint, probe=probe.id, title=row.title, times=row.times)
            )

    async def _note(self, probe: Probe, seen: Attempt) -> None:
        for metric, text in probe.note.items():
            try:
                await self.world.journal.note(metric, number(text, seen.results))
            except ExpectationError as error:
                self.stream.emit(ProbeSkipped(probe=probe.id, reason=f"note {metric}: {error}"))

    async def prove_raised(self) -> None:
        """Prove every candidate that is not proven yet; a probe that is gone leaves it unverified."""
        probes = {probe.id: probe for probe in self.persona.persona.probe}
        for row in await self.world.journal.findings(self.run, ["raised"]):
            if row.probe in probes:
                await prove(self.world, self.session, self.stream, row, self.persona, probes[row.probe])
            else:
                await self.world.journal.set_finding(self.run, row.fingerprint, state="unverified")

    async def _closing_report(self, detail: str) -> None:
        persona = self.persona.persona
        await close_over_budget(self.world, self.run, persona.name, persona.surface, detail)

    def _header(self, trigger: str) -> RunStarted:
        world = self.world
        return RunStarted(
            persona=self.persona.persona.name,
            persona_sha256=self.persona.sha256,
            driver="playbook",
            platform=world.platform.name,
            chain_id=world.platform.chain.id,
            rung=self.gate.rung(),
            jail=f"{world.tier.backend}/{world.tier.tier}",
            budget={str(unit): float(limit) for unit, limit in self.budget.limits().items()},
            trigger=trigger,
        )
