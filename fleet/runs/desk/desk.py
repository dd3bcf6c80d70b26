"""The desk of a run: every driver works here, and its words never change its permissions.

Before each turn the run's files must be unchanged and no stop condition may hold. During it, calls go through
the gate one after the other. After it, its record and then the counts are written to disk.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from fleet.drivers.desk import Brief, Offer, Reply, Turn
from fleet.drivers.session import RunOver
from fleet.events.model import Event, TurnStarted, TurnUsage
from fleet.events.usage import total
from fleet.files import write_atomic
from fleet.gate.budget import Ledger
from fleet.gate.dial import DIAL, read_dial
from fleet.gate.stop import stopped
from fleet.personas.model import PolicySection
from fleet.runs.call.decision_file import Decision
from fleet.runs.call.decisions import DecisionRecorder
from fleet.runs.desk import brief as words
from fleet.runs.desk.calls import Calls
from fleet.runs.desk.model_budget import ModelBudget
from fleet.runs.desk.plan import Plan, State, complete
from fleet.runs.desk.state_file import RunState, StateFile, invalid
from fleet.runs.desk.stop_conditions import RunFacts, full, next_item, retries_left, stop, summary
from fleet.runs.desk.turn import OpenTurn
from fleet.runs.driver_choice import DriverChoice
from fleet.runs.proof.probe_runner import Exercise

PLAN = "PLAN.md"
TRAJECTORY = "trajectory.jsonl"
_LOG = logging.getLogger("fleet.runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The inputs of a conductor, made by the run that opens it. `texts` is the brief."""

    exercise: Exercise
    ledger: Ledger
    recorder: DecisionRecorder
    policy: PolicySection
    texts: Mapping[str, str]
    hand: DriverChoice
    turn_s: float
    """Deadline of one turn, in seconds."""


class RunDesk:
    """Implements the drivers' Desk port for one run."""

    def __init__(self, setting: Setting) -> None:
        exercise = setting.exercise
        self._setting, self._exercise = setting, exercise
        self._world, self._run, self._policy = exercise.world, exercise.run, setting.policy
        self._folder: Path = self._world.folder(self._run)
        self._file = StateFile(self._folder, self._run)
        self._digests = words.digests(setting.texts)
        self._purse = ModelBudget(setting.ledger)
        self._lock = anyio.Lock()
        self._timeout = setting.turn_s
        self.hand = setting.hand
        self.state = RunState.begin(self._run, Plan.of(exercise.persona.persona.probe))
        self.over: RunOver | None = None
        self._shown = ""
        self._calls = Calls(exercise, self)

    def begin(self) -> bool:
        """Write brief, plan and state to disk; False, changing nothing, if they exist already.

        RunOver `state_invalid` when they are not this run's, or cannot be written.
        """
        if self._file.path.exists():
            self.state = self._file.load()
            self._file.adopt(self.state)
            self._exercise.session.strikes.withdraw(self.state.withdrawn)
            return False
        try:
            words.write(self._folder, self._setting.texts)
        except OSError as error:
            raise self.end(invalid(f"cannot be written: {error.strerror}", "the brief")) from None
        self.keep(self.state.model_copy(update={"signature": self._signature(self.state)}))
        return True

    def brief(self) -> Brief:
        system = words.system(self._setting.texts)
        return Brief(system=system, plan=self._rendered(), digests=dict(self._digests))

    def offers(self) -> tuple[Offer, ...]:
        return self._calls.offers()

    def next_probe(self) -> str:
        return next_item(self._facts(), self._policy)

    def turn(self) -> AbstractAsyncContextManager[Turn]:
        return self._turn()

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[Turn]:
        self._may_go_on()
        clock, session = self._world.clock, self._exercise.session
        turn = OpenTurn(self.state.turns + 1, self, self._emit, self._lock, price=self.hand.price)
        self._emit(TurnStarted(index=turn.index))
        session.turn = turn.index
        before, started = session.calls, clock.monotonic()
        scope = anyio.CancelScope()
        try:
            with anyio.fail_after(self._timeout) as scope:
                yield turn
        except RunOver as over:
            self.end(over)
            raise
        finally:
            if scope.cancelled_caught:
                turn.failed("turn_timeout")
            turn.is_open = False
            executed = tuple(range(before + 1, session.calls + 1))
            self._emit(turn.record(executed, clock.monotonic() - started))
            self.keep(self._counted(turn))
        if self.over is not None:  # even if the driver ignores it
            raise self.over

    async def more(self) -> str:
        self._check_files()
        facts = self._facts()
        left = facts.plan.open(retries_left(self._policy, facts.retries_used))
        found = stop(facts, self._policy)
        if found is not None and (left or found.reason == "kill_switch"):
            raise self.end(RunOver(found.outcome, found.detail))
        if not left:
            return ""
        if self.state.continuations >= self._policy.max_continuations:
            told = f"asked to continue {self.state.continuations} times, {len(left)} probes are open"
            raise self.end(RunOver("max_continuations", told))
        self.keep(self.state.model_copy(update={"continuations": self.state.continuations + 1}))
        return f"The plan is not done. Continue with these: {', '.join(item.id for item in left)}."

    async def reserve(self, *, tokens: int) -> None:
        await self._purse.reserve(tokens, self.hand.price)

    async def settle(self, usage: TurnUsage | None) -> None:
        await self._purse.settle(usage, self.hand.price)

    async def answer(self, turn: OpenTurn, call_id: str, tool: str, args: Mapping[str, Any] | str) -> Reply:
        """One call of a turn; after a fence has ended the run, only RunOver."""
        if self.over is not None:
            raise self.over
        try:
            return await self._calls.answer(turn, call_id, tool, args)
        except RunOver as over:
            raise self.end(over) from None

    def verdict(self) -> None:
        """The completion gate for a driver that ended on its own; RunOver unless it looked at all probes."""
        if self.over is not None:
            raise self.over
        facts = self._facts()
        left = facts.plan.open(retries_left(self._policy, facts.retries_used))
        if complete(facts.plan, retries_left(self._policy, facts.retries_used)):
            return
        found = stop(facts, self._policy)
        if found is not None:
            raise self.end(RunOver(found.outcome, found.detail))
        why = f"{len(left)} of {len(facts.plan.items)} probes are open" if left else "nothing was planned"
        raise self.end(RunOver("incomplete", why))

    def summary(self) -> str:
        """Summary of the plan; "" when all probes were looked at."""
        return summary(self.state.plan)

    def change(self, hand: DriverChoice) -> None:
        """Another driver takes over; it does not inherit the failures."""
        self.hand = hand
        self.keep(self.state.model_copy(update={"failed": 0, "timeouts": 0, "stale": 0, "last_failure": ""}))

    def mark(self, probe: str, state: State, reason: str = "", *, tried: bool = False) -> None:
        """Record a probe's state: a try goes to disk immediately, the rest with its turn."""
        plan = self.state.plan
        item = plan.get(probe)
        again = tried and item is not None and item.tries > 0
        state_ = self.state.with_plan(plan.with_item(probe, state, reason, tried=tried))
        if tried:
            self.keep(state_.model_copy(update={"retries_used": state_.retries_used + again}))
        else:
            self.state = state_

    def may_try(self, probe: str) -> bool:
        """Whether plan and policy permit work on a probe now."""
        facts = self._facts()
        waiting = facts.plan.open(retries_left(self._policy, facts.retries_used))
        item = next((one for one in waiting if one.id == probe), None)
        return item is not None and (item.state != "pending" or not full(facts, self._policy))

    def count_claim(self) -> int:
        """Count one more claim beyond the plan; return the previous number."""
        before = self.state.claims
        self.keep(self.state.model_copy(update={"claims": before + 1, "stale": 0}))
        return before

    def decide(self, decision: Decision) -> None:
        """Record a decision that no event reports."""
        self._setting.recorder.record(decision)

    def end(self, over: RunOver) -> RunOver:
        """End the run, whatever the driver does."""
        if self.over is None:
            self.over = over
            why = over.detail or over.outcome
            title = f"run {self._run} stops: {over.outcome}"
            self.decide(Decision(title, "continue, or stop", "stop", why, "start another run"))
        return self.over

    def keep(self, state: RunState) -> None:
        """Adopt a state, on disk first; RunOver when that fails."""
        self.state = state.model_copy(update={"withdrawn": self._exercise.session.strikes.withdrawn})
        try:
            self._file.save(self.state)
        except OSError as error:
            raise self.end(invalid(f"cannot be written: {error.strerror}")) from None
        try:  # for people only: after a loss of power it may be older than the state
            if (shown := self._rendered()) != self._shown:
                write_atomic(self._folder / PLAN, shown.encode(), sync_name=False)
                self._shown = shown
        except OSError as error:
            _LOG.warning("%s of run %s: not written: %s", PLAN, self._run, error.strerror)

    def _rendered(self) -> str:
        return self.state.plan.render(self._run, self._exercise.persona.persona.name)

    def _may_go_on(self) -> None:
        self._check_files()
        found = stop(self._facts(), self._policy)
        if found is not None:
            raise self.end(RunOver(found.outcome, found.detail))

    def _check_files(self) -> None:
        if self.over is not None:
            raise self.over
        try:
            self._file.check()
            words.check(self._folder, self._digests)
        except RunOver as over:
            raise self.end(over) from None

    def _facts(self) -> RunFacts:
        state, pause = self.state, stopped(self._world.state)
        return RunFacts(
            plan=state.plan,
            rung=read_dial(self._world.state / DIAL).rung,
            stop=pause.why if pause else "",
            turns=state.turns,
            retries_used=state.retries_used,
            failed=state.failed,
            timeouts=state.timeouts,
            last_failure=state.last_failure,
            stale=state.stale,
            size=_size(self._folder / TRAJECTORY),
            explores=self.hand.explores,
            patience=self.hand.patience,
        )

    def _counted(self, turn: OpenTurn) -> RunState:
        """The counts after a turn. A timeout is not a failed turn and does not reset their count."""
        state, failure = self.state, turn.failure
        signature = self._signature(state)
        late = failure == "turn_timeout"
        return state.model_copy(
            update={
                "turns": state.turns + 1,
                "failed": state.failed + (not late) if failure else 0,
                "timeouts": state.timeouts + late if failure else 0,
                "last_failure": failure,
                "stale": state.stale + 1 if signature == state.signature else 0,
                "signature": signature,
                "usage": total((state.usage, turn.usage)),
            }
        )

    def _signature(self, state: RunState) -> str:
        """The state that a productive turn changes: an open probe, or a claim."""
        return f"{state.plan.signature(retries_left(self._policy, state.retries_used))} {state.claims}"

    def _emit(self, event: Event) -> None:
        self._exercise.stream.emit(event)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
