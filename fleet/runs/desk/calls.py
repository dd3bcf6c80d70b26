"""The calls of a driver: checked, made at most once if they change something, answered as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from fleet.drivers.desk import REPORT_FINDING, RUN_PROBE, Offer, Reply
from fleet.drivers.playbook import Attempt
from fleet.drivers.template import wants_name
from fleet.personas.model import Step
from fleet.runs.call.decision_file import Decision
from fleet.runs.call.guest_protocol import bad_args
from fleet.runs.call.replies import arguments, fitted, pointed, refusal, shaped
from fleet.runs.desk.offers import Finish, ReportFinding, RunProbe, offers, parsed
from fleet.runs.desk.plan import State
from fleet.runs.desk.repeat_guard import RepeatGuard
from fleet.runs.desk.state_file import RunState
from fleet.runs.desk.turn import OpenTurn
from fleet.runs.proof.claims import MAX_CLAIMS, claimed
from fleet.runs.proof.probe_runner import Exercise
from sandbox.spec import Effect
from sandbox.tools import TOOLS

MAX_LED = 15
"""Acts on one disposable name that a repro can hold before its last call."""
PASSING = frozenset({"", "rate", "withdrawn"})
"""Refusals that a retry may not meet; any other rule of the gate would refuse again."""


class CallKeeper(Protocol):
    """The part of the conductor that the calls need."""

    state: RunState

    def mark(self, probe: str, state: State, reason: str = "", *, tried: bool = False) -> None: ...

    def may_try(self, probe: str) -> bool: ...

    def count_claim(self) -> int: ...

    def decide(self, decision: Decision) -> None: ...

    async def more(self) -> str: ...


class Calls:
    """Answers the calls of one run's driver, one after the other."""

    def __init__(self, exercise: Exercise, keeper: CallKeeper) -> None:
        self._exercise, self._keeper = exercise, keeper
        self._session, self._persona = exercise.session, exercise.persona
        self._redactor = exercise.world.redactor
        self._acts = RepeatGuard()
        self._scratch = ""
        self._led: list[Step] = []
        """The driver's own acts on its disposable name, which lead to later answers about it."""
        self._claims: dict[str, dict[str, Any]] = {}

    def offers(self) -> tuple[Offer, ...]:
        """The tools on offer now."""
        return offers(self._persona.persona.tools, self._session.strikes)

    async def answer(self, turn: OpenTurn, call_id: str, tool: str, args: Mapping[str, Any] | str) -> Reply:
        """One call; RunOver when a fence ends the run."""
        if tool not in {one.name for one in self.offers()}:
            return await self._reject(turn, call_id, tool, f"no tool {tool!r} is on offer", "", args)
        plain = arguments(args)
        if isinstance(plain, str):
            return await self._reject(turn, call_id, tool, plain, "", {})
        if tool not in TOOLS:
            return await self._own(turn, call_id, tool, plain)
        if bad := bad_args(TOOLS[tool], plain):
            return await self._reject(turn, call_id, tool, *pointed(bad), plain)
        return await self._call(call_id, tool, plain)

    async def _reject(
        self, turn: OpenTurn, call_id: str, tool: str, error: str, pointer: str, args: Mapping[str, Any] | str
    ) -> Reply:
        turn.reject(tool, pointer, error)
        shown = args if isinstance(args, Mapping) else {}
        await self._session.reject(tool, f"{pointer}: {error}".lstrip(": "), shown, call_id=turn.proposed[-1])
        return refusal(call_id, tool, error, pointer)

    async def _call(self, call_id: str, tool: str, args: dict[str, Any]) -> Reply:
        """One gated tool. `{name}` is the same disposable name in all calls of a driver."""
        resolved = self._bindings(args)
        first = self._acts.before(tool, resolved)
        if first is not None:
            return Reply(call_id, tool, fitted({"repeated": True, **first}))
        answer = await self._session.call(tool, resolved, call_id=call_id[:128])
        if answer.denied:
            return refusal(call_id, tool, f"{answer.denied}: {answer.reason}")
        shown = shaped(self._redactor, answer.result)
        self._acts.after(tool, resolved, shown)
        await self._judge(tool, args, answer.result)
        return Reply(call_id, tool, shown)

    async def _judge(self, tool: str, args: dict[str, Any], result: Mapping[str, Any]) -> None:
        """Judge an answer outside the probes by the oracles; the acts before it are part of its repro."""
        step, named = Step(tool=tool, args=args), wants_name(args)
        led = tuple(self._led) if named else ()
        if len(led) < MAX_LED:
            await self._exercise.look_at_answer((*led, step), result)
        if named and TOOLS[tool].effect is Effect.ACT:
            self._led.append(step)

    def _bindings(self, args: dict[str, Any]) -> dict[str, Any]:
        bindings = self._session.bindings(fresh_name=wants_name(args) and not self._scratch)
        self._scratch = self._scratch or bindings.name
        resolved = self._exercise.world.bindings(self._exercise.run, self._scratch).resolve(args)
        return dict(resolved)

    async def _own(self, turn: OpenTurn, call_id: str, tool: str, args: dict[str, Any]) -> Reply:
        asked = parsed(tool, args)
        if isinstance(asked, str):
            error, pointer = pointed(asked)
            return await self._reject(turn, call_id, tool, error, pointer, args)
        if isinstance(asked, RunProbe):
            return await self._probe(turn, call_id, asked)
        if isinstance(asked, ReportFinding):
            return await self._claim(turn, call_id, asked)
        assert isinstance(asked, Finish)
        go_on = await self._keeper.more()
        if go_on:
            return refusal(call_id, tool, go_on)
        return Reply(call_id, tool, {"ok": True})

    async def _probe(self, turn: OpenTurn, call_id: str, asked: RunProbe) -> Reply:
        probe = next((one for one in self._persona.persona.probe if one.id == asked.probe), None)
        item = self._keeper.state.plan.get(asked.probe)
        if probe is None or item is None:
            error = f"no probe {asked.probe!r} in the plan"
            return await self._reject(turn, call_id, RUN_PROBE, error, "/probe", asked.model_dump())
        if not self._keeper.may_try(probe.id):
            again = {"probe": probe.id, "state": item.state, "reason": item.reason, "repeated": True}
            return Reply(call_id, RUN_PROBE, fitted(again))
        self._keeper.mark(probe.id, "inconclusive", "it was started but did not finish", tried=True)
        seen = await self._exercise.look(probe)
        state: State = "skipped" if seen.denied not in PASSING else seen.state
        reason = self._redactor.text(seen.reason)
        self._keeper.mark(probe.id, state, reason)
        told = {"probe": probe.id, "state": state, "reason": reason}
        return Reply(call_id, RUN_PROBE, self._told(told, seen))

    async def _claim(self, turn: OpenTurn, call_id: str, asked: ReportFinding) -> Reply:
        title = self._redactor.text(asked.title)
        if not asked.steps:
            self._decide(title, "needs-repro", "not promoted", "it came without calls that show it")
            return refusal(call_id, REPORT_FINDING, "needs-repro: name the calls that show it", "/steps")
        probe = claimed(asked, self._persona)
        if isinstance(probe, str):
            error, pointer = pointed(probe)
            return await self._reject(turn, call_id, REPORT_FINDING, error, pointer, {"title": title})
        if probe.id in self._claims:
            return Reply(call_id, REPORT_FINDING, fitted({"repeated": True, **self._claims[probe.id]}))
        if self._keeper.count_claim() >= MAX_CLAIMS:
            error = f"this run has made {MAX_CLAIMS} claims; further ones are refused"
            return await self._reject(turn, call_id, REPORT_FINDING, error, "", {"title": title})
        seen, review = await self._exercise.look_at_claim(probe)
        said: dict[str, Any] = {"claim": probe.id, "state": seen.state, "reason": seen.reason}
        if seen.state == "finding":
            said["then"] = "a person reviews it" if review else "proven again, then posted"
            self._decide(title, "explored", "raised, to be proven 3 of 3", said["then"])
        else:
            self._decide(title, seen.state, "not promoted", seen.reason or "the expectation holds")
        self._claims[probe.id] = self._told(said, seen)
        return Reply(call_id, REPORT_FINDING, self._claims[probe.id])

    def _told(self, said: dict[str, Any], seen: Attempt) -> dict[str, Any]:
        results = [self._redactor.fields(result) for result in seen.results]
        return fitted(said | {"results": results})

    def _decide(self, title: str, word: str, decision: str, why: str) -> None:
        fork = "promote the driver's claim, or not"
        title, why = f"claim ({word}): {title}", self._redactor.text(why)
        charter = "findings are proven, never taken on a driver's word"
        self._keeper.decide(
            Decision(title, fork, decision, why, "a person reads the run's findings", charter)
        )
