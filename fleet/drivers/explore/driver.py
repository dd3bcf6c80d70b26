"""The driver without a model that asks new questions: explorers in turn, a batch at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from random import Random

import anyio.to_thread

from fleet.drivers.desk import Desk, Driver, Question
from fleet.drivers.explore.notebook import Notebook
from fleet.drivers.explore.port import Discoverer, Explorer, Ground, MakeExplorer

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
            waiting.append(name)
            asked += await _turn(desk, known[name], questions)
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


async def _turn(desk: Desk, asking: Explorer, questions: list[Question]) -> int:
    """One turn: pose the questions, and tell their explorer what was answered."""
    with suppress(TimeoutError):  # recorded as such; its findings are kept, its explorer learns nothing
        async with desk.turn() as turn:
            for question, results in zip(questions, await turn.pose(questions), strict=True):
                asking.tell(question, results)
    return len(questions)
