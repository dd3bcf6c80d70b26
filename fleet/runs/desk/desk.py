"""The desk of a run: every driver works here, and nothing it says changes its permissions.

Before each turn, the desk checks that the run's files are unchanged and that no stop condition holds. During
the turn, calls pass the gate one at a time. After it, the record and then the counts are written to disk.

Data flows one way: a turn asks the desk, calls.py checks and executes the call and returns a value, and the
desk applies that value to the plan and the counts (run_progress.py) and to the turn's record.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from fleet.drivers.desk import REPORT_FINDING, RUN_PROBE, Allowance, Brief, Left, Offer, Question, Reply, Turn
from fleet.drivers.session import RunOver
from fleet.events.model import TurnStarted, TurnUsage
from fleet.gate.budget import Ledger, Unit
from fleet.personas.model import PolicySection, Severity, Step
from fleet.runs.call.decisions import DecisionRecorder
from fleet.runs.call.replies import fitted, pointed, refusal
from fleet.runs.desk import brief as words
from fleet.runs.desk.calls import Calls, GateCall, Rejection
from fleet.runs.desk.model_budget import ModelBudget
from fleet.runs.desk.offers import RunProbe
from fleet.runs.desk.run_progress import RunProgress
from fleet.runs.desk.state_file import RunState, invalid
from fleet.runs.desk.turn import OpenTurn, TurnRecord
from fleet.runs.driver_choice import DriverChoice
from fleet.runs.proof.claims import MAX_CLAIMS, ReportFinding, claimed
from fleet.runs.proof.probe_runner import Exercise
from fleet.runs.proof.rerun import WRITES
from fleet.store.tables.units import key_of
from fleet.text import line
from sandbox.tools import TOOLS

EXPLORING = 0.6
"""The share of a run's time after which no explorer asks anything new."""
MODELLING = 0.5
"""The share of a run's time after which a model with open probes makes way for the playbook."""
PROOF_CALLS = 5
"""Calls kept back for each step of a raised finding: its three tries and two more."""
KEPT = 16
"""Calls kept back for a look at an outage."""
ACCOUNT = "account"
"""What an answer is judged as that begins with the making of accounts."""
PROOF_SHARE = 0.25
"""The share of calls and of writes that is kept for proofs before anything is explored."""
MIN_WRITES = 4
"""The fewest writes that are kept for proofs."""
GRAVE: tuple[Severity, ...] = ("critical", "high")
"""Severities that are proven, and posted, before an explorer goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Dependencies of a desk, from the run that opens it. `texts` is the brief."""

    exercise: Exercise
    ledger: Ledger
    recorder: DecisionRecorder
    policy: PolicySection
    texts: Mapping[str, str]
    driver: DriverChoice
    turn_s: float
    """Deadline of one turn, in seconds."""
    started: float
    """Start of the run on its monotonic clock."""


class RunDesk:
    """Implements the drivers' Desk port for one run; `progress` holds its plan and counts."""

    def __init__(self, setting: Setting) -> None:
        exercise = setting.exercise
        self._setting, self._exercise = setting, exercise
        self._folder: Path = exercise.world.folder(exercise.run)
        self._digests = words.digests(setting.texts)
        self._model_budget = ModelBudget(setting.ledger)
        self._lock = anyio.Lock()
        until = setting.started + setting.ledger.budget.wall_s * MODELLING
        self.progress = RunProgress(exercise, setting.policy, setting.recorder, setting.driver, until)
        self._calls = Calls(exercise)
        self.explored = 0
        """Questions asked by explorers."""

    @property
    def state(self) -> RunState:
        """The current plan and counts."""
        return self.progress.state

    @property
    def over(self) -> RunOver | None:
        """How the run ended; None until then."""
        return self.progress.over

    def begin(self) -> bool:
        """Write brief, plan and state to disk; False, changing nothing, if they exist already.

        RunOver `state_invalid` when they belong to another run or cannot be written.
        """
        if self.progress.resume():
            return False
        try:
            words.write(self._folder, self._setting.texts)
        except OSError as error:
            raise self.progress.end(invalid(f"cannot be written: {error.strerror}", "the brief")) from None
        self.progress.begin()
        return True

    def brief(self) -> Brief:
        system = words.system(self._setting.texts)
        return Brief(system=system, plan=self.progress.rendered(), digests=dict(self._digests))

    def offers(self) -> tuple[Offer, ...]:
        return self._calls.offers()

    def next_probe(self) -> str:
        return self.progress.next_probe()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Turn]:
        self._check_files()
        self.progress.may_go_on()
        clock, session, emit = self._exercise.world.clock, self._exercise.session, self._exercise.stream.emit
        record = TurnRecord(self.state.turns + 1, self.progress.driver.price)
        turn = OpenTurn(record, partial(self._answer, record), self._pose, emit, self._lock)
        emit(TurnStarted(index=record.index))
        session.turn = record.index
        before, started = session.calls, clock.monotonic()
        scope = anyio.CancelScope()
        try:
            share = self.progress.model_s() if self.progress.next_probe() else math.inf
            with anyio.fail_after(min(self._setting.turn_s, share)) as scope:
                yield turn
        except RunOver as over:
            self.progress.end(over)
            raise
        finally:
            if scope.cancelled_caught:
                record.fail("turn_timeout")
            turn.is_open = False
            executed = tuple(range(before + 1, session.calls + 1))
            emit(record.event(executed, clock.monotonic() - started))
            self.progress.count_turn(record)
        if self.over is not None:  # even if the driver caught it
            raise self.over

    async def more(self) -> str:
        self._check_files()
        return self.progress.more()

    async def room(self) -> Allowance:
        setting, state = self._setting, self.state
        left = await setting.ledger.room()
        kept = await self._kept_for_proofs()
        spent = self._exercise.world.clock.monotonic() - setting.started
        acts = max(0, left["writes"].left - kept["writes"]) // WRITES if setting.ledger.budget.acts else 0
        if self.over is not None or (why := self.progress.facts().stop):
            return Allowance(0, acts, why if self.over is None else "")
        if spent > setting.ledger.budget.wall_s * EXPLORING:
            return Allowance(0, acts, f"the rest of its time is for proofs ({key_of('run', 'wall')})")
        if state.turns + 1 >= setting.policy.max_turns_per_run:
            return Allowance(0, acts, "its turns are spent (policy.max_turns_per_run in the persona file)")
        rest = setting.ledger.budget.wall_s * EXPLORING - spent
        if (held := self._exercise.session.held()) > rest:
            why = f"the platform asked for a pause of {held:.0f} s (Retry-After), which outlasts the run"
            return Allowance(0, acts, why)
        if held:
            await self._exercise.session.resumed()
        calls, day = left["calls"], left.get("requests")  # the latter is the platform's own limit
        if not (room := max(0, calls.left - kept["calls"])):
            why = f"{calls.limit} is spent, but for the {kept['calls']} kept for proofs"
            return Allowance(0, acts, f"{why} ({key_of('run', 'calls')})")
        if day is not None and not day.left:
            return Allowance(0, acts, f"{day.limit} is spent")
        return Allowance(room if day is None else min(room, day.left), acts)

    async def prove(self) -> None:
        try:
            await self._exercise.prove_raised(GRAVE)
            await self._exercise.post()
        except RunOver as over:
            raise self.progress.end(over) from None

    async def _kept_for_proofs(self) -> dict[Unit, int]:
        """What explorers may not spend: a share of the budget, or what raised findings need if it is more."""
        raised = await self._exercise.world.journal.findings(self._exercise.run, ["raised"])
        shown = [Step(**one) for row in raised if row.data.get("probe") for one in row.data["probe"]["steps"]]
        budget = self._setting.ledger.budget
        calls = max(int(budget.calls * PROOF_SHARE), len(shown) * PROOF_CALLS) + KEPT
        acts = Question(tuple(shown)).acts * PROOF_CALLS
        writes = max(int(budget.writes * PROOF_SHARE), acts, MIN_WRITES)
        return {"calls": min(calls, budget.calls), "writes": min(writes, budget.writes)}

    def leave(self, left: Left) -> None:
        self.progress.leave(left)

    async def reserve(self, *, tokens: int) -> None:
        await self._model_budget.reserve(tokens, self.progress.driver.price)

    async def settle(self, usage: TurnUsage | None) -> None:
        await self._model_budget.settle(usage, self.progress.driver.price)

    def _check_files(self) -> None:
        self.progress.check()
        try:
            words.check(self._folder, self._digests)
        except RunOver as over:
            raise self.progress.end(over) from None

    async def _answer(
        self, record: TurnRecord, call_id: str, tool: str, args: Mapping[str, Any] | str
    ) -> Reply:
        """Execute one call of a turn; after the run has ended, every call raises its end."""
        if self.over is not None:
            raise self.over
        try:
            answer = await self._done(call_id, tool, args)
            if isinstance(answer, Reply):
                return answer
            record.reject(tool, answer.pointer, answer.error)
            await self._calls.reject(tool, answer, record.proposed[-1])
        except RunOver as over:
            raise self.progress.end(over) from None
        return refusal(call_id, tool, answer.error, answer.pointer)

    async def _pose(self, questions: Sequence[Question]) -> Sequence[Sequence[Mapping[str, Any]] | None]:
        """Ask an explorer's questions; after the run has ended, every question raises its end."""
        if self.over is not None:
            raise self.over
        self.explored += len(questions)
        try:
            kept = await self._kept_for_proofs()
            with self._setting.ledger.keeping({"writes": kept["writes"]}):
                found = await self._calls.pose(questions)
        except RunOver as over:
            raise self.progress.end(over) from None
        self._count_accounts(questions, found)
        return found

    def _count_accounts(
        self, questions: Sequence[Question], found: Sequence[Sequence[Mapping[str, Any]] | None]
    ) -> None:
        exercise = self._exercise
        for question, results in zip(questions, found, strict=True):
            for step, result in zip(question.steps, results or (), strict=False):
                if ACCOUNT not in TOOLS[step.tool].judged_as:
                    continue
                why = "" if result.get("ok") else str(result.get("error") or result.get("error_class"))
                why = exercise.world.redactor.text(line(why, 400))
                if why:
                    exercise.skip(step.tool, f"no account could be made: {why}")
                self.progress.count_accounts(line(str(step.args["url"]), 200), why)

    async def _done(self, call_id: str, tool: str, args: Mapping[str, Any] | str) -> Reply | Rejection:
        asked = self._calls.check(tool, args)
        if isinstance(asked, Rejection):
            return asked
        if isinstance(asked, GateCall | ReportFinding) and await self._is_kept(tool, asked):
            return refusal(call_id, tool, "the rest of the budget is kept for the open probes: run_probe")
        if isinstance(asked, GateCall):
            return await self._calls.gate_call(call_id, tool, asked.args)
        if isinstance(asked, RunProbe):
            return await self._probe(call_id, asked)
        if isinstance(asked, ReportFinding):
            return await self._claim(call_id, asked)
        go_on = await self.more()
        return refusal(call_id, tool, go_on) if go_on else Reply(call_id, tool, {"ok": True})

    async def _is_kept(self, tool: str, asked: GateCall | ReportFinding) -> bool:
        """Whether a model's own call would take what the open probes need."""
        if not self.progress.driver.is_model:
            return False
        waiting = {item.id for item in self.state.plan.open()}
        steps = [
            step for one in self._exercise.persona.persona.probe if one.id in waiting for step in one.steps
        ]
        own = [Step(tool=tool, args=asked.args)] if isinstance(asked, GateCall) else asked.steps
        left, needed, more = await self._setting.ledger.room(), Question(tuple(steps)), Question(tuple(own))
        acts = needed.acts + more.acts if more.acts else 0
        spare: dict[Unit, int] = {"calls": len(steps) + len(own), "writes": acts}
        return bool(steps) and any(left[unit].left < need for unit, need in spare.items() if unit in left)

    async def _probe(self, call_id: str, asked: RunProbe) -> Reply | Rejection:
        """Run a probe of the plan; its start is recorded on disk first."""
        probes = self._exercise.persona.persona.probe
        probe = next((one for one in probes if one.id == asked.probe), None)
        item = self.state.plan.get(asked.probe)
        if probe is None or item is None:
            return Rejection(f"no probe {asked.probe!r} in the plan", "/probe", asked.model_dump())
        if not self.progress.may_try(probe.id):
            again = {"probe": probe.id, "state": item.state, "reason": item.reason, "repeated": True}
            return Reply(call_id, RUN_PROBE, fitted(again))
        self.progress.mark(probe.id, "inconclusive", "started, but did not finish", tried=True)
        look = await self._calls.look(probe)
        self.progress.mark(probe.id, look.state, look.reason)
        return Reply(call_id, RUN_PROBE, look.content)

    async def _claim(self, call_id: str, asked: ReportFinding) -> Reply | Rejection:
        """Look at a claim beyond the plan; it is counted on disk first."""
        title = self._exercise.world.redactor.text(asked.title)
        if not asked.steps:
            why = "no calls that show it"
            self.progress.decide(self._calls.on_claim(title, "needs-repro", "not promoted", why))
            return refusal(call_id, REPORT_FINDING, "needs-repro: name the calls that show it", "/steps")
        probe = claimed(asked, self._exercise.persona)
        if isinstance(probe, str):
            return Rejection(*pointed(probe), {"title": title})
        if (known := self._calls.claims.get(probe.id)) is not None:
            return Reply(call_id, REPORT_FINDING, fitted({"repeated": True, **known}))
        if self.progress.count_claim() >= MAX_CLAIMS:
            error = f"limit reached: this run has made {MAX_CLAIMS} claims"
            return Rejection(error, shown={"title": title})
        look = await self._calls.look_at_claim(title, probe)
        self.progress.decide(look.decision)
        return Reply(call_id, REPORT_FINDING, look.content)
