"""Whether a platform has locked the fleet out: then its answers say nothing, and asking on is rude. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from fleet.drivers.desk import Question
from fleet.drivers.explore.pages import TOOL, first_page
from fleet.drivers.explore.port import Results
from fleet.personas.model import Step

LOCKED = frozenset({403, 429})
"""Statuses of a platform that locks a caller out."""
LEAST = 8
"""Pages of one turn that are all refused, so that the first page is asked."""
LOCKOUTS = 2
"""Times that a platform locks the fleet out, each waited for, after which it asks nothing more in a run."""
LOCKED_OUT = "the platform locked us out after requests that it did not answer"
WHY = "the platform refuses every page now, its first one too"


class Lockout:
    """What one run saw of a platform's pages."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        """First pages that were shown in this run."""

    def suspected(self, answered: Iterable[tuple[Question, Results]]) -> Question | None:
        """What to ask when every page of a turn is refused: a first page that was shown before."""
        pages = [
            (str(step.args["url"]), result["status"])
            for question, results in answered
            for step, result in zip(question.steps, results, strict=False)
            if step.tool == TOOL and result.get("status")
        ]
        self._open |= {url for url, status in pages if url == first_page(url) and status < 400}
        if len(pages) < LEAST or not all(status in LOCKED for _, status in pages):
            return None
        first = first_page(pages[-1][0])
        look = Question((Step(tool=TOOL, args={"url": first}),), led="refusals in a row: are we locked out")
        return look if first in self._open else None

    @staticmethod
    def confirmed(answered: Iterable[tuple[Question, Results]]) -> bool:
        """Whether the first page is refused as well."""
        return any(result.get("status") in LOCKED for _, results in answered for result in results)
