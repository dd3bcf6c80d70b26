"""The middle of a run: a driver at the desk, and the proofs of what it raised."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio

from fleet import __version__
from fleet.drivers.desk import Left, ProviderFailed
from fleet.drivers.explore.driver import Order, explorer
from fleet.drivers.explore.notebook import Notebook
from fleet.drivers.explore.port import ExplorerContext
from fleet.drivers.explore.table import chosen
from fleet.drivers.session import RunOver
from fleet.errors import BudgetExceeded, FleetError, Unreachable
from fleet.events.model import CheckFailed, DriverChanged, TurnUsage
from fleet.fuzzing.inputs import SearchStart
from fleet.gate.budget import Budget, Ledger
from fleet.gate.dial import DIAL, read_dial
from fleet.gate.model import Rung
from fleet.gate.scope import Scope
from fleet.gate.steering import order_now
from fleet.personas.duration import parse_duration
from fleet.personas.load import LoadedPersona
from fleet.personas.needs import strings
from fleet.runs.call.decisions import DecisionRecorder
from fleet.runs.call.targets import granted
from fleet.runs.context import FleetContext
from fleet.runs.desk import brief
from fleet.runs.desk.desk import EXPLORING, LEAST_FOR_PROOFS, RunDesk
from fleet.runs.desk.exit_codes import LOCK_OUT
from fleet.runs.desk.state import StateFile
from fleet.runs.desk.stop_conditions import HANDED_OVER, PROVABLE, fails_fast, limit_of, summary
from fleet.runs.driver_choice import EXPLORER_PATIENCE, PLAYBOOK, RETEST, DriverChoice
from fleet.runs.outage.decide import Up
from fleet.runs.outage.watch import Watch
from fleet.runs.proof.leftovers import SHARE, adopt
from fleet.runs.proof.probe_runner import ProbeRunner
from fleet.runs.proof.retest import RetestTally, retest, retest_all, retest_one
from fleet.runs.proof.verify import BUDGET, OF_ONE_PROOF
from fleet.runs.settlement.outbox import record_fixed
from fleet.store.rows import BLIND
from fleet.store.tables.units import key_named
from fleet.text import counted, line
from sandbox.tools import TOOLS

LEARNED = 24
"""Learned probes of one run at most."""
SEARCHER = "programs"
"""The explorer that searches a compiler."""
FEW_REFUSED = 5
"""Answers of 429 up to which they are not reported."""
REPORTED_REFUSED = 0.1
"""The share of answers that are 429 from which on it is reported."""
DRIVING = 0.75
"""The driver's share of a run's time; the rest is for proofs."""


@dataclass(slots=True)
class Drive:
    """One run's exercise. `desk` is set once it has begun."""

    world: FleetContext
    persona: LoadedPersona
    runner: ProbeRunner
    ledger: Ledger
    budget: Budget
    scope: Scope
    recorder: DecisionRecorder
    started: float
    driver: DriverChoice = PLAYBOOK
    desk: RunDesk | None = None
    turn_s: float = 0.0
    """Deadline of a turn; 0: the persona's."""
    texts: dict[str, str] = field(default_factory=dict)
    model_end: RunOver | None = None
    """What ended the model, after which the playbook asked what was open."""

    def __post_init__(self) -> None:
        world = self.world
        self.texts = brief.compose(self.persona, world.platform, self.scope, self.budget, world.config.never)

    def header(self) -> dict[str, Any]:
        """The header's fields on the driver and the brief."""
        one = self.persona.persona
        return {
            "driver": self.driver.name,
            "model": self.driver.model,
            "goal": line(one.summary, 200),
            "build": __version__,
            "groups": granted(one.tools),
            "policy": one.policy.model_dump(mode="json"),
            "brief": brief.digests(self.texts),
        }

    async def __call__(self) -> str:
        """Begin, check, drive, prove; return the detail of a completed run, RunOver for any other end."""
        desk = self.seat()
        runner = self.runner
        enter = runner.session.enter
        enter("reconnaissance", "whether the platform and its node answer")
        watch = Watch(self.world, runner.run, self.persona, runner.session, runner.stream)
        await self._check(watch)
        await watch.begin()
        enter("enumeration", "it answers: what it offers to this persona's plan")
        if self.driver.name == RETEST.name:
            enter("identification", "open items are asked again")
            return await self._again(watch)
        await desk.rule_out()
        detail = ""
        if self._plans and not self.world.trial:
            await self._leftovers()
        enter("identification", f"{self.driver.name} asks what the plan has open")
        try:
            with self.runner.session.time.move_on_after(self.budget.wall_s * DRIVING) as driving:
                if not self._only_explores(desk):
                    detail = await self._by_driver(desk)
            if driving.cancelled_caught:
                raise desk.progress.end(RunOver("deadline_exceeded", "the rest of the time is for proofs"))
            if not self._only_explores(desk):
                desk.progress.verdict()
            detail = ", ".join(filter(None, (detail, await self._explore(desk))))
        except RunOver as over:
            if over.outcome != "done":
                self._not_tried(desk, over)
                if over.outcome in PROVABLE:
                    await self._prove(watch)
                raise
            detail = over.detail
        await self._prove(watch)
        if self._plans and not self.world.trial:
            tally = RetestTally()
            await retest(self.runner, tally)
            await record_fixed(self.world, self.runner.run, tally.clean)
        watch.verdict()
        nothing_here = all(item.state == "not_applicable" for item in desk.state.items)
        looked = desk.state.plan.looked() or desk.explored or (nothing_here and watch.looked)
        if desk.state.items and not looked:
            raise RunOver(BLIND, summary(desk.state.plan))
        if self.model_end is not None and self.persona.persona.driver == "model":
            raise RunOver(self.model_end.outcome, detail)  # no other driver was wanted: not a good end
        return detail or summary(desk.state.plan)

    async def _leftovers(self) -> None:
        """Prove what earlier runs saw and did not prove, before anything new is asked."""
        with self.runner.session.time.move_on_after(self.budget.wall_s * SHARE):
            if not await adopt(self.runner, self.budget):
                return
            try:
                await self.runner.prove_raised()
            except RunOver as over:  # they ended an earlier run: they do not end this one as well
                if over.outcome not in OF_ONE_PROOF:
                    raise

    async def _prove(self, watch: Watch) -> None:
        """Prove what was raised; what stays unproven is recorded, and is proven first by the next run."""
        try:
            await watch.after()
        except RunOver as over:
            if over.outcome != BUDGET:
                raise
        try:
            await self.runner.prove_raised()
        finally:
            self._limited()
            await self._unproven()
        if self.desk is not None and self.desk.lost is not None:
            raise self.desk.lost

    def _not_tried(self, desk: RunDesk, over: RunOver) -> None:
        """Record what a spent budget left of the plan, and what to raise for it."""
        open_ = len(desk.state.plan.open(retries=1))
        if over.outcome != BUDGET or not open_:
            return
        key = key_named(over.detail)
        why = f"{open_} of {counted(len(desk.state.plan.items), 'probe')} not looked at: {over.detail}"
        desk.leave(Left("probes", f"{why}; raise {key}" if key else why, "cut"))

    def _limited(self) -> None:
        """Record what the platform refused: everything for a while, or a share for its rate."""
        if self.desk is not None and (why := self.runner.session.contacts.locked_out):
            then = "if it stays silent, the next run looks for an outage"
            self.desk.leave(Left(LOCK_OUT, f"{why}; {then}", "left"))
        answered, refused = self.runner.session.answered, self.runner.session.limited
        if self.desk is None or refused < FEW_REFUSED or refused < answered * REPORTED_REFUSED:
            return
        web = self.world.platform.web
        rate = web.rate(urlsplit(web.site).hostname or "")
        text = f"{refused} of {answered} answers were 429 (too many requests) at {rate:g} requests a second"
        text += (
            "; lower web.requests_per_second in the platform's profile, or let the fleet's address ask more"
        )
        self.desk.leave(Left("requests", text, "cut" if 2 * refused >= answered else "left"))

    async def _unproven(self) -> None:
        rows = await self.world.journal.findings(self.runner.run, ["raised"])
        if self.desk is None or not rows:
            return
        why = next((str(one.data["why"]) for one in rows if one.data.get("why")), "its time was over")
        then = "" if self.world.trial else "; the next run proves them first"
        text = f"{counted(len(rows), 'candidate')} seen and not proven: {why}{then}"
        text += f"; to prove more in a run, raise {key}" if (key := key_named(why)) else ""
        self.desk.leave(Left("proofs", text, "cut"))

    async def _again(self, watch: Watch) -> str:
        """Run open items again, and prove what came back; RunOver when none was reached."""
        tally = RetestTally()
        try:
            with self.runner.session.time.move_on_after(self.budget.wall_s * DRIVING):
                await (retest_one if self.world.item else retest_all)(self.runner, tally)
        except RunOver as over:
            if over.outcome in PROVABLE:
                await record_fixed(self.world, self.runner.run, tally.clean)
                await self.runner.prove_raised()
            raise
        await record_fixed(self.world, self.runner.run, tally.clean)
        await watch.after()
        await self.runner.prove_raised()
        watch.verdict()
        if tally.blind:
            raise RunOver(BLIND, str(tally))
        return str(tally)

    def seat(self) -> RunDesk:
        """The desk, with plan, brief and state on disk; created once."""
        if self.desk is None:
            self.desk = RunDesk(
                runner=self.runner,
                ledger=self.ledger,
                recorder=self.recorder,
                texts=self.texts,
                driver=self.driver,
                started=self.started,
                turn_s=self.turn_s or parse_duration(self.persona.persona.policy.turn_timeout),
            )
            self.desk.begin()
        return self.desk

    async def _check(self, watch: Watch) -> None:
        """The health check before work: records trouble, and ends the run if the policy says so.

        A silent node is examined first: it is an outage, or our own trouble.
        """
        try:
            try:
                await self.world.checks.health()
            except Unreachable as error:
                if not error.how or not isinstance(await watch.look(), Up):
                    watch.verdict()
                    raise
                await self.world.checks.health()  # it was only briefly unreachable
        except FleetError as error:
            reason = self.world.redactor.text(line(str(error), 500))
            self.runner.stream.emit(CheckFailed(reason=reason))
            if self.persona.persona.policy.fail_fast.on_health_check_error:
                raise RunOver("failed", f"health check: {reason}") from None
        specs = [spec for tool in self.persona.persona.tools if (spec := TOOLS.get(tool))]
        if any(spec.starts_programs for spec in specs) and (why := await self.world.checks.cannot_start()):
            # only recorded: calls that need them answer `cannot_start`, and the rest can look
            reason = self.world.redactor.text(line(f"could not look at the compiler: {why}", 500))
            self.runner.stream.emit(CheckFailed(reason=reason))

    @property
    def _plans(self) -> bool:
        """Whether a driver of ours worked through the plan, not an agent from outside or a record."""
        return self.driver.name in (PLAYBOOK.name, "model")

    def _only_explores(self, desk: RunDesk) -> bool:
        """Whether there is nothing to do but to ask new questions: a playbook without a probe."""
        playbook = self.driver.name == PLAYBOOK.name
        return playbook and not desk.state.items and bool(self.persona.persona.explore)

    def _order(self) -> Order | None:
        """By what a person wants first, at this moment."""
        if (place := order_now(self.world.state)) is None:
            return None
        filled = self.world.bindings(self.runner.run, "")
        return lambda one: place(strings([filled.resolve(step.args) for step in one.steps]))

    async def _explore(self, desk: RunDesk) -> str:
        """New questions after the probes, with what is left of the run's budget; the detail for its end."""
        one, world = self.persona.persona, self.world
        usable = await self._usable() if one.explore and world.config.explore else frozenset()
        makers = chosen(one.explore, usable)
        if not makers or not self._plans:
            return ""
        acts = self.budget.acts and read_dial(world.state / DIAL).rung.height >= Rung.EXERCISE.height
        now = self.runner.session.time.monotonic()
        context = ExplorerContext(
            platform=world.platform,
            tools=usable,
            acts=acts,
            functions=world.functions,
            seconds=max(self.started + self.budget.wall_s * EXPLORING - now, 1.0),
            start=await self._search_start() if SEARCHER in makers else SearchStart(),
        )
        notes = world.folder(self.runner.run) if world.trial else world.state
        notebook = Notebook(notes / "explore" / world.platform.name)
        discovered = partial(world.journal.discover, self.runner.run)
        drive = explorer(makers, context, notebook, self.runner.run, discovered, self._order)
        driver = DriverChoice(name="explorer", drive=drive, explores=True, patience=EXPLORER_PATIENCE)
        desk.progress.change(driver)
        # the desk keeps what proofs need; a turn that goes on then may take half of what is always kept
        left = self.started + self.budget.wall_s * (1 - LEAST_FOR_PROOFS / 2) - now
        with self.runner.session.time.move_on_after(max(left, 0.0)):  # the rest of the time is for proofs
            return await _driven(driver, desk)
        return "explorers stopped by the deadline"

    async def _search_start(self) -> SearchStart:
        """What the profile names for a search; nothing, and a record, where it cannot be read."""
        try:
            return await anyio.to_thread.run_sync(self.world.search_start)
        except FleetError as error:
            reason = self.world.redactor.text(line(f"searched without it: {error}", 500))
            self.runner.stream.emit(CheckFailed(reason=reason))
            return SearchStart()

    async def _usable(self) -> frozenset[str]:
        """The granted tools that can be called here; another one is skipped, with its reason."""
        found = set()
        for tool in self.persona.persona.tools:
            if why := await self.runner.session.missing(TOOLS[tool].needs) if tool in TOOLS else "":
                self.runner.skip(tool, why)
            else:
                found.add(tool)
        return frozenset(found)

    async def _by_driver(self, desk: RunDesk) -> str:
        """The closing detail. Whatever ends a model, the playbook asks what it left open."""
        try:
            return await _driven(self.driver, desk)
        except RunOver as error:
            over, reason, failure = error, str(error), desk.state.last_failure
        except (ProviderFailed, BudgetExceeded) as error:
            reason = self.world.redactor.text(line(str(error), 500))
            failure = "provider_error" if isinstance(error, ProviderFailed) else ""
            over = RunOver("failed" if failure else "budget_exceeded", f"model: {reason}")
        fast = fails_fast(failure, self.persona.persona.policy)
        if not self.driver.is_model or fast or over.outcome not in HANDED_OVER:
            raise over
        self.model_end, why = over, f"the model ended: {reason}"
        event = DriverChanged(before=self.driver.name, after=PLAYBOOK.name, reason=reason)
        self.runner.stream.emit(event)
        desk.progress.change(PLAYBOOK)
        before = desk.state.plan.looked()
        try:
            await _driven(PLAYBOOK, desk)
        except RunOver as again:
            raise RunOver(again.outcome, f"{again.detail}; {why}") from None
        plan = desk.state.plan
        return f"{why}; the playbook looked at {plan.looked() - before} of {len(plan.items)} probes"


async def _driven(driver: DriverChoice, desk: RunDesk) -> str:
    """The driver's closing detail. If a fence ended the run, that outcome wins over any exception."""
    try:
        return await driver.drive(desk)
    except RunOver:
        raise
    except Exception as error:
        if desk.over is not None:
            raise desk.over from None
        if isinstance(error, TimeoutError):
            raise RunOver("failed", f"{driver.name} gave up after a turn timed out") from None
        raise


def with_learned(world: FleetContext, persona: LoadedPersona) -> LoadedPersona:
    """The persona with the learned probes that its policy leaves room for, if it explores."""
    one = persona.persona
    if not one.explore or world.trial:
        return persona
    limit = limit_of(one.policy)
    room = LEARNED if limit is None else min(LEARNED, limit - len(one.probe))
    learned = world.learned.of(one.name, one.tools, room)
    return replace(persona, persona=one.model_copy(update={"probe": (*one.probe, *learned)}))


def counts(folder: Path, run: str) -> tuple[int, TurnUsage | None, str]:
    """Recorded turns and usage of an interrupted run, and the fault of that file, if any."""
    file = StateFile(folder, run)
    if not file.path.exists():
        return 0, None, ""
    try:
        state = file.load()
    except RunOver as over:
        return 0, None, over.detail
    return state.turns, state.usage, ""
