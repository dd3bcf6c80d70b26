"""The explorer of a platform's programs: rounds of qa_fuzz, and single calls that show what they claim.

It asks in turns: suspects first, by qa_compile in fresh jails, where the oracles judge them; then the next
round, of the compiler and the loader alternately. A suspect of which a busy machine tells nothing is asked
again after the next round, or at the end. The notebook keeps the campaign, so that each run goes deeper than
the one before. No I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from fleet.config.compiler import CompilerSection
from fleet.drivers.desk import Question
from fleet.drivers.explore.port import ExplorerContext, Results
from fleet.drivers.session import PASSING, cause_of
from fleet.fuzzing.campaign import Campaign
from fleet.fuzzing.suspects import LATER, Suspect
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from fleet.personas.model import Step

FUZZ = "qa_fuzz"
COMPILE = "qa_compile"
TOOLS = (FUZZ, COMPILE)
ROUND_S = 20.0
SHORTEST_S = 4.0
"""A shorter round would mostly start the program and repeat its corpus."""
ROUNDS = 10
"""Rounds of one run at most."""
DRY = 3
"""Rounds of each part without new behaviour, after which a run asks for no more."""
ASKED = 0.75
"""The share of a run's time for questions that rounds may have; the rest is for suspects."""
SUSPECTS = 8
"""Suspects of one turn: each takes up to twenty seconds, when it does not end."""


@dataclass(frozen=True, slots=True)
class FuzzRound(Question):
    """A round of the campaign."""

    @property
    def why(self) -> str:
        return "the part of the compiler that has had the fewest rounds for what they brought"


@dataclass(frozen=True, slots=True)
class SuspectLook(Question):
    """Single calls that show a suspect, or do not."""

    suspect: Suspect

    @property
    def why(self) -> str:
        return "an input that looked wrong in a round"


def planned(seconds: float, parts: int) -> tuple[int, float]:
    """How many rounds of how many seconds fit into a run's time for questions; 0 seconds: it is not known."""
    room = seconds * ASKED if seconds else ROUNDS * ROUND_S
    each = min(ROUND_S, max(SHORTEST_S, room / max(2 * parts, 1)))
    return min(int(room / each), ROUNDS), round(each, 1)


class Programs:
    """Implements the explorers' port for a compiler and a loader."""

    def __init__(self, context: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> None:
        compiler = context.platform.compiler
        self._facts = Facts.of(context.platform)
        self._parts = [one for one in ("compiler", "loader") if compiler_has(compiler, one)]
        self._left, self._seconds = planned(context.seconds, len(self._parts))
        self._campaign = Campaign.of(state)
        self._campaign.start_from("compiler", context.start.sources)
        self._grammar = context.start.grammar
        self._seed = chance.getrandbits(31)
        self._quiet = 0
        self._asked = False
        self._looked_at = set[tuple[str, str]]()
        self._postponed = Counter[tuple[str, str]]()
        self._later = set[tuple[str, str]]()

    @property
    def discovered(self) -> bool:
        """Whether the last round of a part still met new behaviour."""
        return self._asked and not self._campaign.dry

    def ask(self, most: int) -> Sequence[Question]:
        if looks := self._looks(most):
            return looks
        self._looked_at -= self._later  # time has passed, or no round comes any more
        self._later.clear()
        if most < 1 or self._left <= 0 or not self._parts or self._quiet >= DRY * len(self._parts):
            return self._looks(most)
        self._left -= 1
        part = self._campaign.due(self._parts)
        args = self._campaign.begin_round(part, seed=self._seed, seconds=self._seconds, grammar=self._grammar)
        return (FuzzRound((Step(tool=FUZZ, args=args),)),)

    def _looks(self, most: int) -> Sequence[SuspectLook]:
        """At the suspects that wait, as far as there is room for their calls."""
        looks: list[SuspectLook] = []
        room = most
        for one in self._campaign.waiting:
            steps, key = one.steps(), (one.part, one.signature)
            if len(steps) <= room and len(looks) < SUSPECTS and key not in self._looked_at:
                room -= len(steps)
                self._looked_at.add(key)
                looks.append(SuspectLook(steps, one, minimal=True))
        return tuple(looks)

    def learn(self, question: Question, results: Results) -> None:
        if isinstance(question, SuspectLook):
            calls = zip(question.steps, results, strict=False)
            seen = [Exchange(step.tool, step.args, result) for step, result in calls]
            shown = any(judge(seen[: at + 1], self._facts) for at in range(len(seen)))
            could = len(results) == len(question.steps) and not any(one.get("error_class") for one in results)
            key = question.suspect.part, question.suspect.signature
            if shown or could:  # calls that could not look say nothing of it
                self._campaign.looked(question.suspect, shown=shown)
            elif self._postponed[key] < LATER and any(cause_of(one) in PASSING for one in results):
                self._postponed[key] += 1
                self._later.add(key)  # else a later run asks again
        elif results and results[0].get("ok"):
            args = question.steps[0].args
            self._campaign.merge(args, results[0])
            self._quiet = self._quiet + 1 if self._campaign.of_part[args["part"]].dry else 0
            self._asked = True
        else:  # it cannot be searched here now: not again in this run
            self._parts = [one for one in self._parts if one != question.steps[0].args["part"]]

    def state(self) -> Mapping[str, Any]:
        return self._campaign.state()


def compiler_has(compiler: CompilerSection, part: str) -> bool:
    """Whether a profile has this part."""
    return bool(compiler.command if part == "compiler" else compiler.loader)


make = Programs
