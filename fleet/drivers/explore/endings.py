"""Requests that had no answer: whether each of them ends its server is asked once more, by itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fleet.drivers.desk import Question
from fleet.drivers.explore.pages import TOOL, first_page
from fleet.drivers.explore.port import Results
from fleet.personas.model import Step
from fleet.unanswered import RESET, said

PATIENCE = 20
MOST = 3
"""Such questions of one run: each may end the server, and its proof will again."""


class Endings:
    """What to ask about the requests of one run that had no answer."""

    def __init__(self) -> None:
        self._waiting: list[list[Question]] = []
        """Of each such request, what is asked in turn until it ends the server."""
        self._left = MOST
        self._patience, self._rests = PATIENCE, False
        """Turns for which a question waits while its server starts again and nothing is asked of it; whether
        it does now."""
        self.lockouts = 0
        """How often a platform locked us out after a request that had no answer."""

    def observe(self, question: Question, results: Results) -> None:
        """Look at the answers to a question: only its last call can be one without an answer."""
        if not self._left or not results or len(results) > len(question.steps):
            return
        step, first = question.steps[len(results) - 1], question.steps[0]
        if step.tool != TOOL or not closed(results[-1]) or set(step.args) & {"control", "alive", "repeat"}:
            return
        before = (first,) if step is not first and first.tool == TOOL else ()
        url = str(step.args["url"])
        urls = dict.fromkeys((url.partition("&")[0], url))  # a guess has many parameters: one may be enough
        steps = [Step(tool=TOOL, args={**step.args, "url": one, "alive": first_page(one)}) for one in urls]
        met = f"{url}, which closed the connection"
        self._waiting.append([Question((*before, one), minimal=True, led=met) for one in steps])
        self._left -= 1

    def due(self) -> list[Question]:
        """What to ask now, one at a time: each may end the server, or lock us out. `answered` must follow."""
        rests, self._rests = self._rests, False
        return self._waiting[0][:1] if self._waiting and not rests else []

    def answered(self, answered: Sequence[tuple[Question, Results]]) -> None:
        """The answers to what was due; without one, because a server that ended is not asked for a while, it
        stays due in a later turn."""
        if not any(results for _, results in answered) and self._patience:
            self._patience, self._rests = self._patience - 1, True
            return
        last = answered[-1][1][-1] if answered and answered[-1][1] else {}
        rest = self._waiting.pop(0)[1:] if self._waiting else []
        if last.get("locked_out"):  # the same request in fewer words, and one like it, lock us out again
            self.lockouts += 1
            self._waiting.clear()
        elif rest and not last.get("ended"):
            self._waiting.insert(0, rest)


def closed(result: Mapping[str, Any]) -> bool:
    """Whether a connection ended without an answer, before us or behind a gateway; one that was refused met a
    server that was not there."""
    return said(result, RESET) or result.get("status") == HTTPStatus.BAD_GATEWAY
