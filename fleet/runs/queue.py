"""From a firing to a row: one key, one run, for ever; and what does not become one, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any, Protocol

from fleet.errors import ConfigError
from fleet.events.feed import Feed, TriggerFired, TriggerSkipped
from fleet.gate.budget import Budget
from fleet.personas.load import LoadedPersona
from fleet.runs.life import DRIVERS, new_run_id
from fleet.store.journal import Journal
from fleet.triggers.model import EVERYONE, Firing, Skip

ROOM = 256
"""Runs of one persona that may wait at a time; a flood of events does not become a flood of runs."""
TRIAGE = "triage"
"""The driver of a run that reads the log instead of the platform."""


class Enqueue(Protocol):
    """Queues a run: the journal's `trigger`, or a source's, which also sends for somebody to run it."""

    async def __call__(
        self, run_id: str, *, persona: str, key: str, platform: str, trigger: str, rung: str,
        budget: dict[str, Any], priority: int = 0, due: str = "",
    ) -> bool: ...  # fmt: skip


class Queue:
    """The triggers' Sink over the journal. `nudge` is called when something new waits.

    What is queued by the journal's own `trigger` is found on a shared journal too, some seconds later.
    """

    def __init__(
        self, journal: Journal, platform: str, personas: Mapping[str, LoadedPersona], feed: Feed, *,
        enqueue: Enqueue | None = None,
    ) -> None:  # fmt: skip
        self._journal, self._platform = journal, platform
        self._enqueue: Enqueue = enqueue or journal.trigger
        self._personas, self._feed = personas, feed
        self.nudge = _nobody

    async def fire(self, firing: Firing, *, priority: int = 0) -> bool:
        """Make it a run that waits; False when it is one already, or does not become one, which is recorded.

        A tick of a clock while one waits already changes nothing: the run that waits sees what it would see.
        """
        if await self._journal.known_key(firing.key):
            return False
        persona = self._personas.get(firing.persona)
        refusal, budget = _runnable(persona)
        refusal = refusal or await self._crowded(firing)
        if refusal:
            await self.skip(Skip(firing.persona, firing.key, refusal))
            return False
        run = new_run_id()
        queued = await self._enqueue(
            run,
            persona=firing.persona,
            key=firing.key,
            platform=self._platform,
            trigger=firing.why,
            rung="",
            budget={str(unit): limit for unit, limit in budget.limits().items()} if budget else {},
            priority=priority,
            due=firing.due.astimezone(UTC).isoformat(timespec="microseconds"),
        )
        if queued:
            self._feed.tell(TriggerFired(persona=firing.persona, key=firing.key, why=firing.why, run=run))
            self.nudge()
        return queued

    async def skip(self, skip: Skip) -> None:
        """Record it: a row for `status`, a line for whoever follows."""
        await self._journal.skip(skip.persona, skip.key, skip.reason)
        self._feed.tell(TriggerSkipped(persona=skip.persona, key=skip.key, reason=skip.reason))

    async def _crowded(self, firing: Firing) -> str:
        waiting = await self._journal.queued_keys(self._platform, firing.persona)
        if len(waiting) >= ROOM:
            return f"{len(waiting)} runs of it wait already"
        if _by_clock(firing.key) and (earlier := [key for key in waiting if _by_clock(key)]):
            return f"a run of it waits already ({earlier[0]})"
        return ""


def _by_clock(key: str) -> bool:
    """Whether a key is of an interval, a cron or a round: then the next one serves as well."""
    mark = key.partition("@")[2]
    return mark[:1].isdigit() or mark.startswith("round:")


def _runnable(persona: LoadedPersona | None) -> tuple[str, Budget | None]:
    """Why a persona cannot run now, or "" and its limits."""
    if persona is None:
        return "no such persona now", None
    if persona.persona.driver not in (*DRIVERS, TRIAGE):
        return f"its driver {persona.persona.driver!r} cannot drive a run here", None
    try:
        return "", Budget.of(persona.persona.budget, file=str(persona.path))
    except ConfigError as error:
        return str(error), None


def _nobody() -> None:
    """Until an executor listens."""


__all__ = ["EVERYONE", "ROOM", "TRIAGE", "Queue"]
