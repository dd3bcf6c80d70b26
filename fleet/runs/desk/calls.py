"""Checks and executes a driver's calls; a repeated act is not executed again, and every answer is data.

Each call takes a value and returns one; the desk applies the result to the plan, the counts and the turn.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fleet.drivers.desk import Offer, Question, Reply
from fleet.drivers.session import OUR_FAILURES, RunOver, cause_of
from fleet.drivers.template import wants_name
from fleet.personas.model import Probe, Step
from fleet.runs.call.batch import QuestionRound
from fleet.runs.call.decision_file import Decision
from fleet.runs.call.guest_protocol import bad_args
from fleet.runs.call.replies import arguments, fitted, pointed, refusal, shaped
from fleet.runs.desk.offers import OWN, Finish, RunProbe, offers, parsed
from fleet.runs.desk.plan import State
from fleet.runs.proof.attempt import Attempt
from fleet.runs.proof.claims import ReportFinding
from fleet.runs.proof.probe_runner import Exercise
from sandbox.spec import Effect
from sandbox.tools import TOOLS

MAX_LED = 15
"""Acts on one disposable name that a repro can hold before its last call."""
PASSING = frozenset({"", "rate", "withdrawn"})
"""Gate rules that may permit a second look; every other rule would refuse it again."""
WINDOW = 12
"""Number of recent acts to remember."""
MOST = 3
"""Number of identical acts within the window that ends the run."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a call is invalid, and where in its arguments; `shown` is the part of them to record."""

    error: str
    pointer: str = ""
    shown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GateCall:
    """A call of a `qa_*` tool, with arguments as the driver wrote them."""

    args: dict[str, Any]


CheckedCall = GateCall | RunProbe | ReportFinding | Finish


@dataclass(frozen=True, slots=True)
class ProbeLook:
    """The new state of a probe in the plan, and the answer to the driver."""

    state: State
    reason: str
    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ClaimLook:
    """The decision on a claim, and the answer to the driver."""

    decision: Decision
    content: dict[str, Any]


class Calls:
    """Executes the calls of one run's driver in sequence; RunOver when a fence ends the run."""

    def __init__(self, exercise: Exercise) -> None:
        self._exercise, self._session = exercise, exercise.session
        self._tools = exercise.persona.persona.tools
        self._redactor = exercise.world.redactor
        self._acts = RepeatGuard()
        self._scratch = ""
        self._led: list[Step] = []
        """The driver's acts on its disposable name, which led to any later answer about that name."""
        self.claims: dict[str, dict[str, Any]] = {}
        """Answers to claims, by probe id."""

    def offers(self) -> tuple[Offer, ...]:
        """Tools on offer now."""
        return offers(self._tools, self._session.breaker)

    def check(self, tool: str, args: Mapping[str, Any] | str) -> CheckedCall | Rejection:
        """Parse a call into the arguments of its tool."""
        if tool not in {one.name for one in self.offers()}:
            shown = args if isinstance(args, Mapping) else {}
            return Rejection(f"no tool {tool!r} is on offer", shown=shown)
        plain = arguments(args)
        if isinstance(plain, str):
            return Rejection(plain)
        if tool in OWN:
            asked = parsed(tool, plain)
            return Rejection(*pointed(asked), plain) if isinstance(asked, str) else asked
        if bad := bad_args(TOOLS[tool], plain):
            return Rejection(*pointed(bad), plain)
        return GateCall(plain)

    async def reject(self, tool: str, why: Rejection, call_id: str) -> None:
        """Record and charge an invalid call."""
        reason = f"{why.pointer}: {why.error}".lstrip(": ")
        await self._session.reject(tool, reason, why.shown, call_id=call_id)

    async def gate_call(self, call_id: str, tool: str, args: dict[str, Any]) -> Reply:
        """Call a tool through the gate. `{name}` is the same disposable name in all calls of a driver."""
        named = wants_name(args)
        bindings = self._session.bindings(fresh_name=named and not self._scratch)
        self._scratch = self._scratch or bindings.name
        resolved = dict(self._exercise.world.bindings(self._exercise.run, self._scratch).resolve(args))
        first = self._acts.before(tool, resolved)
        if first is not None:
            return Reply(call_id, tool, fitted({"repeated": True, **first}))
        answer = await self._session.call(tool, resolved, call_id=call_id[:128])
        if answer.denied:
            return refusal(call_id, tool, f"{answer.denied}: {answer.reason}")
        shown = shaped(self._redactor, answer.result)
        self._acts.after(tool, resolved, shown)
        # oracles also judge answers that no probe asked for; the acts that led to one are part of its repro
        step, led = Step(tool=tool, args=args), tuple(self._led) if named else ()
        if len(led) < MAX_LED:
            await self._exercise.look_at_answers((*led, step), [answer.result])
        if named and TOOLS[tool].effect_of(resolved) is Effect.ACT:
            self._led.append(step)
        return Reply(call_id, tool, shown)

    async def pose(self, questions: Sequence[Question]) -> list[Sequence[Mapping[str, Any]] | None]:
        """Ask an explorer's questions in order, and judge the answers to each; None for one not begun."""
        asked = []
        for question in questions:
            args = [dict(step.args) for step in question.steps]
            bindings = self._session.bindings(fresh_name=wants_name(args))
            asked.append(
                [(step.tool, bindings.resolve(raw)) for step, raw in zip(question.steps, args, strict=True)]
            )
        found: list[Sequence[Mapping[str, Any]] | None] = []
        posed = QuestionRound(self._session, asked)
        for at, (question, answers) in enumerate(zip(questions, await posed(), strict=True)):
            results = [one.result for one in answers if not one.denied and not one.lost]
            looked = [one for one in results if cause_of(one) not in OUR_FAILURES]
            if looked and looked == results[: len(looked)]:
                steps = question.steps[: len(looked)]
                await self._exercise.look_at_answers(steps, looked, trusted=True, minimal=question.minimal)
            found.append(results if posed.began(at) else None)
        return found

    async def look(self, probe: Probe) -> ProbeLook:
        """Look at a probe of the plan once."""
        seen = await self._exercise.look(probe)
        state: State = "skipped" if seen.denied not in PASSING else seen.state
        reason = self._redactor.text(seen.reason)
        told = {"probe": probe.id, "state": state, "reason": reason}
        return ProbeLook(state, reason, self._told(told, seen))

    async def look_at_claim(self, title: str, probe: Probe) -> ClaimLook:
        """Look at a claim once, and keep the answer for when the same claim is repeated."""
        seen, review = await self._exercise.look_at_claim(probe)
        said: dict[str, Any] = {"claim": probe.id, "state": seen.state, "reason": seen.reason}
        if seen.state == "finding":
            said["then"] = "a person reviews it" if review else "proven again, then posted"
            decision = self.on_claim(title, "explored", "raised, to be proven 3 of 3", said["then"])
        else:
            why = seen.reason or "the expectation holds"
            decision = self.on_claim(title, seen.state, "not promoted", why)
        self.claims[probe.id] = self._told(said, seen)
        return ClaimLook(decision, self.claims[probe.id])

    def on_claim(self, title: str, word: str, decision: str, why: str) -> Decision:
        """The record of a claim; `title` is already masked."""
        return Decision(
            f"claim ({word}): {title}",
            "promote the driver's claim, or not",
            decision,
            self._redactor.text(why),
            "a person reads the run's findings",
            "findings are proven, never taken on a driver's word",
        )

    def _told(self, said: dict[str, Any], seen: Attempt) -> dict[str, Any]:
        results = [self._redactor.fields(result) for result in seen.results]
        return fitted(said | {"results": results})


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
