"""A search on one program by hand: rounds in several jails, and each suspect confirmed in fresh ones.

Nothing is posted and no chain is touched. What jails answer are claims: only what single calls show to the
oracles in every one of `TRIES` fresh jails is a defect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from fleet.clock import Clock, SystemClock
from fleet.drivers.session import OUR_FAILURES, cause_of
from fleet.errors import JailError, Unreachable
from fleet.findings.proof import TRIES
from fleet.findings.repro import ReproCall, write_repro
from fleet.fuzzing.campaign import Campaign
from fleet.fuzzing.claims import PARTS, RoundClaim
from fleet.fuzzing.suspects import LATER, Suspect
from fleet.jail.model import Jail
from fleet.oracles.model import Exchange, Facts, Violation
from fleet.oracles.table import judge
from fleet.personas.model import Step
from fleet.runs.call.guest_protocol import answer, request_line
from fleet.text import line
from sandbox.programs.program import Program
from sandbox.spec import Context
from sandbox.tools import TOOLS

ROUND_S = 50.0
SHORTEST_S = 3.0
LOADER = 0.25
"""A round of the loader, in rounds of the compiler: fewer defects are to be found there."""
CALL_S = 45.0
"""Seconds of a single call: enough for a hang on a machine that this search keeps busy itself."""
SPOILED = 6
"""Looks that may fail for reasons of ours before fewer than TRIES count."""
FREE, LEAST_COUNTED = 0.7, 1 / 3
"""Processor time in a second of a round that need not wait for a processor, measured; a round with less of it
counts as that much shorter, down to this share of its length."""
MARGIN_S = 2.0
BROKEN = 3
"""Rounds in a row without an answer, after which the search gives up."""
RUN = "fuzz"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenDefect:
    """A suspect that the oracles saw. `confirmed` of `tries` looks showed `signature`."""

    part: str
    signature: str
    kind: str
    title: str
    repro: str
    size: int
    confirmed: int
    tries: int = TRIES

    def as_data(self) -> dict[str, Any]:
        """As `fleet fuzz --json` prints it."""
        return {
            "signature": self.signature,
            "class": self.kind,
            "title": self.title,
            "repro": self.repro,
            "size": self.size,
            "confirmed": self.confirmed,
            "tries": self.tries,
        }


@dataclass(slots=True, kw_only=True)
class FuzzSearch:
    """One invocation. `told` is called after each round and each defect."""

    program: Program
    jail: Jail
    campaign: Campaign
    seed: int
    grammar: str = ""
    told: Callable[[], None] = lambda: None
    by_clock: bool = False
    """Whether rounds count in full on a busy machine too."""
    clock: Clock = field(default_factory=SystemClock)
    executions: int = 0
    accepted: int = 0
    behaviours: int = 0
    seconds: float = 0.0
    rounds: int = 0
    lost: int = 0
    """Executions without a result, as the rounds say."""
    failed: int = 0
    """Rounds without an answer."""
    undecided: int = 0
    """Suspects of which no look could tell anything, at any time."""
    unshown: int = 0
    """Suspects that no look showed."""
    ways: set[str] = field(default_factory=set)
    """How executions shared the program's start."""
    _postponed: Counter[tuple[str, str]] = field(default_factory=Counter)
    _proven: dict[tuple[str, str], ProvenDefect] = field(default_factory=dict)
    _busy: set[tuple[str, str]] = field(default_factory=set)
    trouble: str = ""
    """Why the last round that did not work did not."""
    _fails: dict[str, int] = field(default_factory=dict)
    _turn: int = 0

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that the program has, and that can be searched."""
        there = {"compiler": self.program.command, "loader": self.program.loader}
        return tuple(part for part in PARTS if there[part] and self._fails.get(part, 0) < BROKEN)

    @property
    def defects(self) -> tuple[ProvenDefect, ...]:
        """What was shown so far, the smallest first."""
        return tuple(sorted(self._proven.values(), key=lambda one: (one.size, one.signature)))

    async def run(self, seconds: float, jobs: int) -> None:
        """Search for this long in each of several jails at once; suspects take their time besides.

        A round that waited for a processor counts as a shorter one, unless `by_clock`: what is found does not
        hang on what else the machine does, and the search takes up to 1 / LEAST_COUNTED times as long.
        """
        old = [(one.part, one.signature) for one in self.campaign.suspects]
        self.campaign.ask_again()
        async with anyio.create_task_group() as group:
            for _ in range(jobs):
                group.start_soon(self._work, seconds, frozenset(old))

    async def _work(self, seconds: float, old: frozenset[tuple[str, str]]) -> None:
        await self._confirm(old)
        whole = seconds / (1 + LOADER * (len(self.parts) - 1))
        each = min(ROUND_S, max(SHORTEST_S, whole / max(len(self.parts), 1)))
        left, start_s, counts = seconds, 0.0, 1.0
        # each part has one round at least
        while left / counts - start_s >= SHORTEST_S / 2 or self._turn < len(self.parts):
            if not self.parts:
                raise Unreachable(f"{BROKEN} rounds in a row did not work: {self.trouble}")
            started = self.clock.monotonic()
            claim = await self._round(max(min(each, left / counts - start_s), SHORTEST_S / 2))
            spent_s = self.clock.monotonic() - started
            free_s = FREE * claim.seconds if claim and not self.by_clock else 0.0
            counts = min(max(claim.cpu_s / free_s, LEAST_COUNTED), 1.0) if claim and free_s else 1.0
            left -= spent_s * counts
            start_s = max(spent_s - claim.seconds, 0.0) if claim else start_s  # what a round costs besides
            await self._confirm(old)
        for _ in range(LATER):  # no round comes after it, and no other work of this search
            await self._confirm(old)

    async def _round(self, seconds: float) -> RoundClaim | None:
        """What it says; None when it did not work."""
        part = self.campaign.due(self.parts)
        self._turn += 1
        seconds *= LOADER if part == "loader" and len(self.parts) > 1 else 1.0
        asked = self.campaign.begin_round(
            part, seed=self.seed, seconds=round(seconds, 1), grammar=self.grammar
        )
        result = await self.call("qa_fuzz", asked)
        if not result.get("ok"):
            self._fails[part] = self._fails.get(part, 0) + 1
            self.failed += 1
            self.trouble = f"{part}: {line(str(result.get('error')), 300)}"
            self.told()
            return None
        self._fails[part] = 0
        claim = self.campaign.merge(asked, result)
        self.rounds += 1
        self.executions += claim.executions
        self.accepted += claim.accepted
        self.lost += claim.lost
        self.behaviours += claim.behaviours
        self.seconds += claim.seconds
        self.ways.add(f"{part}: {claim.runner}")
        self.told()
        return claim

    async def _confirm(self, old: frozenset[tuple[str, str]]) -> None:
        """Look at every suspect that waits and that no other jail is at."""
        later = set[tuple[str, str]]()
        while True:
            waiting = [
                one for one in self.campaign.waiting if (one.part, one.signature) not in self._busy | later
            ]
            if not waiting:
                return
            suspect, key = waiting[0], (waiting[0].part, waiting[0].signature)
            self._busy.add(key)
            steps = suspect.steps()
            seen: list[tuple[Violation, ...]] = []
            for _ in range(TRIES + SPOILED):
                if len(seen) < TRIES and (one := await self._look(steps)) is not None:
                    seen.append(one)
            if not seen and self._postponed[key] < LATER:
                self._postponed[key] += 1
                later.add(key)
                self._busy.discard(key)
                continue
            self.undecided += not seen
            for found in seen:
                self.campaign.looked(suspect, shown=bool(found))
            if seen and not suspect.shown:
                self.unshown += 1
                if key in old:
                    self.campaign.forget(suspect)
            self._prove(suspect, steps, seen)

    def _prove(self, suspect: Suspect, steps: Sequence[Step], seen: Sequence[Sequence[Violation]]) -> None:
        """Count how often each violation was seen; one defect is listed once, with its smallest input."""
        for one in {v.sighting.signature: v for found in seen for v in found}.values():
            often = sum(any(v.sighting.signature == one.sighting.signature for v in found) for found in seen)
            name = one.sighting.signature if one.sighting.whole else suspect.signature
            made = ProvenDefect(
                part=suspect.part,
                signature=name,
                kind=suspect.kind,
                title=one.sighting.title,
                repro=write_repro(ReproCall(step.tool, dict(step.args)) for step in steps),
                size=suspect.size,
                confirmed=often,
            )
            before = self._proven.get((suspect.part, name))
            if before is None or (-before.confirmed, before.size) > (-made.confirmed, made.size):
                self._proven[suspect.part, name] = made
        self.told()

    async def _look(self, steps: Sequence[Step]) -> tuple[Violation, ...] | None:
        """What the oracles see in the answers to single calls, each in a fresh jail; None: could not look."""
        seen: list[Exchange] = []
        found: list[Violation] = []
        for step in steps:
            result = await self.call(step.tool, step.args)
            if cause_of(result) in OUR_FAILURES:
                return tuple(found) or None
            seen.append(Exchange(step.tool, step.args, result))
            found += judge(seen, Facts())
        return tuple(found)

    async def call(self, tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """One call in a fresh jail, without a way out; its answer, or why there is none."""
        spec = TOOLS[tool]
        guest_s = spec.wall_s or CALL_S
        context = Context(run=RUN, prefix=f"qa-{RUN}-", program=self.program, deadline_s=guest_s)
        try:
            outcome = await self.jail.call(
                request_line(spec, args, context), deadline_s=guest_s + MARGIN_S, resources=spec.resources
            )
            return answer(spec, outcome)
        except JailError as error:
            return {"ok": False, "error": str(error), "error_class": "internal"}
