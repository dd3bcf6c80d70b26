"""What runs ask a person: asked, answered or left open, in the journal.

A question is named by platform, trigger and place, not by its run: after a kill the next run meets the same
question, with its answer or its deadline. Nobody's answer is a no.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from fleet.clock import Clock, iso, iso_ms
from fleet.config.escalation import GRAVEST, EscalationSection, Level, Trigger
from fleet.errors import Refused, UsageError
from fleet.runs.call.decision_file import Decision, DecisionFile
from fleet.store.journal import Journal
from fleet.store.rows import RunRow
from fleet.text import line

QUESTIONS = "question:"
"""Prefix of the journal's facts, followed by the question's id."""
SLOW = timedelta(minutes=30)
"""How long a question waits before those who ordered the tests are notified of the delay."""
State = Literal["open", "approved", "denied", "expired"]


@dataclass(frozen=True, slots=True)
class Answered:
    """One person's answer; `role` is that of `[escalation] approvers`, "" without any."""

    who: str
    role: str
    approve: bool
    why: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonQuestion:
    """One question; times are ISO (UTC). `until` is when nobody's answer becomes a no."""

    ident: str
    platform: str
    run: str
    persona: str
    trigger: Trigger
    place: str
    what: str
    level: Level = GRAVEST
    rung: str = ""
    asked: str = ""
    half: str = ""  # when the second person is notified
    slow: str = ""  # when those who ordered the tests are notified that they wait
    until: str = ""
    state: State = "open"
    answers: tuple[Answered, ...] = ()

    @property
    def closing(self) -> Answered:
        """The answer that decided it."""
        nobody = Answered("nobody", "", approve=False, why="no answer in time", at=self.until)
        return self.answers[-1] if self.answers and self.state != "expired" else nobody


_READ = TypeAdapter(PersonQuestion)


def ident_of(platform: str, trigger: Trigger, place: str) -> str:
    """Twelve hexadecimal digits."""
    return hashlib.sha256(f"{platform}\n{trigger}\n{place}".encode()).hexdigest()[:12]


def no_answer(trigger: Trigger) -> str:
    """What nobody's answer means, in words."""
    if trigger == "unusual":
        return "then it stands as it is"
    return "then the act is refused" if trigger == "impact" else "then STOP ends everything"


async def questions(journal: Journal) -> list[PersonQuestion]:
    """Every question that was ever asked, newest first."""
    found = [_READ.validate_json(text) for text in (await journal.facts(QUESTIONS)).values()]
    return sorted(found, key=lambda one: one.asked, reverse=True)


def is_open(one: PersonQuestion, now: datetime) -> bool:
    """Whether somebody can still answer it."""
    return one.state == "open" and iso(now) < one.until


async def read_question(journal: Journal, ident: str) -> tuple[str | None, PersonQuestion | None]:
    text = await journal.get(QUESTIONS + ident)
    return text, _READ.validate_json(text) if text else None


async def put_question(
    journal: Journal, section: EscalationSection, clock: Clock, one: PersonQuestion
) -> PersonQuestion:
    """Ask, unless it is asked already: then that question, with its answer if that still counts."""
    while True:
        text, known = await read_question(journal, one.ident)
        now = clock.now()
        if known is not None:
            fresh = iso_ms(now - timedelta(hours=section.holds_hours))
            counts = known.state in ("approved", "denied") and known.closing.at > fresh
            if is_open(known, now) or (counts and one.trigger != "person"):
                return known
        waits = section.wait_s(one.trigger, one.level)
        made = replace(
            one,
            asked=iso_ms(now),
            half=iso(now + timedelta(seconds=waits / 2)),
            slow=iso(now + SLOW),
            until=iso(now + timedelta(seconds=waits)),
        )
        if await journal.swap(QUESTIONS + one.ident, text, _READ.dump_json(made).decode()):
            return made


async def answer(  # noqa: PLR0913  who, what and why
    journal: Journal,
    state: Path,
    section: EscalationSection,
    clock: Clock,
    ident: str,
    *,
    approve: bool,
    who: str,
    why: str,
) -> PersonQuestion:
    """Record an answer, and return the question as it is then.

    A no also takes back what was approved. UsageError for a question that is not open or an answer without a
    reason; Refused, on record, for who may not answer it. What is critical needs two who approve, where
    `approvers` are named; one denies.
    """
    while True:
        text, known = await read_question(journal, ident)
        now = clock.now()
        revokes = known is not None and known.state == "approved" and not approve
        if known is None or not (revokes or is_open(known, now)):
            raise UsageError(f"no open question {ident[:40]}", remedy="fleet runs questions")
        if not why:
            raise UsageError("an answer needs a reason", remedy='--reason "why"')
        role = section.role_of(who, known.level, now.date())
        if section.approvers and not role:
            why_not = f"{who} may not answer what has the impact {known.level} ([escalation] approvers)"
            note_answer(state, clock, known, f"{who} is refused", why_not)
            sooner = replace(known, half=min(known.half, iso(now)))  # the second person is notified at once
            await journal.swap(QUESTIONS + ident, text, _READ.dump_json(sooner).decode())
            raise Refused(why_not, rule="approver", remedy="ask who may: fleet runs questions")
        given = Answered(line(who, 200), role, approve, line(why, 400), iso_ms(now))
        made = replace(known, answers=(*known.answers, given))
        people = {one.who.partition("@")[0] for one in made.answers}  # one person on two machines is one
        if not approve or len(people) >= _needed(section, known):
            made = replace(made, state="approved" if approve else "denied")
        if await journal.swap(QUESTIONS + ident, text, _READ.dump_json(made).decode()):
            note_answer(state, clock, made, f"{who} {'approves' if approve else 'denies'}", why)
            return made


def _needed(section: EscalationSection, one: PersonQuestion) -> int:
    return 2 if section.approvers and one.level == GRAVEST else 1


async def expire(journal: Journal, state: Path, clock: Clock, one: PersonQuestion) -> PersonQuestion:
    """Nobody's answer is a no, on record; an answer that came at the last moment counts."""
    while True:
        text, known = await read_question(journal, one.ident)
        if known is None or known.state != "open":
            return known or one
        made = replace(known, state="expired")
        if await journal.swap(QUESTIONS + one.ident, text, _READ.dump_json(made).decode()):
            note_answer(state, clock, made, "nobody answers", f"no answer by {one.until}")
            return made


def note_answer(state: Path, clock: Clock, one: PersonQuestion, verdict: str, why: str) -> None:
    DecisionFile(state, clock).record(
        Decision(
            f"question {one.ident}: {verdict}",
            f"{one.trigger}: {one.what}",
            {"approved": "go on", "open": "wait on"}.get(one.state, "no"),
            why,
            "an answer counts for holds_hours",
            charter="the operator's",
        ),
        run=one.run,
        turn=0,
    )


async def pause_run(journal: Journal, row: RunRow, who: str, why: str, clock: Clock) -> str:
    """Ask a run to wait at its next call, until somebody lets it go on; the question's id."""
    one = question_of(row.platform, row.run_id, row.persona, "person", row.run_id, f"paused by {who}: {why}")
    made = await put_question(journal, EscalationSection(), clock, one)
    return made.ident


async def pause_all(journal: Journal, platform: str, who: str, why: str, clock: Clock) -> int:
    """The same for every run of a platform that is at work; their number."""
    rows = [row for row in await journal.open_runs() if (row.platform, row.state) == (platform, "running")]
    for row in rows:
        await pause_run(journal, row, who, why, clock)
    return len(rows)


def question_of(
    platform: str, run: str, persona: str, trigger: Trigger, place: str, what: str
) -> PersonQuestion:
    return PersonQuestion(
        ident=ident_of(platform, trigger, place),
        platform=platform,
        run=run,
        persona=persona,
        trigger=trigger,
        place=line(place, 200),
        what=line(what, 400),
    )


def question_rows(found: Sequence[PersonQuestion], now: datetime) -> list[dict[str, object]]:
    """Questions as data, with whether each is still open."""
    return [
        asdict(one) | {"state": one.state if one.state != "open" or is_open(one, now) else "expired"}
        for one in found
    ]
