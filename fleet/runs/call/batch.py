"""An explorer's questions: consecutive calls of one tool share a jail.

Each call is judged, charged and recorded on its own, before the jail starts and after it has ended. A hostile
answer can spoil its own batch only: what a broken jail left unanswered is asked once more, in a jail of its
own, and an act never. Calls that met no server, as it was starting again, are asked once it is back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fleet.broker.egress_record import Calls
from fleet.drivers.explore.pages import TOOL, first_page
from fleet.drivers.explore.state_changes import EXPLORING
from fleet.drivers.session import OUR_FAILURES, Answer, RunOver, cause_of
from fleet.errors import BudgetExceeded, JailError
from fleet.runs.call.session import AdmittedCall, CallPurpose, JudgedCall, RunSession
from fleet.unanswered import REFUSED, said
from sandbox.guest import MAX_CALLS
from sandbox.spec import Effect
from sandbox.tools import TOOLS

STARTS_S = 25.0
"""Seconds after which a batch begins no other call; the last one still has its whole time."""
POSING_S = 60.0
"""Seconds after which no other jail is begun, so that a turn of the usual length keeps its answers."""
SPARE = 60
"""Calls left to a run below which no page is looked at for what requests changed."""
EXPLORED = CallPurpose(EXPLORING, "", proof=False, looks_s=0.0)
"""What an explorer's calls are recorded under, in place of a probe's id."""

PAUSING = (429, 503)
"""Statuses with which a platform asks for a pause (Retry-After)."""

Asked = Sequence[Sequence[tuple[str, Mapping[str, Any]]]]
"""By question: its calls, resolved, in order."""


@dataclass(frozen=True, slots=True)
class QuestionCall:
    """One call, and its place: the number of its question, and of its step."""

    question: int
    step: int
    tool: str
    args: Mapping[str, Any]
    why: str = ""
    """What led to its question, for the first of its calls."""

    @property
    def acts(self) -> bool:
        return TOOLS[self.tool].effect_of(self.args) is Effect.ACT

    @property
    def signs_in(self) -> bool:
        spec = TOOLS.get(self.tool)
        return spec is not None and spec.signs_in


class QuestionRound:
    """One turn's questions. RunOver when a fence ends the run."""

    def __init__(
        self, session: RunSession, questions: Asked, *, looks: bool = True, why: Sequence[str] = ()
    ) -> None:
        """`looks`: whether pages are looked at for what its requests changed; `why`: what led to each."""
        self._session, self._asked, self._looks = session, questions, looks
        every = (
            QuestionCall(question, step, tool, args, "" if step or not why else why[question])
            for question, calls in enumerate(questions)
            for step, (tool, args) in enumerate(calls)
        )
        # what asks as accounts comes after the looks, so that its calls are in one jail, which shares them
        self._waiting = deque(sorted(every, key=lambda call: call.signs_in))
        self._found: list[dict[int, Answer]] = [{} for _ in questions]
        self._over: set[int] = set()
        self._put_off_before: list[QuestionCall] = []
        self._waits = 0
        """Waits in a row for a target that is away."""

    async def __call__(self) -> list[list[Answer]]:
        """The answers to each question's calls, up to the first that was refused or could not look."""
        if self._looks:
            await self._before_measuring()
        clock = self._session.clock
        end = clock.monotonic() + POSING_S
        while (batch := self._next()) and clock.monotonic() < end:
            first = batch[0]
            if self._session.breaker.has_withdrawn(first.tool, first.args) and not (
                self._session.contacts.why_not(first.tool, first.args)
            ):  # wait for a target that does not answer, as long as the run is patient with it
                self._waits += await self._session.wait_for(first.tool, first.args, self._waits)
            if self._session.held() > end - clock.monotonic():
                break  # the desk waits for the end of the pause, or ends the exploring
            await self._session.resumed()
            before = self._session.requests
            if why := await self._session.reserve_requests(len(batch)):
                self._withhold(batch, why)
                continue
            again = await self._ask(batch) if self._batches(batch[0]) else batch
            for call in again:
                if call.question not in self._over and clock.monotonic() < end:
                    await self._session.pace()
                    asked = self._session.call(call.tool, call.args, probe=EXPLORED.probe, why=call.why)
                    self._note(call, await asked)
            for call in batch:
                await self._session.ask_control(call.tool, call.args)
            await self._session.count_requests(before, len(batch))
        if self._looks:
            await self._after_new_pages()
        return [_in_order(found) for found in self._found]

    async def _before_measuring(self) -> None:
        """Ask each page that is to be measured once, and look whether its host's first page changed."""
        changes = self._session.changes
        calls = [(tool, args) for question in self._asked for tool, args in question]
        pages = list(dict.fromkeys(filter(None, (changes.unsettled(tool, args) for tool, args in calls))))
        fronts = dict.fromkeys(map(first_page, pages))
        await self._look([*fronts, *(one for page in pages for one in (page, first_page(page)))])
        await self._look(changes.doubtful)

    async def _after_new_pages(self) -> None:
        """Look at the first page of a host of which a page was asked for the first time."""
        changes = self._session.changes
        urls = [str(args.get("url", "")) for question in self._asked for _, args in question]
        await self._look(changes.take_new(urls))
        await self._look(changes.doubtful)

    async def _look(self, urls: Sequence[str]) -> None:
        """Looks that no answer waits for: as many as the budget leaves beside what is kept for proofs."""
        if urls and await self._session.calls_left() > SPARE + 2 * len(urls):
            await QuestionRound(self._session, [[(TOOL, {"url": url})] for url in urls], looks=False)()

    def began(self, question: int) -> bool:
        """Whether any call of a question was made, or refused: its time may have ended before."""
        return bool(self._found[question])

    def _next(self) -> list[QuestionCall]:
        """The next calls for one jail, of questions that go on; a single one for a target that is away."""
        batch: list[QuestionCall] = []
        while self._waiting and len(batch) < MAX_CALLS:
            call = self._waiting[0]
            if batch and not (self._batches(call) and call.tool == batch[0].tool):
                break
            if batch and self._session.breaker.has_withdrawn(batch[0].tool, batch[0].args):
                break
            if not call.step and self._lacks_credit(call, len(batch)):
                break
            self._waiting.popleft()
            if call.question not in self._over:
                batch.append(call)
        return batch

    def _lacks_credit(self, call: QuestionCall, before: int) -> bool:
        """Whether a question must wait for the next batch, which may have another identity."""
        spec = TOOLS.get(call.tool)
        if spec is None or not spec.needs_key:
            return False
        calls = sum(one.question == call.question for one in self._waiting)
        if not before:
            self._session.wallet.renew(spec.needs_key, calls)
        return before > 0 and before + calls > self._session.wallet.affords

    @staticmethod
    def _batches(call: QuestionCall) -> bool:
        spec = TOOLS.get(call.tool)
        return spec is not None and spec.batches

    def _note(self, call: QuestionCall, answer: Answer) -> None:
        self._found[call.question][call.step] = answer
        if _ends(answer):
            self._over.add(call.question)

    def _withhold(self, batch: Sequence[QuestionCall], why: str) -> None:
        for call in batch:
            if call.question not in self._over:
                self._note(call, self._session.withhold(call.tool, call.args, "requests", why))

    async def _ask(self, batch: Sequence[QuestionCall]) -> list[QuestionCall]:
        """Ask one batch; the calls to make again, each in a jail of its own."""
        await self._session.permitted([(call.tool, call.args) for call in batch])
        sent = await self._admitted(batch)
        if not sent:
            await self._session.escalated()
            return []
        session, started = self._session, self._session.clock.monotonic()
        calls = [(call.question, asked.args) for call, asked in sent]
        numbers = Calls(sent[0][1].number, sent[-1][1].number)
        try:
            results, whole = await session.in_one_jail(sent[0][1].spec, calls, numbers, STARTS_S)
        except JailError:
            results, whole = {}, False
        left, away = self._take(sent, results, session.clock.monotonic() - started)
        await session.seal()
        session.check_spent()
        await session.escalated()
        if whole and results:  # it ran out of time or room: what is left was not begun
            self._waiting.extendleft(reversed(left))
            left = []
        self._waiting.extendleft(reversed(away))
        for call in left:
            if call.acts:
                self._note(call, Answer(_unsent("its jail ended before its answer"), lost=True))
        return [call for call in left if not call.acts]

    def _take(
        self,
        sent: Sequence[tuple[QuestionCall, AdmittedCall]],
        results: Mapping[int, dict[str, Any]],
        elapsed: float,
    ) -> tuple[list[QuestionCall], list[QuestionCall]]:
        """Record the answers of one jail; the calls without one, and those that met no server."""
        session, left, away = self._session, list[QuestionCall](), list[QuestionCall]()
        with session.recorded_together():
            for number, (call, asked) in enumerate(sent):
                result = results.get(number)
                if result is None:
                    session.respond(asked, _unsent("not sent, or its jail ended before its answer"), 0.0)
                    if any(one.question == call.question for one in away):
                        away.append(call)
                    elif call.question not in self._over:
                        left.append(call)
                    continue
                session.respond(asked, result, min(max(result["latency_ms"] / 1000, 0.0), elapsed))
                answer = session.count(asked, result)
                if said(result, REFUSED) or self._put_off(call, result):
                    away.append(call)
                else:
                    self._waits = 0
                    self._note(call, answer)
        return left, away

    def _put_off(self, call: QuestionCall, result: Mapping[str, Any]) -> bool:
        """Whether to ask again after the pause that the platform asked for: once, and no act."""
        put_off = result.get("error_class") == "busy" or result.get("status") in PAUSING
        if not put_off or not self._session.held() or call.acts or call in self._put_off_before:
            return False
        self._put_off_before.append(call)
        return True

    async def _admitted(self, batch: Sequence[QuestionCall]) -> list[tuple[QuestionCall, AdmittedCall]]:
        """The calls to send: those that the gate permits and whose target is not known to be down."""
        judged = await self._judged(batch)
        session, sent = self._session, list[tuple[QuestionCall, AdmittedCall]]()
        with session.recorded_together():
            try:
                for call, verdict in judged:
                    asked = await session.admit(verdict)
                    if isinstance(asked, Answer):
                        self._note(call, asked)
                    elif (outage := session.known(asked)) is not None:
                        session.respond(asked, outage, 0.0)
                        self._note(call, session.count(asked, outage))
                    elif call.question in self._over:
                        session.respond(asked, _unsent("not sent: its question failed before"), 0.0)
                    else:
                        sent.append((call, asked))
            except RunOver:
                for _, asked in sent:
                    session.respond(asked, _unsent("not sent: the run ended"), 0.0)
                raise
        return sent

    async def _judged(self, batch: Sequence[QuestionCall]) -> list[tuple[QuestionCall, JudgedCall]]:
        """The gate's verdicts, charged; a question ends at its first refusal, all when the run ends."""
        session, judged = self._session, list[tuple[QuestionCall, JudgedCall]]()
        await session.check_ours()
        refused: set[int] = set()
        try:
            async with session.charged_together():
                for call in batch:
                    if call.question in self._over | refused:
                        continue
                    await session.pace()
                    one = await session.judge(call.tool, call.args, replace(EXPLORED, why=call.why))
                    judged.append((call, one))
                    if not one.verdict.permit:
                        refused.add(call.question)
                    if one.verdict.ends_run:
                        break
        except BudgetExceeded as spent:  # by another run, between two moments of this one
            raise RunOver("budget_exceeded", str(spent)) from None
        return judged


def _ends(answer: Answer) -> bool:
    return bool(answer.denied) or answer.lost or cause_of(answer.result) in OUR_FAILURES


def _in_order(found: Mapping[int, Answer]) -> list[Answer]:
    """The answers from the first step on, up to the first missing one or the one that ended the question."""
    answers: list[Answer] = []
    while len(answers) in found and not (answers and _ends(answers[-1])):
        answers.append(found[len(answers)])
    return answers


def _unsent(why: str) -> dict[str, Any]:
    return {"ok": False, "latency_ms": 0.0, "error": why, "error_class": "internal", "hint": ""}
