"""The progress of a run: its plan and counts, written to disk before anything depends on them.

Decides whether a run ends between two turns. Independent of a driver's calls.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Collection, Mapping
from pathlib import Path

from fleet.drivers.desk import Left
from fleet.drivers.session import RunOver
from fleet.events.model import total_usage
from fleet.files import write_atomic
from fleet.gate.dial import DIAL, read_dial
from fleet.gate.stop import stopped
from fleet.runs.call.decision_file import Decision
from fleet.runs.call.decisions import DecisionRecorder
from fleet.runs.desk.state import (
    MAX_LEFT,
    MAX_REASON,
    AccountTally,
    LeftState,
    Plan,
    PlanItem,
    RunState,
    State,
    StateFile,
    complete,
    invalid,
)
from fleet.runs.desk.stop_conditions import HANDED_OVER, RunFacts, full, next_item, retries_left, stop
from fleet.runs.desk.turn import TurnRecord
from fleet.runs.driver_choice import DriverChoice
from fleet.runs.proof.probe_runner import ProbeRunner
from fleet.text import line

PLAN = "PLAN.md"
TRAJECTORY = "trajectory.jsonl"
MOST_ACCOUNTS = 20
"""Places where accounts are made that one run counts."""
_LOG = logging.getLogger("fleet.runs")


class RunProgress:
    """One run's plan, counts and end. `over` is set once; later ends are ignored, until the driver changes.

    `model_until` is when (monotonic) a model makes way for the playbook, if probes are open.
    """

    def __init__(
        self,
        runner: ProbeRunner,
        recorder: DecisionRecorder,
        driver: DriverChoice,
        model_until: float = math.inf,
    ) -> None:
        self._exercise, self._recorder, self.driver = runner, recorder, driver
        self._world, self._run, self._policy = runner.world, runner.run, runner.persona.persona.policy
        self._model_until = model_until
        self._folder: Path = self._world.folder(self._run)
        self._file = StateFile(self._folder, self._run)
        self._shown = ""
        self.state = RunState.begin(self._run, Plan.of(runner.persona.persona.probe))
        self.over: RunOver | None = None

    def resume(self) -> bool:
        """Continue from the state on disk; False when there is none.

        RunOver `state_invalid` when it does not belong to this run.
        """
        if not self._file.path.exists():
            return False
        self.state = self._file.last = self._file.load()
        self._exercise.session.breaker.withdraw(self.state.withdrawn)
        return True

    def begin(self) -> None:
        """Write plan and state to disk; RunOver `state_invalid` when that fails."""
        self.keep(signature=self._signature())

    def check(self) -> None:
        """RunOver when the run has ended, or its state file was changed."""
        if self.over is not None:
            raise self.over
        try:
            damage = self._file.check()
        except RunOver as over:
            raise self.end(over) from None
        if damage:
            title = "the run's state was damaged"
            self._recorder.record(
                Decision(title, "end the run, or use the copy", "written anew from its copy", damage, "none")
            )

    def may_go_on(self) -> None:
        """RunOver when a stop condition holds before a turn."""
        if found := stop(self.facts(), self._policy):
            raise self.end(RunOver(found.outcome, found.detail))

    def more(self, probe: str = "") -> str:
        """Instruction to continue for a driver that stopped by itself, at one probe or at the whole plan; ""
        when it may stop."""
        facts = self.facts()
        left = tuple(item for item in self._left(facts) if probe in ("", item.id))
        found = stop(facts, self._policy)
        if found is not None and (left or found.reason == "kill_switch"):
            raise self.end(RunOver(found.outcome, found.detail))
        if not left:
            return ""
        if self.state.continuations >= self._policy.max_continuations:
            why = f"asked {self.state.continuations} times to go on; {len(self._left(facts))} probes are open"
            raise self.end(RunOver("max_continuations", why))
        self.keep(continuations=self.state.continuations + 1)
        return f"The plan is not done. Go on with these: {', '.join(item.id for item in left)}."

    def verdict(self) -> None:
        """The completion gate for a driver that ended by itself; RunOver unless the plan is complete."""
        if self.over is not None:
            raise self.over
        facts = self.facts()
        if complete(facts.plan, retries_left(self._policy, facts.retries_used)):
            return
        self.may_go_on()
        left = self._left(facts)
        why = f"{len(left)} of {len(facts.plan.items)} probes are open" if left else "nothing was planned"
        raise self.end(RunOver("incomplete", why))

    def next_probe(self, besides: Collection[str] = ()) -> str:
        """The plan's next probe, without those that somebody is at, or ""."""
        return next_item(self.facts(), self._policy, besides)

    def may_try(self, probe: str) -> bool:
        """Whether plan and policy permit a look at this probe now."""
        facts = self.facts()
        item = next((one for one in self._left(facts) if one.id == probe), None)
        return item is not None and (item.state != "pending" or not full(facts, self._policy))

    def mark(self, probe: str, state: State, reason: str = "", *, tried: bool = False) -> None:
        """Record the state of a probe. A try is written to disk at once, anything else with its turn."""
        plan = self.state.plan
        item = plan.get(probe)
        items = plan.with_item(probe, state, reason, tried=tried).items
        if tried:
            again = item is not None and item.tries > 0
            self.keep(items=items, retries_used=self.state.retries_used + again)
        else:
            self.state = self.state.model_copy(update={"items": items})

    def count_claim(self) -> int:
        """Count a claim beyond the plan; return how many preceded it."""
        before = self.state.claims
        self.keep(claims=before + 1, stale=0)
        return before

    def count_accounts(self, url: str, why: str, looked: Mapping[str, int]) -> None:
        """Count accounts that a question made at a place and what they looked at, or why it made none; kept
        with its turn."""
        before = self.state.accounts.get(url, AccountTally())
        if url not in self.state.accounts and len(self.state.accounts) >= MOST_ACCOUNTS:
            return
        accounts = {**self.state.accounts, url: before.plus(why, looked)}
        self.state = self.state.model_copy(update={"accounts": accounts})

    def count_turn(self, turn: TurnRecord) -> None:
        """Count a turn that ended. A timeout neither counts as a failed turn nor resets their number."""
        state, failure = self.state, turn.failure
        signature = self._signature()
        late = failure == "turn_timeout"
        self.keep(
            turns=state.turns + 1,
            failed=state.failed + (not late) if failure else 0,
            timeouts=state.timeouts + late if failure else 0,
            last_failure=failure,
            stale=state.stale + 1 if signature == state.signature else 0,
            signature=signature,
            usage=total_usage((state.usage, turn.usage)),
        )

    def change(self, driver: DriverChoice) -> None:
        """Switch to another driver, and reset the failures and the end of the previous one."""
        self.driver, self.over = driver, None
        self.keep(failed=0, timeouts=0, stale=0, last_failure="")

    def leave(self, left: Left) -> None:
        """Record on disk what the run does not look at, cleaned; the latest record of a part counts."""
        mask = self._world.redactor.text
        part, reason = mask(line(left.part, 120))[:120] or "?", mask(line(left.reason, 500))[:MAX_REASON]
        others = [one for one in self.state.left if one.part != part][: MAX_LEFT - 1]
        self.keep(left=(*others, LeftState(part=part, reason=reason, kind=left.kind)))

    def end(self, over: RunOver) -> RunOver:
        """End the run, whatever the driver does."""
        if self.over is None:
            self.over = over
            why = over.detail or over.outcome
            what = "the model of run" if self.driver.is_model and over.outcome in HANDED_OVER else "run"
            title = f"{what} {self._run} stops: {over.outcome}"
            self._recorder.record(Decision(title, "go on, or stop", "stop", why, "start another run"))
        return self.over

    def keep(self, **changes: object) -> None:
        """Write a changed state to disk, then adopt it; RunOver when the write fails."""
        withdrawn = self._exercise.session.breaker.withdrawn
        self.state = self.state.model_copy(update=changes | {"withdrawn": withdrawn})
        try:
            self._file.save(self.state)
        except OSError as error:
            raise self.end(invalid(f"cannot be written: {error.strerror}")) from None
        try:  # for people only: after a power loss it may be older than the state
            if (shown := self.rendered()) != self._shown:
                write_atomic(self._folder / PLAN, shown.encode(), sync_name=False)
                self._shown = shown
        except OSError as error:
            _LOG.warning("%s of run %s: not written: %s", PLAN, self._run, error.strerror)

    def rendered(self, probe: str = "") -> str:
        """The plan as text for a person or a driver; for one probe its line, and what the persona has."""
        plan, one = self.state.plan, self._exercise.persona.persona
        if (item := plan.get(probe)) is None:
            return plan.render(self._run, one.name)
        about = next(known for known in one.probe if known.id == probe)
        steps = "".join(f"- {step.tool} {json.dumps(dict(step.args))}\n" for step in about.steps)
        why = f"A finding ({about.severity}) if this does not hold: `{about.expect}`\n{about.finding}\n"
        return f"{Plan((item,)).render(self._run, one.name)}\n{why}\nIts calls:\n{steps}"

    def facts(self) -> RunFacts:
        """Facts for the stop conditions; dial, STOP and trajectory are read again."""
        state, pause = self.state, stopped(self._world.state)
        try:
            size = (self._folder / TRAJECTORY).stat().st_size
        except OSError:
            size = 0
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
            size=size,
            explores=self.driver.explores,
            patience=self.driver.patience,
            model=self.driver.is_model,
            late=self.model_s() <= 0,
        )

    def model_s(self) -> float:
        """What is left of a model's share of the run's time, in seconds; without end for another driver."""
        return self._model_until - self._world.clock.monotonic() if self.driver.is_model else math.inf

    def _left(self, facts: RunFacts) -> tuple[PlanItem, ...]:
        return facts.plan.open(retries_left(self._policy, facts.retries_used))

    def _signature(self) -> str:
        """What a turn with progress changes: the open probes or the claims."""
        state = self.state
        return f"{state.plan.signature(retries_left(self._policy, state.retries_used))} {state.claims}"
