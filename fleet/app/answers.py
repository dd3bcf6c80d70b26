"""A person answers what a run asks, by command or by page."""

from __future__ import annotations

from pathlib import Path

from fleet.app.journal import open_journal
from fleet.clock import SystemClock
from fleet.config import load_platform
from fleet.errors import UsageError
from fleet.runs.call.questions import PersonQuestion, answer, read_question


async def answer_question(state: Path, ident: str, *, approve: bool, who: str, why: str) -> PersonQuestion:
    """The question as it is then; who may answer stands in its platform's profile. UsageError, Refused."""
    async with await open_journal(state) as journal:
        _, known = await read_question(journal, ident)
        if known is None:
            raise UsageError(f"no open question {ident[:40]}", remedy="fleet runs questions")
        section = load_platform(known.platform, state)[0].escalation
        return await answer(journal, state, section, SystemClock(), ident, approve=approve, who=who, why=why)
