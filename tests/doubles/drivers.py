"""A desk in memory: a test double with the real one's limits and no platform.

It passes the same conformance suite as the desk of a run (tests/drivers/test_desk_conformance.py).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import anyio

from fleet.drivers.desk import (
    FAILURES,
    FINISH,
    MAX_REPLY,
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
from fleet.drivers.session import RunOver
from fleet.errors import BudgetExceeded
from fleet.events.model import Event, TurnEnded, TurnUsage
from fleet.personas.model import Step

Act = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""What a tool does: its result; one without `ok: true` counts against the tool's group."""

STUCK, SLOW, WITHDRAW = 3, 5, 3
"""Failed turns, timed-out turns, and failures of a tool group, each in a row (harness-facts 2.3)."""


def offer(name: str, group: str = "desk", **texts: str) -> Offer:
    """A tool whose arguments are all required texts."""
    properties = {key: {"type": "string", "description": about} for key, about in texts.items()}
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(texts),
        "additionalProperties": False,
    }
    return Offer(name=name, description=f"{name} of the desk in memory", parameters=schema, group=group)


async def look(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """The default tool of a desk: always answers ok."""
    return {"ok": True, "status": 200, "text": f"you asked for {args['url']}"}


LOOK = offer("qa_fetch", "look", url="what to fetch")


@dataclass(slots=True, kw_only=True)
class MemoryDesk:
    """Records a driver's actions in lists; `stop` ends the run at the next check, like a STOP file."""

    tools: Mapping[str, tuple[Offer, Act]] = field(default_factory=lambda: {LOOK.name: (LOOK, look)})
    probes: Sequence[str] = ("first", "second")
    system: str = "You test a platform."
    max_turns: int = 50
    turn_timeout_s: float = 10.0
    max_continuations: int = 10
    tokens: int | None = 1_000_000
    """Most tokens that may be reserved; None for a desk without a model budget."""
    stop: str = ""
    answers: Callable[[str, Mapping[str, Any]], Mapping[str, Any]] = field(default=lambda tool, args: {})
    """Answers an explorer's calls; an empty one is a refusal."""
    calls: int = 1_000
    """How many of them are left."""
    requests_of: Callable[[Step], int] = field(default=lambda step: 1)

    turns: list[TurnEnded] = field(default_factory=list)
    shown: list[Event] = field(default_factory=list)
    asked: list[tuple[str, str, Mapping[str, Any] | str]] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    posed: list[Step] = field(default_factory=list)
    findings: list[Mapping[str, Any]] = field(default_factory=list)
    reserved: list[int] = field(default_factory=list)
    settled: list[TurnUsage | None] = field(default_factory=list)
    withdrawn: set[str] = field(default_factory=set)
    left: dict[str, Left] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)
    continuations: int = 0
    _closed: set[str] = field(default_factory=set)
    _streaks: dict[str, int] = field(default_factory=dict)
    _over: RunOver | None = None
    _seat: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def turn_s(self) -> float:
        return self.turn_timeout_s

    def brief(self, probe: str = "") -> Brief:
        open_ones = "\n".join(f"- [ ] {one}" for one in self._open() if probe in ("", one))
        return Brief(system=self.system, plan=open_ones or "nothing is left to do", digests={})

    def offers(self) -> tuple[Offer, ...]:
        own = (
            offer(RUN_PROBE, probe="id of the probe"),
            offer(REPORT_FINDING, title="what is wrong", steps="JSON of the calls", expect="what must hold"),
            offer(FINISH, detail="why"),
        )
        return (*own, *(one for one, _ in self.tools.values() if one.group not in self.withdrawn))

    def next_probe(self, besides: Collection[str] = ()) -> str:
        return next((one for one in self._open() if one not in besides), "")

    @asynccontextmanager
    async def turn(self, probe: str = "") -> AsyncIterator[Turn]:
        async with self._seat, self._turn(probe) as turn:
            yield turn

    @asynccontextmanager
    async def _turn(self, probe: str) -> AsyncIterator[Turn]:
        self._look()
        if len(self.turns) >= self.max_turns:
            raise self._end("max_turns", f"{self.max_turns} turns")
        started, turn = anyio.current_time(), MemoryTurn(self, probe)
        try:
            with anyio.fail_after(self.turn_timeout_s):
                yield turn
        except TimeoutError:
            turn.failure = "turn_timeout"
            raise
        finally:
            turn.is_open = False
            self._record(turn, anyio.current_time() - started)

    async def more(self, probe: str = "") -> str:
        self._look()
        if not (left := self._left(probe)):
            return ""
        if self.continuations >= self.max_continuations:
            raise self._end("max_continuations", f"asked to continue {self.continuations} times")
        self.continuations += 1
        return f"The plan is not done. Continue with the probe {left}."

    @property
    def requests(self) -> int:
        return sum(map(self.requests_of, self.posed))

    async def room(self) -> Allowance:
        return Allowance(0 if self.stop or self._over else self.calls, acts=self.calls)

    def decide(self, choice: Choice, questions: Sequence[Question]) -> Sequence[Question]:
        self.choices.append(choice)
        return questions

    def leave(self, left: Left) -> None:
        self.left[left.part] = left

    async def reserve(self, *, tokens: int) -> MemoryReserved:
        if self.tokens is None or sum(self.reserved) + tokens > self.tokens:
            raise BudgetExceeded(f"{tokens} tokens are not covered")
        self.reserved.append(tokens)
        return MemoryReserved(self, len(self.reserved) - 1)

    def answer(self, step: Step) -> Mapping[str, Any]:
        """The answer to one call of an explorer's question."""
        self.calls -= 1
        self.posed.append(step)
        return self.answers(step.tool, step.args)

    def _left(self, probe: str) -> str:
        return next((one for one in self._open() if probe in ("", one)), "")

    def _open(self) -> Iterable[str]:
        return (probe for probe in self.probes if probe not in self._closed)

    def _look(self) -> None:
        if self._over is not None:
            raise self._over
        if self.stop:
            raise self._end("stopped", self.stop)
        if self._streaks.get("failed", 0) >= STUCK:
            raise self._end("agent_stuck", f"{STUCK} turns in a row failed")
        if self._streaks.get("turn_timeout", 0) >= SLOW:
            raise self._end("budget_exhausted", "inference_latency")

    def _end(self, outcome: str, detail: str) -> RunOver:
        self._over = RunOver(outcome, detail)
        return self._over

    def _count(self, streak: str, failed: bool) -> int:
        self._streaks[streak] = self._streaks.get(streak, 0) + 1 if failed else 0
        return self._streaks[streak]

    def _record(self, turn: MemoryTurn, seconds: float) -> None:
        self._count("failed", bool(turn.failure) and turn.failure != "turn_timeout")
        self._count("turn_timeout", turn.failure == "turn_timeout")
        index = len(self.turns) + 1
        proposed, usage = tuple(turn.proposed), total(turn.usages)
        self.turns.append(
            TurnEnded(index=index, proposed=proposed, usage=usage, failure=turn.failure, seconds=seconds)
        )

    async def _answer(self, probe: str, call_id: str, tool: str, args: Mapping[str, Any] | str) -> Reply:
        self._look()
        self.asked.append((call_id, tool, args))
        known = {one.name: one for one in self.offers()}
        if tool not in known:
            return _error(call_id, tool, "unknown tool", "")
        if isinstance(args, str):
            return _error(call_id, tool, "the arguments are not a JSON object", "")
        if (bad := _bad(known[tool], args)) is not None:
            return _error(call_id, tool, *bad)
        if tool in self.tools:
            return await self._act(call_id, tool, args)
        return self._own(probe, call_id, tool, args)

    async def _act(self, call_id: str, tool: str, args: Mapping[str, Any]) -> Reply:
        about, act = self.tools[tool]
        result = await act(args)
        failed = not result.get("ok")
        if self._count(f"group:{about.group}", failed) >= WITHDRAW:
            self.withdrawn.add(about.group)
        return Reply(call_id, tool, _cut(result), is_error=failed)

    def _own(self, probe: str, call_id: str, tool: str, args: Mapping[str, Any]) -> Reply:
        if tool == RUN_PROBE and args["probe"] not in self.probes:
            return _error(call_id, tool, "no such probe", "/probe")
        if tool == RUN_PROBE:
            self._closed.add(args["probe"])
        if tool == REPORT_FINDING:
            self.findings.append(dict(args))
        if tool == FINISH and (left := self._left(probe)):
            return _error(call_id, tool, f"the plan is not done: {left}", "")
        return Reply(call_id, tool, {"ok": True})


@dataclass(frozen=True, slots=True)
class MemoryReserved:
    """What one model call set aside, by its place in the desk's list."""

    desk: MemoryDesk
    at: int

    async def settle(self, usage: TurnUsage | None) -> None:
        self.desk.settled.append(usage)
        if usage and usage.input_tokens is not None and usage.output_tokens is not None:
            self.desk.reserved[self.at] = usage.input_tokens + usage.output_tokens


@dataclass(slots=True)
class MemoryTurn:
    """One turn at a desk in memory; a closed one accepts nothing."""

    desk: MemoryDesk
    probe: str = ""
    is_open: bool = True
    failure: str = ""
    proposed: list[str] = field(default_factory=list)
    usages: list[TurnUsage] = field(default_factory=list)
    one_at_a_time: anyio.Lock = field(default_factory=anyio.Lock)

    async def ask(self, call_id: str, tool: str, args: Mapping[str, Any] | str) -> Reply:
        async with self.one_at_a_time:
            if not self.is_open:
                raise RuntimeError("this turn is over")
            self.proposed.append(call_id)
            reply = await self.desk._answer(self.probe, call_id, tool, args)
            self.desk.replies.append(reply)
            return reply

    async def pose(self, questions: Sequence[Question]) -> Sequence[Sequence[Mapping[str, Any]] | None]:
        async with self.one_at_a_time:
            if not self.is_open:
                raise RuntimeError("this turn is over")
            return [list(takewhile(bool, map(self.desk.answer, question.steps))) for question in questions]

    def show(self, event: Event) -> None:
        if self.is_open:
            self.desk.shown.append(event)

    def used(self, usage: TurnUsage) -> None:
        if self.is_open:
            self.usages.append(usage)

    def failed(self, failure: str, detail: str = "") -> None:
        if failure not in FAILURES:
            raise ValueError(f"{failure!r} is not a reason why a turn fails")
        self.failure = failure


def total(usages: Sequence[TurnUsage]) -> TurnUsage | None:
    """The sum; a number that one of them lacks is unknown in the sum."""
    if not usages:
        return None
    sums: dict[str, Any] = {"model": usages[-1].model}
    for name in ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "model_calls"):
        numbers = [getattr(one, name) for one in usages]
        sums[name] = None if None in numbers else sum(numbers)
    return TurnUsage(**sums)


def _bad(about: Offer, args: Mapping[str, Any]) -> tuple[str, str] | None:
    properties = about.parameters["properties"]
    for key in args:
        if key not in properties:
            return "unknown argument", f"/{key}"
    for key in properties:
        if not isinstance(args.get(key), str):
            return "expected a text", f"/{key}"
    return None


def _error(call_id: str, tool: str, error: str, pointer: str) -> Reply:
    return Reply(call_id, tool, {"error": error, "pointer": pointer}, is_error=True)


def _cut(result: Mapping[str, Any]) -> Mapping[str, Any]:
    text = json.dumps(result, ensure_ascii=True, default=str)
    return result if len(text) <= MAX_REPLY else {"cut": f"{text[: MAX_REPLY // 2]} […cut]"}
