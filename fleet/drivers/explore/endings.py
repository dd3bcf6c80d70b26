"""Requests that had no answer: whether each of them ends its server is asked once more, by itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fleet.drivers.desk import Question
from fleet.drivers.explore.port import Results
from fleet.personas.model import Step
from fleet.unanswered import RESET, said

TOOL = "qa_fetch"
MOST = 3
"""Such questions of one run: each may end the server, and its proof will again."""


class Endings:
    """What to ask about the requests of one run that had no answer."""

    def __init__(self) -> None:
        self._waiting: list[Question] = []
        self._left = MOST

    def saw(self, question: Question, results: Results) -> None:
        """Look at the answers to a question: only its last call can be one without an answer."""
        if not self._left or not results or len(results) > len(question.steps):
            return
        step, first = question.steps[len(results) - 1], question.steps[0]
        if step.tool != TOOL or not closed(results[-1]) or set(step.args) & {"control", "alive", "repeat"}:
            return
        again = Step(tool=TOOL, args={**step.args, "alive": first_page(str(step.args["url"]))})
        before = (first,) if step is not first and first.tool == TOOL else ()
        self._waiting.append(Question((*before, again), minimal=True))
        self._left -= 1

    def due(self) -> list[Question]:
        """What to ask now."""
        waiting, self._waiting = self._waiting, []
        return waiting


def closed(result: Mapping[str, Any]) -> bool:
    """Whether a connection ended without an answer, before us or behind a gateway; one that was refused met a
    server that was not there."""
    return said(result, RESET) or result.get("status") == HTTPStatus.BAD_GATEWAY


def first_page(url: str) -> str:
    """That of the same server, in a repro's form."""
    scheme, mark, rest = url.partition("://")
    host = (rest if mark else scheme).partition("/")[0].partition("?")[0]
    return f"{scheme}{mark}{host}/" if mark else f"{host}/"
