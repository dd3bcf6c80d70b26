"""The driver without a model that asks new questions: explorers in turn, a batch at a time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from random import Random

from fleet.drivers.desk import Desk, Driver, Question
from fleet.drivers.explore.notebook import Notebook
from fleet.drivers.explore.port import Explorer, Ground, MakeExplorer

BATCH = 48
"""Calls of one turn at most."""


def explorer(makers: Mapping[str, MakeExplorer], ground: Ground, notebook: Notebook, seed: str) -> Driver:
    """A driver of these explorers, the same for the same seed and notebook."""

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
            questions = [one for one in known[name].ask(min(BATCH, room.calls)) if room.acts or not one.acts]
            if not questions:
                continue
            waiting.append(name)
            asked += await _turn(desk, known[name], questions)
            notebook.write(name, known[name].state())
        return ", ".join(filter(None, (f"{asked} questions asked" if asked else "", why)))

    return drive


async def _turn(desk: Desk, asking: Explorer, questions: list[Question]) -> int:
    """One turn: pose the questions, and tell their explorer what was answered."""
    with suppress(TimeoutError):  # recorded as such; its findings are kept, its explorer learns nothing
        async with desk.turn() as turn:
            for question, results in zip(questions, await turn.pose(questions), strict=True):
                asking.tell(question, results)
    return len(questions)
