"""The calls of a driver: checked, done at most once where they change something, answered as data.

Each call is a value going in and a value coming out; what follows from it for the plan, the counts and the
turn is the desk's.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fleet.drivers.desk import Offer, Reply
from fleet.drivers.session import RunOver
from fleet.drivers.template import wants_name
from fleet.personas.model import Probe, Step
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
"""Refusals that a second look may not meet; any other rule of the gate would say the same again."""
WINDOW = 12
"""Acts that are remembered as recent."""
MOST = 3
"""Times that the same act may be asked for within the window; the last of them is the end."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a call cannot be one, and where in its arguments; `shown` of them goes into the record."""

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
    """What a look at a probe makes of its item in the plan, and what the driver reads."""

    state: State
    reason: str
    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ClaimLook:
    """What a look at a claim decides, and what the driver reads."""

    decision: Decision
    content: dict[str, Any]


class Calls:
    """Does the calls of one run's driver, one after the other; RunOver when a fence ends the run."""

    def __init__(self, exercise: Exercise) -> None:
        self._exercise, self._session = exercise, exercise.session
        self._tools = exercise.persona.persona.tools
        self._redactor = exercise.world.redactor
        self._acts = RepeatGuard()
        self._scratch = ""
        self._led: list[Step] = []
        """The driver's own acts on its disposable name: what led to a later answer about it."""
        self.claims: dict[str, dict[str, Any]] = {}
        """What was answered to each claim, by the id of its probe."""

    def offers(self) -> tuple[Offer, ...]:
        """What may be asked for now."""
        return offers(self._tools, self._session.strikes)

    def check(self, tool: str, args: Mapping[str, Any] | str) -> CheckedCall | Rejection:
        """A call as what it is, with arguments of its tool's own type."""
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
        """Record and charge a call that cannot be one."""
        reason = f"{why.pointer}: {why.error}".lstrip(": ")
        await self._session.reject(tool, reason, why.shown, call_id=call_id)

    async def gate_call(self, call_id: str, tool: str, args: dict[str, Any]) -> Reply:
        """One tool of the gate. `{name}` is the same disposable name in all calls that a driver makes."""
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
        # the oracles' word on an answer that no probe asked for; what led to it is part of its repro
        step, led = Step(tool=tool, args=args), tuple(self._led) if named else ()
        if len(led) < MAX_LED:
            await self._exercise.look_at_answer((*led, step), answer.result)
        if named and TOOLS[tool].effect is Effect.ACT:
            self._led.append(step)
        return Reply(call_id, tool, shown)

    async def look(self, probe: Probe) -> ProbeLook:
        """One look at a probe of the plan."""
        seen = await self._exercise.look(probe)
        state: State = "skipped" if seen.denied not in PASSING else seen.state
        reason = self._redactor.text(seen.reason)
        told = {"probe": probe.id, "state": state, "reason": reason}
        return ProbeLook(state, reason, self._told(told, seen))

    async def look_at_claim(self, title: str, probe: Probe) -> ClaimLook:
        """One look at a claim; the same claim again gets what was answered now."""
        seen, review = await self._exercise.look_at_claim(probe)
        said: dict[str, Any] = {"claim": probe.id, "state": seen.state, "reason": seen.reason}
        if seen.state == "finding":
            said["then"] = "a person reviews it" if review else "proven again, then posted"
            decision = self.on_claim(title, "explored", "raised, to be proven 3 of 3", said["then"])
        else:
            why = seen.reason or "what was expected does hold"
            decision = self.on_claim(title, seen.state, "not promoted", why)
        self.claims[probe.id] = self._told(said, seen)
        return ClaimLook(decision, self.claims[probe.id])

    def on_claim(self, title: str, word: str, decision: str, why: str) -> Decision:
        """What is written down of a claim; `title` is masked already."""
        return Decision(
            f"claim ({word}): {title}",
            "promote what a driver says, or not",
            decision,
            self._redactor.text(why),
            "a person reads the run's findings",
            "findings are proven, never taken on a driver's word",
        )

    def _told(self, said: dict[str, Any], seen: Attempt) -> dict[str, Any]:
        results = [self._redactor.fields(result) for result in seen.results]
        return fitted(said | {"results": results})


class RepeatGuard:
    """Acts are done once: the same again gets the first answer, a third within the window ends the run."""

    def __init__(self) -> None:
        self._answers: dict[str, Mapping[str, Any]] = {}
        self._recent: deque[str] = deque(maxlen=WINDOW)

    def before(self, tool: str, args: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The first answer to an act that was done already, else None; RunOver when it is insisted on."""
        key = _act(tool, args)
        if key not in self._answers:
            return None
        self._recent.append(key)
        if self._recent.count(key) >= MOST:
            raise RunOver("agent_stuck", f"repeated_call: {tool} with the same arguments {MOST} times")
        return self._answers[key]

    def after(self, tool: str, args: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Keep the answer of an act that was done."""
        if key := _act(tool, args):
            self._recent.append(key)
            self._answers[key] = result


def _act(tool: str, args: Mapping[str, Any]) -> str:
    """The name of a call that changes something, by tool and resolved arguments; "" for any other."""
    if TOOLS[tool].effect not in (Effect.ACT, Effect.REPORT):
        return ""
    return f"{tool} {json.dumps(dict(args), sort_keys=True, default=str)}"
