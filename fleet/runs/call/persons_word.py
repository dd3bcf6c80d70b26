"""A run waits for a person: no call is made, no jail runs, and no time passes for the run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal, NoReturn, cast

import anyio

from fleet.clock import iso_ms
from fleet.config.escalation import GRAVEST, Level, Trigger
from fleet.drivers.session import RunOver
from fleet.events.model import QuestionAnswered, QuestionAsked
from fleet.gate.stop import stop
from fleet.runs.call.questions import (
    PersonQuestion,
    expire,
    ident_of,
    is_open,
    put_question,
    question_of,
    questions,
    read_question,
)
from fleet.runs.context import RunContext
from fleet.text import counted, line

CHECK = "those whom it concerns know of it, and agree that the tests go on"
LOOK_S = 1.0
"""Seconds between two looks for an answer."""


@dataclass(slots=True)
class PersonsWord:
    """One run's way to a person: no call is made and no time passes for the run until there is an answer."""

    context: RunContext
    _looked: float = field(init=False)

    def __post_init__(self) -> None:
        self._looked = self.context.fleet.clock.monotonic()

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
        """Wait while somebody has paused this run, or everything that asks a person has to. RunOver."""
        now = self.context.fleet.clock.monotonic()
        if now - self._looked < LOOK_S:
            return
        self._looked = now
        _, one = await read_question(
            self.context.fleet.journal, ident_of(self.context.fleet.platform.name, "person", self.context.run)
        )
        if one is not None and is_open(one, self.context.fleet.clock.now()):
            self.go_on(await self._answered(one))

    def go_on(self, one: PersonQuestion) -> None:
        """RunOver, unless somebody let the run go on."""
        if one.state != "approved":
            said = one.closing
            raise RunOver("cancelled", line(f"ended by {said.who} after {one.trigger}: {said.why}", 500))

    def stop(self, why: str) -> NoReturn:
        """STOP at once, after what nobody may decide on alone; a person says why the tests go on. RunOver."""
        world = self.context.fleet
        reading = stop(world.state, "the fleet", world.redactor.text(why), world.clock, check=CHECK)
        raise RunOver("stopped", line(reading.why, 500))

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
        with self.context.time.paused():
            while is_open(one, world.clock.now()):
                await anyio.sleep(LOOK_S)
                one = (await read_question(world.journal, one.ident))[1] or one
        if one.state == "open":
            one = await expire(world.journal, world.state, world.clock, one)
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
