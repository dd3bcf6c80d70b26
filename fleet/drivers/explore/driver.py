"""The driver without a model that asks new questions: explorers in turn, a batch at a time; the one whose
questions were the fewest requests so far is next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from random import Random

import anyio

from fleet.drivers.desk import Allowance, Choice, Desk, Driver, Left, Question
from fleet.drivers.explore.endings import Endings
from fleet.drivers.explore.lockout import LOCKED_OUT, LOCKOUTS, WHY, Lockout
from fleet.drivers.explore.notebook import Notebook
from fleet.drivers.explore.port import Discoverer, Explorer, ExplorerContext, MakeExplorer, Reporter, Results
from fleet.events.model import Alternative
from fleet.text import counted, line

BATCH = 48
"""Calls of one turn at most."""
FIRST = 12
"""Calls of an explorer's first turn; each may have twice as many as the one before, so that cheap questions
of all of them come before a slow site is read to its end, and what they show is proven between."""
COUNTED = 1_000
"""Questions up to which those are counted that an explorer would have asked next, or looked through for what
comes first."""
Order = Callable[[Question], int]
"""The place of a question: 0 is first."""
NO_ROOM = "its run had no room for more"
DOUBTS = 8
"""Turns of which nothing is likely enough to be answered, after which an explorer waits for the next run."""
NAMED = 3
"""Explorers that are named one by one as what was not chosen."""
STARVED = 0.5
"""An explorer that asked less than this share of its questions was cut short."""


async def ignore_discovery() -> None:
    """For a run whose pace does not depend on it."""


def explorer(
    makers: Mapping[str, MakeExplorer],
    context: ExplorerContext,
    notebook: Notebook,
    seed: str,
    discovered: Callable[[], Awaitable[None]] = ignore_discovery,
    order: Callable[[], Order | None] = lambda: None,
) -> Driver:
    """A driver of these explorers, the same for the same seed and notebook; `order` is asked at
    each turn what comes first.

    `discovered` is called when one of them ended while the platform still behaved in new ways.
    """

    async def drive(desk: Desk) -> str:
        known = {
            name: ExplorerTurns(
                name,
                make(context, Random(f"{seed}/{name}"), notebook.read(name)),
                notebook.questions(name),
                order,
            )
            for name, make in makers.items()
        }
        why = "the time for exploring is over (budget.wall in the persona file)"
        try:
            why = await _rounds(desk, known, notebook)
        finally:
            with anyio.CancelScope(shield=True):
                await _leave(desk, known.values(), why)
        if any(isinstance(one.explorer, Discoverer) and one.explorer.discovered for one in known.values()):
            await discovered()
        asked = sum(one.asked for one in known.values())
        return ", ".join(filter(None, (f"{asked} questions asked" if asked else "", why)))

    return drive


@dataclass(slots=True)
class ExplorerTurns:
    """One explorer in a run: what it asked, and the questions that it made and that have no answer yet.

    `held` are posed before new ones, in this run or the next: an explorer may know them as asked already.
    """

    name: str
    explorer: Explorer
    held: list[Question]
    order: Callable[[], Order | None] = lambda: None
    limited: list[Question] = field(default_factory=list)
    """Acts that a limit of the platform's rate kept from an answer: the next run poses them."""
    doubted: list[Question] = field(default_factory=list)
    """Questions of targets that mostly did not answer: the next run poses them too."""
    asked: int = 0
    turns: int = 0
    calls: int = 0
    """That its last turn could have."""
    requests: int = 0
    """That its turns took."""
    doubts: int = 0
    """Turns whose questions were all unlikely to be answered."""
    is_over: bool = False
    """Whether it has no other questions, those that are held aside."""
    why: str = ""
    """Why it could not ask those that it holds, though others could go on."""
    _again: set[str] = field(default_factory=set)
    _posed: Sequence[Question] = ()
    """Those of the turn that goes on: a run that is cut off has no answers to them."""
    _earlier: frozenset[str] = frozenset()
    """Questions of another run: their answers are judged, and teach this instance nothing."""

    def __post_init__(self) -> None:
        self._earlier = frozenset(map(_spelled, self.held))

    async def questions(self, room: Allowance) -> list[Question]:
        """The next questions that the room is for; none when there are no others in this run."""
        self.calls, self.turns = self.next_calls, self.turns + 1
        calls, acts, chosen = min(self.calls, room.calls), max(0, room.acts), list[Question]()
        if (order := self.order()) is not None:
            await self._look_ahead(order)
            self.held.sort(key=order)
        before = {_spelled(one) for one in self.held}
        while not chosen:
            space = calls - sum(len(one.steps) for one in self.held)
            fresh = await self._fresh(space)
            waiting, self.held = (*self.held, *fresh), []
            for one in waiting:
                if len(one.steps) <= calls and one.acts <= acts:
                    chosen.append(one)
                    calls, acts = calls - len(one.steps), acts - one.acts
                else:
                    self.held.append(one)
            if not {_spelled(one) for one in fresh} - before:
                self.is_over = not chosen and space > 0
                break
            before |= {_spelled(one) for one in fresh}
        self._posed = chosen
        return chosen

    @property
    def kept(self) -> list[Question]:
        """What the notebook keeps for the next run."""
        return [*self.held, *self.limited, *self.doubted]

    @property
    def next_calls(self) -> int:
        """That its next turn can have."""
        return min(BATCH, FIRST << min(self.turns, 8))

    async def _look_ahead(self, order: Order) -> None:
        """Until one of its questions comes first, or it has no other ones."""
        known = {_spelled(one) for one in self.held}
        while len(self.held) < COUNTED and not any(order(one) == 0 for one in self.held):
            fresh = [one for one in await self._fresh(BATCH) if _spelled(one) not in known]
            if not fresh:
                return
            self.held += fresh
            known.update(map(_spelled, fresh))

    async def _fresh(self, calls: int) -> Sequence[Question]:
        # in a thread: what makes cases from a description computes for seconds at its first use
        return await anyio.to_thread.run_sync(self.explorer.ask, calls) if calls > 0 else ()

    def answered(
        self, posed: Sequence[Question], answers: Sequence[Results | None]
    ) -> list[tuple[Question, Results]]:
        """Count a turn; what was not begun, or had no answer in time, is posed once more, an act only if it
        was not begun."""
        self._posed, told = (), []
        for one, results in zip_longest(posed, answers):
            late = not answers
            if results is None and not (late and one.acts) and _spelled(one) not in self._again:
                self._again.add(_spelled(one))
                self.held.append(one)
                continue
            if one.acts and results and results[-1].get("error_class") == "busy":
                self.limited.append(one)
            self.asked += 1
            told += [] if late or _spelled(one) in self._earlier else [(one, results or ())]
        return told

    async def left(self) -> int:
        """How many questions it had left, as far as it knew them."""
        found = {_spelled(one) for one in (*self.held, *self._posed)}
        with suppress(Exception):  # only a figure of the report: an explorer at its end may be in any state
            while not self.is_over and len(found) < COUNTED:
                more = {_spelled(one) for one in await self._fresh(BATCH)} - found
                self.is_over = not more
                found |= more
        return len(found)


async def _rounds(desk: Desk, known: Mapping[str, ExplorerTurns], notebook: Notebook) -> str:
    """Pose questions while there is room; why it ended before the explorers did, "" if it did not."""
    waiting, why = list(known.values()), ""
    endings, lockout = Endings(), Lockout()
    while waiting:
        room = await desk.room()
        if room.calls <= 0:
            return room.why
        waiting.remove(one := min(waiting, key=lambda each: each.requests))
        before = desk.requests
        questions = await one.questions(room)
        if not questions:
            one.why = room.why if any(question.acts > room.acts for question in one.held) else ""
            notebook.hold(one.name, one.kept)
            continue
        likely = desk.decide(_choice(one, waiting, questions), questions)
        one.doubted += [question for question in questions if question not in likely]
        if not likely:
            notebook.hold(one.name, one.kept)
            one.doubts += 1
            waiting += [one] if one.doubts < DOUBTS else []
            continue
        answered = one.answered(likely, await _turn(desk, likely))
        if first := lockout.suspected(answered):
            looks = [(first, results or ()) for results in await _turn(desk, [first])]
            if lockout.confirmed(looks):
                why = WHY  # nothing is learned from these answers, and it asks no more
                continue
        waiting.append(one)
        for question, results in answered:
            one.explorer.learn(question, results)
            endings.observe(question, results)
        while unanswered := endings.due():
            found = zip(unanswered, await _turn(desk, unanswered), strict=False)
            endings.answered([(question, results or ()) for question, results in found])
            one.asked += len(unanswered)
        one.requests += desk.requests - before
        notebook.hold(one.name, one.kept)
        notebook.write(one.name, one.explorer.state())
        if endings.lockouts >= LOCKOUTS:
            return LOCKED_OUT
    return why


def _choice(turns: ExplorerTurns, waiting: Sequence[ExplorerTurns], questions: Sequence[Question]) -> Choice:
    """Why these questions are asked now, and what is not."""
    led = Counter(one.why or "what earlier answers showed" for one in questions)
    tools = ", ".join(dict.fromkeys(step.tool for question in questions for step in question.steps))
    others = sorted(waiting, key=lambda each: each.requests)
    asks, steps = counted(len(questions), "question"), sum(len(each.steps) for each in questions)
    known = f"{counted(turns.asked, 'answer')} of this run and its notes of earlier ones"
    instead = [
        Alternative(
            action=f"questions of {' and '.join(each.name for each in several)}",
            category="lower_priority",
            rationale=f"had {min(each.requests for each in several)} requests or more so far",
            comparison=f"{turns.name} had {turns.requests}",
            outcome="answers of another part of the platform",
            feasibility=f"{sum(len(each.held) for each in several)} are known, and others may come",
            resources=f"at most {sum(each.next_calls for each in several)} calls",
        )
        for several in (*([each] for each in others[:NAMED]), others[NAMED:])
        if several
    ]
    instead += [
        Alternative(
            action=f"more questions of {turns.name} at once",
            category="resource_intensive",
            rationale=f"turn {turns.turns} may have {turns.calls} calls; what they show is proven first",
            comparison=f"{steps} calls now; {len(turns.held)} questions that it holds come in its next turn",
            outcome="the same answers, earlier",
            resources=f"up to {BATCH} calls",
        ),
        Alternative(
            action="ask nothing new",
            category="lower_priority",
            rationale=f"the run has room for {steps} calls",
            comparison=f"{steps} calls may show what no probe asks for",
            outcome="nothing is learned",
            risk="none",
        ),
    ]
    return Choice(
        action=f"{turns.name} asks {asks} by {tools}, first {_first(questions[0])}",
        why=f"{'; '.join(f'{why} ({n})' for why, n in led.most_common(NAMED))}, from {known}",
        instead=tuple(instead),
        fallback="what has no answer is asked once more; what a rule refuses is not asked again",
    )


def _first(question: Question) -> str:
    step = question.steps[-1]
    return line(f"{step.tool} {step.args.get('url') or step.args.get('target') or ''}", 120)


async def _leave(desk: Desk, known: Iterable[ExplorerTurns], why: str) -> None:
    """Record what each explorer did not come to, and what it met and cannot ask."""
    for one in known:
        if isinstance(one.explorer, Reporter):
            for part in one.explorer.left():
                desk.leave(part)
        if one.doubted:
            waits = f"{counted(len(one.doubted), 'question')} of it wait for the next run"
            desk.leave(Left(f"what mostly did not answer {one.name}", waits, "left"))
        if left := await one.left():
            about = one.asked + left
            reason = f"asked {one.asked} of about {counted(about, 'question')}: {why or one.why or NO_ROOM}"
            cut = one.asked < STARVED * about
            desk.leave(Left(f"explorer {one.name}", reason, "cut" if cut else "left"))


async def _turn(desk: Desk, questions: Sequence[Question]) -> Sequence[Results | None]:
    """One turn: pose the questions; what was answered to each. Nothing when the turn took too long: that is
    recorded, its findings are kept, and nothing is learned from it."""
    with suppress(TimeoutError):
        async with desk.turn() as turn:
            return await turn.pose(questions)
    return ()


def _spelled(question: Question) -> str:
    return repr(question.steps)
