"""One run from trigger to footer: its resources, its work, its final steps, and those steps after a kill."""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio

from fleet import disk_reserve
from fleet.broker.egress_record import EGRESS
from fleet.clock import iso
from fleet.drivers.session import RunOver
from fleet.errors import ConfigError, FleetError, LostRun, TryAgain
from fleet.events.model import (
    DialDistrusted,
    Footer,
    GateDenied,
    Header,
    InstructionSeen,
    Phase,
    PhaseChanged,
    ToolRequested,
    TurnUsage,
)
from fleet.events.stream import Stream
from fleet.events.trajectory import TrajectoryFile, read
from fleet.findings.levels import OF_RUN
from fleet.gate.budget import Budget, Ledger
from fleet.gate.gate import Gate
from fleet.gate.scope import Scope
from fleet.gate.stop import stopped
from fleet.http_client import BELONGS
from fleet.jail.process import own_start
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Persona
from fleet.personas.needs import needs_of
from fleet.runs.call.decision_file import DecisionFile
from fleet.runs.call.decisions import DecisionRecorder, by_rule
from fleet.runs.call.sealed import TRAJECTORY, seal_records
from fleet.runs.call.session import GUEST_S, RunSession
from fleet.runs.call.wallet import Wallet
from fleet.runs.conduct import judge_conduct
from fleet.runs.context import FleetContext, RunContext, until_stopped
from fleet.runs.desk.coverage import coverage
from fleet.runs.desk.exit_codes import LEFT, MODEL_ENDED, UNDECIDED, UNEXPLORED
from fleet.runs.drive import Drive, counts, with_learned
from fleet.runs.driver_choice import PLAYBOOK, DriverChoice, choose_driver
from fleet.runs.proof.attempt import Attempt, once
from fleet.runs.proof.probe_runner import ProbeRunner, at_the_end
from fleet.runs.run_time import RunTime
from fleet.runs.settlement.left import left_there, remove_made, settle_pages
from fleet.runs.settlement.lost_runs import take_back
from fleet.runs.settlement.outbox import close_over_budget, report_proven
from fleet.runs.settlement.settle import owes, revoke, settle, transactions, waits_key
from fleet.store.rows import TRIAL, FindingRow, NewRun, RunRow
from fleet.store.tables.base import lost
from fleet.text import clean, line
from sandbox.chain.contract import VIEWS
from sandbox.tools import TOOLS

Work = Callable[[], Awaitable[str | None]]
"""The work of a run; returns the detail of a completed run."""

SETTLE_S = 120.0
"""Time limit of the shielded settle; the next start finishes the rest."""
MESSAGE = 40_000
"""Maximum characters read of a driver's message; the stream keeps fewer."""
_BASE32 = b"abcdefghijklmnopqrstuvwxyz234567" * 8
"""Alphabet indexed by byte: each letter stands for equally many."""
_LOG = logging.getLogger("fleet.runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """How a run ended. `settled` is false when the next start must continue the clean-up."""

    run: str
    persona: str
    outcome: str
    detail: str
    findings: tuple[FindingRow, ...]
    calls: int
    seconds: float
    settled: bool
    coverage: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Every probe under looked, not_applicable, refused, could_not or undecided, with its reason;
    other parts under unexplored, what a limit left under left, what accounts looked at under as_whom."""
    left: tuple[Mapping[str, Any], ...] = ()
    """What its acts may have left on the platform's pages, as `fleet runs left` shows it."""


@asynccontextmanager
async def opened(
    world: FleetContext, run: str, persona: LoadedPersona, budget: Budget
) -> AsyncIterator[ActiveRun]:
    folder = world.folder(run)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    BELONGS.set(run)
    sink = TrajectoryFile(folder / "trajectory.jsonl")
    recorder = DecisionRecorder(DecisionFile(world.state, world.clock), run)
    stream = Stream(
        run,
        clock=world.clock,
        sink=sink,
        readers=(*world.watch, recorder),
        mask=lambda text: world.redactor.text(clean(text, MESSAGE, newlines=True)),
        reach=world.redactor.reach,
        before=by_rule,
    )
    time = RunTime(world.clock)
    started = time.monotonic()
    persona = with_learned(world, persona)
    scope = Scope.of(world.platform, VIEWS)
    ledger = Ledger(world.journal, run, budget, world.day)

    async def distrusted(why: str) -> None:
        stream.emit(DialDistrusted(reason=why))

    gate = Gate(
        state=world.state,
        run=run,
        grant=persona.persona.tools,
        tools=TOOLS,
        scope=scope,
        ledger=ledger,
        clock=time,
        deadline=started + budget.wall_s,
        never=world.never,
        distrusted=distrusted,
        closed=world.closed,
    )
    context = RunContext(
        fleet=world, run=run, persona=persona.persona.name, gate=gate, ledger=ledger, stream=stream, time=time
    )
    with ExitStack() as sinks, world.in_flight.hold(context):
        sinks.callback(sink.close)
        wallet = Wallet(world, run, payer=ledger, clock=time, deadline=started + budget.wall_s)
        names = [effect.ref for effect in await world.journal.effects(run, ["name"])]
        session = RunSession(
            context,
            wallet=wallet,
            history=await world.journal.history(),
            first_name=1 + max((int(name.rpartition("-")[2]) for name in names), default=0),
        )
        past = await world.journal.past(world.platform.name)
        runner = ProbeRunner(world, run, persona, stream, session, past, partial(report_proven, context))
        drive = Drive(world, persona, runner, ledger, budget, scope, recorder, started)
        sinks.callback(session.egress.close)
        yield ActiveRun(context, persona, budget, sink, wallet, session, drive, started)


@dataclass(slots=True)
class ActiveRun:
    """A claimed run with everything it holds open."""

    context: RunContext
    persona: LoadedPersona
    budget: Budget
    sink: TrajectoryFile
    wallet: Wallet
    session: RunSession
    drive: Drive
    started: float
    turns: int = 0
    usage: TurnUsage | None = None
    ended: str = ""
    """When it ended (ISO), if its process was killed: the time of its last record; else "" for now."""

    @property
    def world(self) -> FleetContext:
        return self.context.fleet

    @property
    def run(self) -> str:
        return self.context.run

    @property
    def stream(self) -> Stream:
        return self.context.stream

    async def live(self, trigger: str, work: Work | None) -> RunReport:
        self.stream.emit(self._header(trigger))
        outcome, detail = "cancelled", "the process was asked to stop"
        try:
            outcome, detail = await self._exercise(work or self.drive)
        except Exception as error:
            outcome, detail = "failed", f"an internal error: {type(error).__name__}"
            raise
        finally:
            if outcome == "cancelled":
                detail = self.world.in_flight.why(self.run) or detail
            with anyio.CancelScope(shield=True):
                report = await self.finish(outcome, detail)
        return report

    async def recover(self, row: RunRow) -> RunReport:  # noqa: C901  one case for each record
        """The final steps of a run whose process is dead, or whose clean-up had to wait."""
        waits = await self.world.journal.get(waits_key(self.run))
        last, footer = "", None
        for event in read(self.world.folder(self.run) / "trajectory.jsonl"):
            last = event.at
            if isinstance(event, ToolRequested | GateDenied):
                self.session.calls = max(self.session.calls, event.call)
            if isinstance(event, InstructionSeen):
                words = f"reads like an order to a machine ({', '.join(event.signs)}): {event.quote}"
                self.session.sightings.note("instruction", event.place, words)
            if isinstance(event, PhaseChanged):
                self.session.phase = event.after
            if isinstance(event, Footer):  # only the journal's record is missing
                footer = event
        self.turns, self.usage, wrong = counts(self.world.folder(self.run), self.run)
        if waits:
            head, _, detail = waits.partition("\n")
            outcome, _, self.ended = head.partition(" ")
        else:
            seen = f"its last record is of {last}" if last else "it left no record"
            outcome, detail = "crashed", f"its process ended while it was {row.state}; {seen}"
            if (row.pid, row.pid_start) == (os.getpid(), own_start()):
                outcome, detail = "failed", "its end could not be recorded at the time"
            second = f"{last[:19]}Z" if last else ""  # rows have no milliseconds
            self.ended = min(max(second, row.started), iso(self.world.clock.now()))
            if wrong:
                outcome, detail = "state_invalid", f"{detail}; {wrong}"
        if footer is not None:
            outcome, detail = footer.outcome, footer.detail
        if not self.sink.started:
            self.stream.emit(self._header(row.trigger))
        if row.state == "running":
            self.world.chain.signer.open_run(self.wallet.scope)
            try:
                proving = replace(self.drive.runner, post=at_the_end)  # its transactions are not settled yet
                await until_stopped(self.world.state, proving.prove_raised, self.world.closed)
            except (RunOver, FleetError) as error:
                detail += f"; not everything was proven: {error}"
        return await self.finish(outcome, detail)

    async def finish(self, outcome: str, detail: str) -> RunReport:
        """Settle, write the footer, then finish the run in the journal; leave a peer's run alone."""
        with suppress(LostRun):
            if await self._ours():
                return await self._end(outcome, detail)
        return await self._report(outcome, f"{detail}; a peer took it over".lstrip("; "), settled=False)

    async def _end(self, outcome: str, detail: str) -> RunReport:
        world, settled = self.world, True
        over, why = ("reporting", "it is settled") if outcome == "done" else ("abort", f"{outcome}: {detail}")
        if not self.sink.ended:
            self.session.enter(cast(Phase, over), why)
        try:
            with anyio.fail_after(SETTLE_S):
                await world.journal.start_settling(self.run)
                await settle_pages(world, self.run)
                if outcome == "budget_exceeded":
                    persona = self.persona.persona
                    await close_over_budget(world, self.run, persona.name, persona.surface, detail)
                # under STOP nothing is asked of the chain, so what the run owes waits
                if not stopped(world.state) or await owes(world, self.run, self.wallet):
                    await until_stopped(world.state, partial(settle, self.context, self.wallet))
        except LostRun:
            raise
        except (FleetError, RunOver, TimeoutError) as error:
            disk_reserve.relieve(world.state)
            head = f"{outcome} {self.ended}".rstrip()
            await world.journal.put(waits_key(self.run), f"{head}\n{detail}", run=self.run)
            until = "after `fleet resume`" if isinstance(error, RunOver) else "at the next start"
            if stopped(world.state):
                kept = await revoke(world, self.run, self.stream, self.wallet)
                detail += f"; not ended, for they hold names or funds: {', '.join(kept)}" if kept else ""
            settled, detail = False, f"{detail}; clean-up continues {until}: {error}".lstrip("; ")
        if settled:
            for row in await world.journal.findings(self.run, ["raised"]):  # the next run proves it first
                why = (
                    row.data.get("why") or f"its run ended before it was proven: {outcome} {detail}".rstrip()
                )
                data = {**row.data, "why": world.redactor.text(line(str(why), 500))}
                await world.journal.set_finding(self.run, row.fingerprint, state="unverified", data=data)
            if not self.sink.ended:
                self.stream.emit(self._footer(outcome, detail))
            self.session.egress.sync()
            ends = {TRAJECTORY: self.sink.end, EGRESS: self.session.egress.end_place}
            await seal_records(world.journal, self.run, ends)
            await self.session.sightings.keep(world, self.run)
            asked, name = await self.session.counts(), self.persona.persona.name
            await judge_conduct(world, self.run, name, asked, well=outcome == "done")
            await self._remember(outcome)
            if not await world.journal.finish(self.run, outcome, detail, ended=self.ended):
                raise lost(self.run)
        return await self._report(outcome, detail, settled=settled)

    async def _remember(self, outcome: str) -> None:
        """Keep what this run could not decide or explore, what a limit left and what ended the model,
        until the persona's next run."""
        if self.drive.desk is None or self.world.trial:
            return
        seen, ended = coverage(self.world.folder(self.run), self.run, outcome), self.drive.model_end
        kept = {UNDECIDED: seen["undecided"], UNEXPLORED: seen["unexplored"], LEFT: seen["left"]}
        kept[MODEL_ENDED] = [{"run": self.run, "reason": line(str(ended), 300)}] if ended else []
        for prefix, rows in kept.items():
            key = f"{prefix}{self.world.platform.name}:{self.persona.persona.name}"
            if rows or await self.world.journal.get(key):
                await self.world.journal.put(key, json.dumps(rows), run=self.run)

    async def _report(self, outcome: str, detail: str, *, settled: bool) -> RunReport:
        return RunReport(
            run=self.run,
            persona=self.persona.persona.name,
            outcome=outcome,
            detail=detail,
            findings=tuple(await self.world.journal.findings(self.run)),
            calls=self.session.calls,
            seconds=self._seconds(),
            settled=settled,
            coverage=coverage(self.world.folder(self.run), self.run, outcome),
            left=tuple(left_there(await self.world.journal.effects(self.run, ["page"]))),
        )

    def _seconds(self) -> float:
        return round(self.context.time.monotonic() - self.started, 3)

    async def _ours(self) -> bool:
        """False once a peer has presumed this process dead: then the peer settles the run."""
        try:
            return await self.world.source.mine(self.run)
        except FleetError:
            return True  # unknown; settling will fail the same way, and wait

    async def _exercise(self, work: Work) -> tuple[str, str]:
        self.world.chain.signer.open_run(self.wallet.scope)
        try:
            with self.context.time.fail_after(self.budget.wall_s):
                detail = await until_stopped(self.world.state, work, self.world.closed)
                self.session.enter("post-exploitation", "what this run made is removed")
                tidy = partial(remove_made, self.context, self.session)
                await until_stopped(self.world.state, tidy, self.world.closed)
        except RunOver as over:
            return over.outcome, over.detail
        except TimeoutError:
            return "deadline_exceeded", f"after {self.budget.wall_s:.0f} s"
        except FleetError as error:
            full = disk_reserve.relieve(self.world.state)  # for the last steps of this run
            return "failed", f"disk_full: {error}" if full else str(error)
        finally:
            self.world.chain.signer.close_run(self.run)
        return "done", detail or ""

    def _footer(self, outcome: str, detail: str) -> Footer:
        if self.drive.desk is not None:
            self.turns, self.usage = self.drive.desk.state.turns, self.drive.desk.state.usage
        return Footer(
            outcome=outcome,
            detail=detail,
            calls=self.session.calls,
            seconds=self._seconds(),
            turns=self.turns,
            usage=self.usage,
            egress=self.session.hosts,
        )

    def _header(self, trigger: str) -> Header:
        world, web = self.world, self.world.platform.web
        return Header(
            persona=self.persona.persona.name,
            persona_sha256=self.persona.sha256,
            **self.drive.header(),
            platform=world.platform.name,
            chain_id=world.platform.chain.id,
            rung=self.context.gate.rung(),
            jail=f"{world.tier.backend}/{world.tier.tier}",
            budget={str(unit): float(limit) for unit, limit in self.budget.limits().items()},
            trigger=trigger,
            targets={"site": web.site, "proxy": web.proxy, "face": web.face},
            limits=world.platform.limits.model_dump(exclude={"feeds"})
            | {"call_s": GUEST_S, "wall_s": self.budget.wall_s},
            levels={name: one.level for name, one in OF_RUN.items()},
        )


def new_run_id() -> str:
    """Eight characters that fit a DNS label: 40 random bits."""
    return secrets.token_bytes(8).translate(_BASE32).decode()


async def recover(world: FleetContext) -> list[RunReport]:
    """Finish every run that a killed process left behind; the caller holds the lock, so they are all dead.

    Findings seen but not proven are proven now, on what is left of that run's budget; nothing is exercised
    again. Runs of another platform wait until that one is opened, because their remains are not visible from
    here. On a shared journal the daemons do this once a process is dead.
    """
    await transactions(world, "")
    await forget_unbegun(world)
    for run, why in (await take_back(world)).items():
        _LOG.warning("run %s: %s", run, why)
    return [await resettle(world, row) for row in await world.source.left()]


async def forget_unbegun(world: FleetContext) -> None:
    """End runs that a person queued and a killed process never began; triggered runs wait for the daemon."""
    for row in () if world.journal.shared else await world.journal.queued_runs():
        if row.key.endswith(f":{row.run_id}"):
            await world.journal.finish(row.run_id, "cancelled", "the process ended before it began")


async def resettle(world: FleetContext, row: RunRow) -> RunReport:
    """The last steps of one abandoned run: of a dead process, or one that had to wait."""
    world = world.as_trial() if row.trigger == TRIAL else world
    persona = world.personas.get(row.persona)
    if persona is None:  # its file is gone: it may only clean up
        empty = Persona.model_construct(name=row.persona, surface="ux", tools=(), probe=(), budget=None)
        persona = LoadedPersona(persona=empty, body="", sha256="0" * 64, path=Path(f"{row.persona}.md"))
    budget = Budget.of(persona.persona.budget, file=persona.path)
    await Wallet(world, row.run_id).inherit()
    async with opened(world, row.run_id, persona, budget) as run:
        return await run.recover(row)


async def fire(
    world: FleetContext,
    persona: LoadedPersona,
    *,
    trigger: str = "manual",
    driver: DriverChoice | None = None,
    work: Callable[[str], Awaitable[str | None]] | None = None,
) -> RunReport:
    """Start one run of a persona and complete it; exactly one outcome is recorded in any case.

    `driver` replaces the persona's own driver; `work`, given the run's id, all of its probes.
    """
    driver = driver if work else choose_driver(world.model, persona, driver)
    run = await _claimed(world, persona, trigger)
    own = partial(work, run) if work else None
    report = await execute(world, run, persona, trigger=trigger, work=own, driver=driver)
    if report.settled:
        await world.source.done(run)
    return report


async def ask(world: FleetContext, persona: LoadedPersona) -> tuple[RunReport, Attempt]:
    """Make the calls of a persona's only probe once, in a run that judges, posts and counts nothing."""
    seen = Attempt(state="inconclusive")

    async def look() -> str:
        nonlocal seen
        probe = persona.persona.probe[0]
        if why := await open_run.session.missing(needs_of(probe)):
            seen = Attempt(state="not_applicable", reason=why)
        else:
            seen = await once(open_run.session, probe)
        return seen.reason

    world = world.as_trial()
    run = await _claimed(world, persona, TRIAL)
    async with opened(world, run, persona, Budget.of(persona.persona.budget, file=persona.path)) as open_run:
        open_run.drive.driver = PLAYBOOK
        report = await open_run.live(TRIAL, look)
    if report.settled:
        await world.source.done(run)
    return report, seen


async def _claimed(world: FleetContext, persona: LoadedPersona, trigger: str) -> str:
    """Queue a run of a persona and claim it; its id. TryAgain when another daemon has it, or outside the
    platform's testing windows."""
    if why := world.closed():
        remedy = f"wait, or change [schedule] of the profile {world.platform.name}"
        raise TryAgain(why, remedy=remedy)
    run, name = new_run_id(), persona.persona.name
    queued = NewRun(
        run_id=run,
        persona=name,
        key=f"{name}@{trigger}:{run}",
        platform=world.platform.name,
        trigger=trigger,
        rung="",
        budget={
            str(unit): limit
            for unit, limit in Budget.of(persona.persona.budget, file=persona.path).limits().items()
        },
    )
    await world.source.trigger(queued, hand=True)
    if not await world.source.begin(run):
        raise TryAgain(f"another daemon is running {name}", remedy="wait for its run")
    return run


async def execute(
    world: FleetContext,
    run: str,
    persona: LoadedPersona,
    *,
    trigger: str,
    work: Work | None = None,
    driver: DriverChoice | None = None,
) -> RunReport:
    """Complete a claimed run, once. `work` replaces the persona's probes; RunOver may end it."""
    budget = Budget.of(persona.persona.budget, file=persona.path)
    async with opened(world, run, persona, budget) as open_run:
        try:
            open_run.drive.driver = PLAYBOOK if work else choose_driver(world.model, persona, driver)
        except ConfigError as error:  # it was claimed, so it ends like any other
            refused = error

            async def work() -> None:
                raise refused

        return await open_run.live(trigger, work)
