"""A run waits for a person: no call is made, no jail runs, and no time passes for the run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, NoReturn, cast

import anyio

from fleet.chain.run_keys import RunKeys
from fleet.clock import Clock, iso_ms
from fleet.config.escalation import GRAVEST, Level, Trigger
from fleet.drivers.session import RunOver
from fleet.events.model import PauseWarned, QuestionAnswered, QuestionAsked, RunContinued, RunPaused
from fleet.gate.stop import stop
from fleet.runs.call.questions import (
    PersonQuestion,
    expire,
    ident_of,
    is_open,
    no_answer,
    put_question,
    question_of,
    questions,
    read_question,
)
from fleet.runs.context import RunContext
from fleet.text import counted, line

CHECK = "those whom it concerns know of it, and agree that the tests go on"
APPROVED = "approved"
LOOK_S = 1.0
"""Seconds between two looks for an answer."""


WARNED = (0.75, 0.95)
"""Shares of a pause's longest time after which somebody is notified."""


@dataclass(slots=True)
class Pause:
    """One pause; seconds. `ends`: the run does not go on after it."""

    limit_s: float
    todo: str
    clock: Clock
    began: float = field(init=False)
    warned: int = 0
    ends: bool = False

    def __post_init__(self) -> None:
        self.began = self.clock.monotonic()

    @property
    def took_s(self) -> float:
        return self.clock.monotonic() - self.began

    @property
    def left_s(self) -> float:
        return self.limit_s - self.took_s


@dataclass(slots=True)
class PersonsWord:
    """One run's way to a person: no call is made and no time passes for the run until there is an answer."""

    context: RunContext
    _looked: float = field(default=-math.inf, init=False)

    async def ask(self, trigger: Trigger, place: str, what: str, level: Level = GRAVEST) -> PersonQuestion:
        """The question with its answer. RunOver `stopped` where nobody answered what everything waits for."""
        world, run = self.context.fleet, self.context.run
        shown = world.redactor.text
        one = question_of(world.platform.name, run, self.context.persona, trigger, shown(place), shown(what))
        rung = self.context.gate.rung()
        known = line(f"{one.what}. {await self._known(rung)}", 1000)
        one = replace(one, what=known, level=level, rung=rung)
        section, journal = world.platform.escalation, world.journal
        asked = await put_question(journal, section, world.clock, one)
        return asked if asked.state != "open" else await self._answered(asked)

    async def _known(self, rung: str) -> str:
        """What a person decides by, besides the question: dial, scope, and what was asked in the last day."""
        world = self.context.fleet
        since = iso_ms(world.clock.now() - timedelta(days=1))
        asked = Counter(one.state for one in await questions(world.journal) if one.asked >= since)
        before = ", ".join(f"{count} {state}" for state, count in sorted(asked.items())) or "none"
        ends = world.platform.schedule.not_after
        scope = f"{counted(len(world.platform.web.never), 'place')} never asked" + (
            f", until {ends}" if ends else ""
        )
        return f"Dial {rung}; scope: {scope}; questions of the last day: {before}"

    async def pauses(self) -> None:
        """Wait while somebody has paused this run, or its schedule does. RunOver when that ends it."""
        world, now = self.context.fleet, self.context.fleet.clock.monotonic()
        if now - self._looked < LOOK_S:
            return
        self._looked = now
        await self._revoked()
        if until := world.platform.schedule.pause(world.clock.now()):
            limit_s, why = world.platform.escalation.wait_s("person"), f"schedule.pauses {until}"
            async with self._paused(
                why, limit_s, "the run ends as window_closed; the next one goes on"
            ) as pause:
                while world.platform.schedule.pause(world.clock.now()) and pause.left_s > 0:
                    await self._tick(pause)
                pause.ends = pause.left_s <= 0
            if pause.ends:
                raise RunOver("window_closed", f"{why} has lasted for {limit_s / 60:.0f} minutes")
        _, one = await read_question(
            self.context.fleet.journal, ident_of(self.context.fleet.platform.name, "person", self.context.run)
        )
        if one is not None and is_open(one, self.context.fleet.clock.now()):
            self.go_on(await self._answered(one))

    async def _revoked(self) -> None:
        """Forget what was approved for this run and has been taken back."""
        world, answers = self.context.fleet, self.context.gate.answers
        for asks in [name for name, said in answers.items() if said == APPROVED]:
            ident = ident_of(world.platform.name, "impact", world.redactor.text(asks))
            _, one = await read_question(world.journal, ident)
            if one is not None and one.state == "denied":
                answers[asks] = f"{one.closing.who} said no: {one.closing.why}"

    def go_on(self, one: PersonQuestion) -> None:
        """RunOver, unless somebody let the run go on."""
        if one.state != APPROVED:
            said = one.closing
            raise RunOver("cancelled", line(f"ended by {said.who} after {one.trigger}: {said.why}", 500))

    def stop(self, why: str) -> NoReturn:
        """STOP at once, after what nobody may decide on alone; a person says why the tests go on. RunOver."""
        world = self.context.fleet
        reading = stop(world.state, "the fleet", world.redactor.text(why), world.clock, check=CHECK)
        raise RunOver("stopped", line(reading.why, 500))

    @asynccontextmanager
    async def _paused(self, why: str, limit_s: float, todo: str) -> AsyncIterator[Pause]:
        """No call is made and no time passes for the run inside; on record with what is kept meanwhile."""
        world, run, emit = self.context.fleet, self.context.run, self.context.stream.emit
        kept = len(await world.journal.findings(run, ["raised"]))
        keys = len(RunKeys(world.folder(run)).labels())
        pause = Pause(limit_s, todo, world.clock)
        emit(RunPaused(why=why, limit_s=round(limit_s, 1), keys=keys, candidates=kept))
        with self.context.time.paused():
            yield pause
        emit(RunContinued(paused_s=round(pause.took_s, 1), ends=pause.ends))

    async def _tick(self, pause: Pause) -> None:
        """Wait a moment of a pause, and warn where it nears its end."""
        await anyio.sleep(LOOK_S)
        if pause.warned < len(WARNED) and pause.took_s >= WARNED[pause.warned] * pause.limit_s:
            pause.warned += 1
            took, left = round(pause.took_s, 3), round(pause.left_s, 3)
            self.context.stream.emit(
                PauseWarned(paused_s=took, limit_s=round(pause.limit_s, 3), left_s=left, todo=pause.todo)
            )

    async def _answered(self, one: PersonQuestion) -> PersonQuestion:
        world, emit = self.context.fleet, self.context.stream.emit
        emit(
            QuestionAsked(
                question=one.ident,
                trigger=one.trigger,
                place=one.place,
                what=one.what,
                level=one.level,
                until=one.until,
            )
        )
        world.signals.asked.set()
        waits = (datetime.fromisoformat(one.until) - world.clock.now()).total_seconds()
        todo = f"fleet runs answer {one.ident} approve|deny --reason …; {no_answer(one.trigger)}"
        async with self._paused(f"question {one.ident}", waits, todo) as pause:
            while is_open(one, world.clock.now()):
                await self._tick(pause)
                one = (await read_question(world.journal, one.ident))[1] or one
            if one.state == "open":
                one = await expire(world.journal, world.state, world.clock, one)
            pause.ends = one.state != "approved" and one.trigger != "impact"
        said = one.closing
        emit(
            QuestionAnswered(
                question=one.ident,
                answer=cast(Literal["approved", "denied", "expired"], one.state),
                who=said.who,
                role=said.role,
                why=said.why,
            )
        )
        if one.state == "expired" and one.trigger != "impact":
            why = f"nobody answered by {one.until}: {one.trigger}: {one.what}"
            raise RunOver("stopped", line(stop(world.state, "the fleet", why, world.clock).why, 500))
        return one
