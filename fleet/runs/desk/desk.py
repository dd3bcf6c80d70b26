"""The desk of a run: every driver works here, and nothing it says changes its permissions.

Before each turn, the desk checks that the run's files are unchanged and that no stop condition holds. During
the turn, calls pass the gate one at a time; a repeated act is not executed again, and every answer is data.
After it, the record and then the counts are written to disk.

Plan and counts are in progress.py; what is on offer, and how a call is read, in offers.py.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from fleet.drivers.desk import (
    REPORT_FINDING,
    RUN_PROBE,
    Allowance,
    Brief,
    Choice,
    Left,
    Offer,
    Question,
    Reply,
    Turn,
)
from fleet.drivers.session import OUR_FAILURES, RunOver, cause_of
from fleet.drivers.template import wants_name
from fleet.events.model import TurnStarted
from fleet.findings.proof import ALL, MOST_LOOKS, TRIES
from fleet.gate.budget import Ledger, Unit
from fleet.personas.model import Step
from fleet.personas.needs import needs_of
from fleet.runs.call.batch import QuestionRound
from fleet.runs.call.choices import SILENT, calling, probing
from fleet.runs.call.decision_file import Decision
from fleet.runs.call.decisions import DecisionRecorder
from fleet.runs.call.replies import fitted, pointed, refusal, shaped
from fleet.runs.call.session import ACCOUNT
from fleet.runs.call.targets import Capabilities
from fleet.runs.desk import brief as words
from fleet.runs.desk.model_budget import ModelReservation
from fleet.runs.desk.offers import GateCall, Rejection, RunProbe, check, offers
from fleet.runs.desk.progress import RunProgress
from fleet.runs.desk.state import RunState, State, invalid
from fleet.runs.desk.turn import OpenTurn, TurnRecord
from fleet.runs.driver_choice import DriverChoice
from fleet.runs.proof.attempt import Attempt
from fleet.runs.proof.claims import MAX_CLAIMS, ReportFinding, claimed
from fleet.runs.proof.narrowed import narrowed
from fleet.runs.proof.probe_runner import ProbeRunner
from fleet.runs.proof.rerun import WRITES
from fleet.runs.proof.verify import JAIL_LOST
from fleet.store.tables.units import key_of
from fleet.text import line
from sandbox.spec import Effect
from sandbox.tools import TOOLS

EXPLORING = 0.6
"""The share of a run's time that is never kept for proofs."""
LEAST_FOR_PROOFS = 0.15
"""The share of a run's time that always is."""
STEP_S = 2.0
"""Seconds that are kept for each step of each try of what is raised and not proven yet."""
MODELLING = 0.5
"""The share of a run's time after which a model with open probes makes way for the playbook."""
KEPT = 16
"""Calls kept back for a look at an outage."""
PROOF_SHARE = 0.25
"""The share of calls and of writes that is kept for proofs before anything is explored."""
MIN_WRITES = 4
"""The fewest writes that are kept for proofs."""
MAX_LED = 15
"""Acts on one disposable name that a repro can hold before its last call."""
PASSING = frozenset({"", "rate", "withdrawn"})
"""Gate rules that may permit a second look; every other rule would refuse it again."""
WINDOW = 12
"""Number of recent acts to remember."""
MOST = 3
"""Number of identical acts within the window that ends the run."""

Results = Sequence[Mapping[str, Any]]


@dataclass(slots=True, kw_only=True)
class RunDesk:
    """Implements the drivers' Desk port for one run; `progress` holds its plan and counts."""

    runner: ProbeRunner
    ledger: Ledger
    recorder: DecisionRecorder
    texts: Mapping[str, str]
    """The brief."""
    driver: DriverChoice
    """The first one: `progress` knows the current one."""
    turn_s: float
    """Deadline of one turn, in seconds."""
    started: float
    """Start of the run on its monotonic clock."""
    progress: RunProgress = field(init=False)
    explored: int = field(default=0, init=False)
    """Questions asked by explorers."""
    lost: RunOver | None = field(default=None, init=False)
    """A proof between turns that killed its jails: the run goes on, and this is how it ends."""
    _lock: anyio.Lock = field(default_factory=anyio.Lock, init=False)
    _seat: anyio.Lock = field(default_factory=anyio.Lock, init=False)
    """Held by the turn that is taken, with what is proven after it."""
    _usable: tuple[str, ...] = field(init=False)
    """The granted tools that the platform has a part for."""
    _acts: RepeatGuard = field(init=False)
    _scratch: str = field(default="", init=False)
    _led: list[Step] = field(default_factory=list, init=False)
    """The driver's acts on its disposable name, which led to any later answer about that name."""
    _claims: dict[str, dict[str, Any]] = field(default_factory=dict, init=False)
    """Answers to claims, by probe id."""

    def __post_init__(self) -> None:
        until = self.started + self.ledger.budget.wall_s * MODELLING
        self.progress = RunProgress(self.runner, self.recorder, self.driver, until)
        here = Capabilities(self.runner.world.platform)
        granted = self.runner.persona.persona.tools
        self._usable = tuple(one for one in granted if one not in TOOLS or not here.unusable(TOOLS[one]))
        self._acts = RepeatGuard()

    @property
    def state(self) -> RunState:
        """The current plan and counts."""
        return self.progress.state

    @property
    def over(self) -> RunOver | None:
        """How the run ended; None until then."""
        return self.progress.over

    @property
    def _folder(self) -> Path:
        return self.runner.world.folder(self.runner.run)

    def begin(self) -> bool:
        """Write brief, plan and state to disk; False, changing nothing, if they exist already.

        RunOver `state_invalid` when they belong to another run or cannot be written.
        """
        if self.progress.resume():
            return False
        try:
            words.write(self._folder, self.texts)
        except OSError as error:
            raise self.progress.end(invalid(f"cannot be written: {error.strerror}", "the brief")) from None
        self.progress.begin()
        return True

    async def rule_out(self) -> None:
        """Mark probes above the dial that have no part here: no person need raise the dial for them."""
        rung = self.progress.facts().rung
        for item in self.state.plan.open():
            probe = next(one for one in self.runner.persona.persona.probe if one.id == item.id)
            if item.rung.height <= rung.height or not (
                why := await self.runner.session.missing(needs_of(probe))
            ):
                continue
            self.progress.mark(item.id, "not_applicable", why)
            self.runner.skip(item.id, why)

    def brief(self, probe: str = "") -> Brief:
        plan = self.progress.rendered(probe)
        return Brief(system=words.system(self.texts), plan=plan, digests=words.digests(self.texts))

    def offers(self) -> tuple[Offer, ...]:
        return offers(self._usable, self.runner.session.breaker)

    def next_probe(self, besides: Collection[str] = ()) -> str:
        return self.progress.next_probe(besides)

    @asynccontextmanager
    async def turn(self, probe: str = "") -> AsyncIterator[Turn]:
        async with self._seat, self._turn(probe) as turn:
            yield turn

    @asynccontextmanager
    async def _turn(self, probe: str) -> AsyncIterator[Turn]:
        self._check_files()
        self.progress.may_go_on()
        session, emit = self.runner.session, self.runner.stream.emit
        record = TurnRecord(self.state.turns + 1, self.progress.driver.price, probe)
        turn = OpenTurn(record, partial(self._answer, record), self._pose, emit, self._lock)
        emit(TurnStarted(index=record.index))
        session.turn = record.index
        before, started = session.calls, session.time.monotonic()
        scope = anyio.CancelScope()
        try:
            share = self.progress.model_s() if self.progress.next_probe() else math.inf
            with session.time.fail_after(min(self.turn_s, share)) as scope:
                yield turn
        except RunOver as over:
            self.progress.end(over)
            raise
        finally:
            if scope.cancelled_caught:
                record.fail("turn_timeout")
            turn.is_open = False
            executed = tuple(range(before + 1, session.calls + 1))
            emit(record.event(executed, session.time.monotonic() - started))
            self.progress.count_turn(record)
        if self.over is not None:  # even if the driver caught it
            raise self.over
        try:
            await self.runner.prove_seen()  # before anything new is asked
        except RunOver as over:
            if over.outcome != JAIL_LOST:
                raise self.progress.end(over) from None
            self.lost = over

    async def more(self, probe: str = "") -> str:
        self._check_files()
        return self.progress.more(probe)

    @property
    def requests(self) -> int:
        return self.runner.session.requests

    async def room(self) -> Allowance:
        ledger, state, policy = self.ledger, self.state, self.runner.persona.persona.policy
        left = await ledger.room()
        raised = await self._raised_steps()
        kept, kept_s = self._kept_for_proofs(raised), len(raised) * TRIES * STEP_S
        until = ledger.budget.wall_s * max(EXPLORING, 1 - LEAST_FOR_PROOFS - kept_s / ledger.budget.wall_s)
        took = self.runner.session.time.monotonic() - self.started
        acts = max(0, left["writes"].left - kept["writes"]) // WRITES if ledger.budget.acts else 0
        if self.over is not None or (why := self.progress.facts().stop):
            return Allowance(0, acts, why if self.over is None else "")
        if took > until:
            return Allowance(0, acts, f"the rest of its time is for proofs ({key_of('run', 'wall')})")
        if state.turns + 1 >= policy.max_turns_per_run:
            return Allowance(0, acts, "its turns are spent (policy.max_turns_per_run in the persona file)")
        if (held := self.runner.session.held()) > until - took:
            why = f"the platform asked for a pause of {held:.0f} s (Retry-After), which outlasts the run"
            return Allowance(0, acts, why)
        if held:
            await self.runner.session.resumed()
        calls, day = left["calls"], left.get("requests")  # the latter is the platform's own limit
        if not (room := max(0, calls.left - kept["calls"])):
            why = f"{calls.limit} is spent, but for the {kept['calls']} kept for proofs"
            return Allowance(0, acts, f"{why} ({key_of('run', 'calls')})")
        if day is not None and not day.left:
            return Allowance(0, acts, f"{day.limit} is spent")
        why = ""
        if ledger.budget.acts:
            spent = f"{left['writes'].limit} is spent, but for the {kept['writes']} kept for proofs"
            why = f"what is left writes, and {spent} ({key_of('run', 'writes')})"
        return Allowance(room if day is None else min(room, day.left), acts, why)

    async def _raised_steps(self) -> list[Step]:
        """The steps of what is not proven yet; findings of one question share them."""
        raised = await self.runner.world.journal.findings(self.runner.run, ["raised"])
        asked = {str(one["steps"]): one["steps"] for row in raised if (one := row.data.get("probe"))}
        return [Step(**one) for steps in asked.values() for one in steps]

    def _kept_for_proofs(self, raised: Sequence[Step]) -> dict[Unit, int]:
        """What explorers may not spend: a share of the budget, or what raised findings need if it is more."""
        budget = self.ledger.budget
        calls = max(int(budget.calls * PROOF_SHARE), len(raised) * MOST_LOOKS) + KEPT
        acts = Question(tuple(raised)).acts * MOST_LOOKS
        writes = max(int(budget.writes * PROOF_SHARE), acts, MIN_WRITES)
        return {"calls": min(calls, budget.calls), "writes": min(writes, budget.writes)}

    def decide(self, choice: Choice, questions: Sequence[Question]) -> Sequence[Question]:
        session, calls = self.runner.session, [self.runner.filled(one.steps) for one in questions]
        likely = [session.is_likely(of) for of in calls]
        kept = [number for number, sure in enumerate(likely) if sure]
        # what is not likely enough is left out; where nothing is, the record says so
        session.decide(choice, [call for number in kept or range(len(calls)) for call in calls[number]])
        return [questions[number] for number in kept]

    def leave(self, left: Left) -> None:
        self.progress.leave(left)

    async def reserve(self, *, tokens: int) -> ModelReservation:
        return await ModelReservation.of(self.ledger, self.progress.driver.price, tokens)

    def _check_files(self) -> None:
        self.progress.check()
        try:
            words.check(self._folder, words.digests(self.texts))
        except RunOver as over:
            raise self.progress.end(over) from None

    async def _answer(
        self, record: TurnRecord, call_id: str, tool: str, args: Mapping[str, Any] | str
    ) -> Reply:
        """Execute one call of a turn; after the run has ended, every call raises its end."""
        if self.over is not None:
            raise self.over
        try:
            answer = await self._execute(record.probe, call_id, tool, args)
            if isinstance(answer, Reply):
                return answer
            record.reject(tool, answer.pointer, answer.error)
            reason = f"{answer.pointer}: {answer.error}".lstrip(": ")
            session = self.runner.session
            await session.reject(tool, reason, answer.shown, call_id=record.proposed[-1])
        except RunOver as over:
            raise self.progress.end(over) from None
        return refusal(call_id, tool, answer.error, answer.pointer)

    async def _execute(
        self, probe: str, call_id: str, tool: str, args: Mapping[str, Any] | str
    ) -> Reply | Rejection:
        if tool not in {one.name for one in self.offers()}:
            shown = args if isinstance(args, Mapping) else {}
            return Rejection(f"no tool {tool!r} is on offer", shown=shown)
        asked = check(tool, args)
        if isinstance(asked, Rejection):
            return asked
        if isinstance(asked, RunProbe):
            return await self._probe(call_id, asked)
        if isinstance(asked, GateCall | ReportFinding):
            if await self._is_kept(tool, asked):
                return refusal(call_id, tool, "the rest of the budget is kept for the open probes: run_probe")
            if isinstance(asked, GateCall):
                return await self._gate_call(call_id, tool, asked.args)
            return await self._claim(call_id, asked)
        go_on = await self.more(probe)
        return refusal(call_id, tool, go_on) if go_on else Reply(call_id, tool, {"ok": True})

    async def _is_kept(self, tool: str, asked: GateCall | ReportFinding) -> bool:
        """Whether a model's own call would take what the open probes need."""
        if not self.progress.driver.is_model:
            return False
        waiting = {item.id for item in self.state.plan.open()}
        steps = [step for one in self.runner.persona.persona.probe if one.id in waiting for step in one.steps]
        own = [Step(tool=tool, args=asked.args)] if isinstance(asked, GateCall) else asked.steps
        left, needed, more = await self.ledger.room(), Question(tuple(steps)), Question(tuple(own))
        acts = needed.acts + more.acts if more.acts else 0
        spare: dict[Unit, int] = {"calls": len(steps) + len(own), "writes": acts}
        return bool(steps) and any(left[unit].left < need for unit, need in spare.items() if unit in left)

    async def _gate_call(self, call_id: str, tool: str, args: dict[str, Any]) -> Reply:
        """Call a tool through the gate. `{name}` is the same disposable name in all calls of a driver."""
        runner, named = self.runner, wants_name(args)
        bindings = runner.session.bindings(fresh_name=named and not self._scratch)
        self._scratch = self._scratch or bindings.name
        resolved = dict(runner.world.bindings(runner.run, self._scratch).resolve(args))
        first = self._acts.before(tool, resolved)
        if first is not None:
            return Reply(call_id, tool, fitted({"repeated": True, **first}))
        waiting, driver = [one.id for one in self.state.plan.open()], self.progress.driver.name
        if not runner.session.decide(calling(tool, resolved, waiting, driver), [(tool, resolved)]):
            return refusal(call_id, tool, SILENT)
        answer = await runner.session.call(tool, resolved, call_id=call_id[:128])
        if answer.denied:
            return refusal(call_id, tool, f"{answer.denied}: {answer.reason}")
        shown = shaped(runner.world.redactor, tool, answer.result)
        self._acts.after(tool, resolved, shown)
        # oracles also judge answers that no probe asked for; the acts that led to one are part of its repro
        step, led = Step(tool=tool, args=args), tuple(self._led) if named else ()
        if len(led) < MAX_LED:
            await runner.look_at_answers((*led, step), [answer.result])
        if named and TOOLS[tool].effect_of(resolved) is Effect.ACT:
            self._led.append(step)
        return Reply(call_id, tool, shown)

    async def _probe(self, call_id: str, asked: RunProbe) -> Reply | Rejection:
        """Run a probe of the plan; its start is recorded on disk first."""
        probes = self.runner.persona.persona.probe
        probe = next((one for one in probes if one.id == asked.probe), None)
        item = self.state.plan.get(asked.probe)
        if probe is None or item is None:
            return Rejection(f"no probe {asked.probe!r} in the plan", "/probe", asked.model_dump())
        if not self.progress.may_try(probe.id):
            again = {"probe": probe.id, "state": item.state, "reason": item.reason, "repeated": True}
            return Reply(call_id, RUN_PROBE, fitted(again))
        self.progress.mark(probe.id, "inconclusive", "started, but did not finish", tried=True)
        waiting = [one.id for one in self.state.plan.open() if one.id != probe.id]
        calls = self.runner.filled(probe.steps)
        if not self.runner.session.decide(probing(probe, waiting, self.progress.driver.name), calls):
            self.progress.mark(probe.id, "inconclusive", SILENT)
            unasked = {"probe": probe.id, "state": "inconclusive", "reason": SILENT}
            return Reply(call_id, RUN_PROBE, fitted(unasked))
        seen = await self.runner.look(probe)
        state: State = "skipped" if seen.denied not in PASSING else seen.state
        reason = self.runner.world.redactor.text(seen.reason)
        self.progress.mark(probe.id, state, reason)
        return Reply(
            call_id, RUN_PROBE, self._shown({"probe": probe.id, "state": state, "reason": reason}, seen)
        )

    async def _claim(self, call_id: str, asked: ReportFinding) -> Reply | Rejection:
        """Look at a claim beyond the plan, counted on disk first; a repeated one gets the first answer."""
        title = self.runner.world.redactor.text(asked.title)
        if not asked.steps:
            self._record_claim(title, "needs-repro", "not promoted", "no calls that show it")
            return refusal(call_id, REPORT_FINDING, "needs-repro: name the calls that show it", "/steps")
        probe = claimed(asked, self.runner.persona)
        if isinstance(probe, str):
            return Rejection(*pointed(probe), {"title": title})
        if (known := self._claims.get(probe.id)) is not None:
            return Reply(call_id, REPORT_FINDING, fitted({"repeated": True, **known}))
        if self.progress.count_claim() >= MAX_CLAIMS:
            error = f"limit reached: this run has made {MAX_CLAIMS} claims"
            return Rejection(error, shown={"title": title})
        waiting, calls = [one.id for one in self.state.plan.open()], self.runner.filled(probe.steps)
        if not self.runner.session.decide(probing(probe, waiting, self.progress.driver.name), calls):
            return refusal(call_id, REPORT_FINDING, SILENT)
        seen, review = await self.runner.look_at_claim(probe)
        answer = {"claim": probe.id, "state": seen.state, "reason": seen.reason}
        if seen.state == "finding":
            answer["then"] = "a person reviews it" if review else "proven again, then posted"
        self._claims[probe.id] = self._shown(answer, seen)
        if seen.state == "finding":
            self._record_claim(title, "explored", f"raised, to be proven {ALL}", answer["then"])
        else:
            self._record_claim(title, seen.state, "not promoted", seen.reason or "the expectation holds")
        return Reply(call_id, REPORT_FINDING, self._claims[probe.id])

    def _record_claim(self, title: str, word: str, decision: str, why: str) -> None:
        """Record the decision on a claim; `title` is already masked."""
        self.recorder.record(
            Decision(
                f"claim ({word}): {title}",
                "promote the driver's claim, or not",
                decision,
                self.runner.world.redactor.text(why),
                "a person reads the run's findings",
                "findings are proven, never taken on a driver's word",
            )
        )

    def _shown(self, answer: dict[str, Any], seen: Attempt) -> dict[str, Any]:
        """An answer with the results of its attempt, masked and cut."""
        mask = self.runner.world.redactor.answer
        asked = zip(seen.asked, seen.results, strict=False)
        return fitted(answer | {"results": [mask(call["tool"], result) for call, result in asked]})

    async def _pose(self, questions: Sequence[Question]) -> Sequence[Results | None]:
        """Ask an explorer's questions; after the run has ended, every question raises its end."""
        if self.over is not None:
            raise self.over
        self.explored += len(questions)
        try:
            kept = self._kept_for_proofs(await self._raised_steps())
            with self.ledger.keeping({"writes": kept["writes"]}):
                found = await self._asked(questions)
        except RunOver as over:
            raise self.progress.end(over) from None
        self._count_accounts(questions, found)
        return found

    async def _asked(self, questions: Sequence[Question]) -> list[Results | None]:
        """Ask questions in order, and judge the answers to each; None for one not begun."""
        session, asked = self.runner.session, []
        for question in questions:
            args = [dict(step.args) for step in question.steps]
            bindings = session.bindings(fresh_name=wants_name(args))
            asked.append(
                [(step.tool, bindings.resolve(raw)) for step, raw in zip(question.steps, args, strict=True)]
            )
        found: list[Results | None] = []
        posed = QuestionRound(session, asked, why=[one.why for one in questions])
        for at, (question, answers) in enumerate(zip(questions, await posed(), strict=True)):
            results = [one.result for one in answers if not one.denied and not one.lost]
            looked = [one for one in results if cause_of(one) not in OUR_FAILURES]
            if looked and looked == results[: len(looked)]:
                steps = question.steps[: len(looked)]
                apart = question.apart if steps == question.steps else ()
                await self.runner.look_at_answers(
                    *narrowed(steps, looked, apart, self.runner.facts),
                    trusted=True,
                    minimal=question.minimal,
                )
            found.append(results if posed.began(at) else None)
        return found

    def _count_accounts(self, questions: Sequence[Question], found: Sequence[Results | None]) -> None:
        runner = self.runner
        for question, results in zip(questions, found, strict=True):
            for step, result in zip(question.steps, results or (), strict=False):
                if ACCOUNT not in TOOLS[step.tool].judged_as:
                    continue
                why = "" if result.get("ok") else str(result.get("error") or result.get("error_class"))
                why = runner.world.redactor.text(line(why, 400))
                if why:
                    runner.skip(step.tool, f"no account could be made: {why}")
                self.progress.count_accounts(line(str(step.args["url"]), 200), why, _looked(step, result))


def _looked(step: Step, result: Mapping[str, Any]) -> dict[str, int]:
    """The paths that accounts looked at in a row of requests, each with how many of the two were answered."""
    found: dict[str, set[str]] = {}
    for asked, got in zip(step.args.get("steps", ()), result.get("answers", ()), strict=False):
        if asked[0] in ("one", "other") and isinstance(got, Mapping) and got.get("status"):
            found.setdefault(line(str(asked[2]).partition("?")[0], 120), set()).add(asked[0])
    return {path: 2 if len(who) == 2 else 1 for path, who in found.items()}


class RepeatGuard:
    """Lets an act run once: a repeat gets the first answer, too many within the window end the run."""

    def __init__(self) -> None:
        self._answers: dict[str, Mapping[str, Any]] = {}
        self._recent: deque[str] = deque(maxlen=WINDOW)

    def before(self, tool: str, args: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The first answer if this act was already done, else None; RunOver after too many repeats."""
        key = _act(tool, args)
        if key not in self._answers:
            return None
        self._recent.append(key)
        if self._recent.count(key) >= MOST:
            raise RunOver("agent_stuck", f"repeated_call: {tool} with the same arguments {MOST} times")
        return self._answers[key]

    def after(self, tool: str, args: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Keep the answer to an act."""
        if key := _act(tool, args):
            self._recent.append(key)
            self._answers[key] = result


def _act(tool: str, args: Mapping[str, Any]) -> str:
    """Key of an act, from its tool and resolved arguments; "" for a call that changes nothing."""
    if TOOLS[tool].effect_of(args) not in (Effect.ACT, Effect.REPORT):
        return ""
    return f"{tool} {json.dumps(dict(args), sort_keys=True, default=str)}"
