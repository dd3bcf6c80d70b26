"""The driver without a model that asks new questions: explorers in turn, a batch at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from random import Random

import anyio.to_thread

from fleet.drivers.desk import Desk, Driver, Question
from fleet.drivers.explore.endings import Endings
from fleet.drivers.explore.lockout import WHY, Lockout
from fleet.drivers.explore.notebook import Notebook
from fleet.drivers.explore.port import Discoverer, Ground, MakeExplorer, Results

BATCH = 48
"""Calls of one turn at most."""


async def untold() -> None:
    """For a run whose pace does not depend on it."""


def explorer(
    makers: Mapping[str, MakeExplorer],
    ground: Ground,
    notebook: Notebook,
    seed: str,
    discovered: Callable[[], Awaitable[None]] = untold,
) -> Driver:
    """A driver of these explorers, the same for the same seed and notebook.

    `discovered` is called when one of them ended while the platform still behaved in new ways.
    """

    async def drive(desk: Desk) -> str:
        known = {
            name: make(ground, Random(f"{seed}/{name}"), notebook.read(name)) for name, make in makers.items()
        }
        waiting, asked, why = list(known), 0, ""
        endings, lockout = Endings(), Lockout()
        while waiting:
            room = await desk.room()
            if room.calls <= 0:
                why = room.why
                break
            name = waiting.pop(0)
            # in a thread: what makes cases from a description computes for seconds at its first use
            asked_for = await anyio.to_thread.run_sync(known[name].ask, min(BATCH, room.calls))
            questions = list(_afforded(asked_for, room.acts))
            if not questions:
                continue
            answered = await _turn(desk, questions)
            asked += len(questions)
            if (first := lockout.suspected(answered)) and lockout.confirmed(await _turn(desk, [first])):
                why = WHY  # nothing is learned from these answers, and it asks no more
                continue
            waiting.append(name)
            for question, results in answered:
                known[name].tell(question, results)
                endings.saw(question, results)
            while unanswered := endings.due():
                endings.told(await _turn(desk, unanswered))
                asked += len(unanswered)
            notebook.write(name, known[name].state())
        if any(isinstance(one, Discoverer) and one.discovered for one in known.values()):
            await discovered()
        return ", ".join(filter(None, (f"{asked} questions asked" if asked else "", why)))

    return drive


def _afforded(questions: Iterable[Question], acts: int) -> Iterator[Question]:
    """Those without an act, and of those with acts the first that the run's room is for."""
    for one in questions:
        if one.acts <= max(0, acts):
            acts -= one.acts
            yield one


async def _turn(desk: Desk, questions: Sequence[Question]) -> list[tuple[Question, Results]]:
    """One turn: pose the questions; each with what was answered. None when the turn took too long: that is
    recorded, its findings are kept, and nothing is learned from it."""
    with suppress(TimeoutError):
        async with desk.turn() as turn:
            return list(zip(questions, await turn.pose(questions), strict=True))
    return []
