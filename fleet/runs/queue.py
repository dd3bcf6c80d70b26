"""From a firing to a row: one key, one run, for ever; and what does not become one, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from fleet.errors import ConfigError
from fleet.events.feed import Feed, TriggerFired, TriggerSkipped
from fleet.gate.budget import Budget, Today, Unit, spent_for_today
from fleet.personas.load import LoadedPersona
from fleet.runs.drive import DRIVERS
from fleet.runs.life import new_run_id
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


class EnqueueAll(Protocol):
    """Queues several runs at once, each by the arguments of `Enqueue`; the ids of those that are new."""

    async def __call__(self, runs: Sequence[Mapping[str, Any]], /) -> set[str]: ...


class Queue:
    """The triggers' Sink over the journal. `nudge` is called when something new waits.

    What is queued by the journal's own `trigger` is found on a shared journal too, some seconds later.
    `day` tells what the fleet may spend on a day: where that or the persona's day is spent, nothing starts.
    """

    def __init__(
        self, journal: Journal, platform: str, personas: Mapping[str, LoadedPersona], feed: Feed, *,
        enqueue: Enqueue | None = None, enqueue_all: EnqueueAll | None = None,
        day: Callable[[], Mapping[Unit, int]] = dict, drivers: Sequence[str] = DRIVERS,
    ) -> None:  # fmt: skip
        self._journal, self._platform = journal, platform
        self._enqueue: Enqueue = enqueue or journal.trigger
        self._enqueue_all: EnqueueAll = enqueue_all or journal.trigger_all
        self._personas, self._feed = personas, feed
        self._day = day
        self._drivers = (*drivers, TRIAGE)
        self.nudge = _nobody

    async def fire(self, firing: Firing, *, priority: int = 0) -> bool:
        """Make it a run that waits; False when it is one already, or does not become one, which is recorded.

        A tick of a clock while one waits already changes nothing: the run that waits sees what it would see.
        """
        if await self._journal.known_key(firing.key):
            return False
        persona = self._personas.get(firing.persona)
        refusal, budget = _runnable(persona, self._drivers)
        waiting = await self._journal.queued_keys(self._platform, firing.persona)
        if firing.key in waiting:  # another daemon's, since the look before
            return False
        refusal = refusal or _crowded(firing, waiting) or await self._spent(persona, budget, self._journal)
        if refusal:
            await self.skip(Skip(firing.persona, firing.key, refusal))
            return False
        run = self._run(firing, budget, priority)
        queued = await self._enqueue(**run)
        if queued:
            self._feed.tell(_fired(run))
            self.nudge()
        return queued

    async def fire_all(self, firings: Sequence[Firing]) -> None:
        """`fire` of each, with one transaction for all that are new: ten thousand may be due at one tick."""
        known = await self._journal.known_keys([firing.key for firing in firings])
        names = {firing.persona for firing in firings}
        waiting = await self._journal.queued_by_persona(self._platform, names)
        today = _Today(await self._journal.spent_today())
        runs: list[dict[str, Any]] = []
        skips: list[Skip] = []
        for firing in firings:
            if firing.key in known:
                continue
            persona, keys = self._personas.get(firing.persona), waiting.setdefault(firing.persona, [])
            refusal, budget = _runnable(persona, self._drivers)
            if refusal := refusal or _crowded(firing, keys) or await self._spent(persona, budget, today):
                skips.append(Skip(firing.persona, firing.key, refusal))
                continue
            known.add(firing.key)
            keys.append(firing.key)
            runs.append(self._run(firing, budget))
        new = await self._enqueue_all(runs)
        if new:
            at = self._feed.now()  # ten thousand copies would be a tenth of the time of all this
            self._feed.tell(*[_fired(run, at) for run in runs if run["run_id"] in new])
            self.nudge()
        if skips:
            await self._journal.skip_all([(skip.persona, skip.key, skip.reason) for skip in skips])
            self._feed.tell(*map(_skipped, skips))

    def _run(self, firing: Firing, budget: Budget | None, priority: int = 0) -> dict[str, Any]:
        return {
            "run_id": new_run_id(),
            "persona": firing.persona,
            "key": firing.key,
            "platform": self._platform,
            "trigger": firing.why,
            "rung": "",
            "budget": {str(unit): limit for unit, limit in budget.limits().items()} if budget else {},
            "priority": priority,
            "due": _stamp(firing.due),
        }

    async def skip(self, skip: Skip) -> None:
        """Record it: a row for `status`, a line for whoever follows."""
        await self._journal.skip(skip.persona, skip.key, skip.reason)
        self._feed.tell(_skipped(skip))

    async def _spent(self, persona: LoadedPersona | None, budget: Budget | None, today: Today) -> str:
        if persona is None or budget is None or not (budget.day or self._day()):
            return ""
        needs = _needs(persona.persona.driver, budget)
        return await spent_for_today(today, persona.persona.name, budget, self._day(), units=needs)


class _Today(NamedTuple):
    """The day's ledger at one moment."""

    spent: Mapping[str, Mapping[str, int]]

    async def spent_today(self) -> Mapping[str, Mapping[str, int]]:
        return self.spent


@lru_cache(maxsize=16)
def _stamp(due: datetime) -> str:
    """Ten thousand may be due at one tick."""
    return due.astimezone(UTC).isoformat(timespec="microseconds")


def _crowded(firing: Firing, waiting: Sequence[str]) -> str:
    if len(waiting) >= ROOM:
        return f"{len(waiting)} runs of it wait already"
    if _by_clock(firing.key) and (earlier := [key for key in waiting if _by_clock(key)]):
        return f"a run of it waits already ({earlier[0]})"
    return ""


def _fired(run: Mapping[str, Any], at: str = "") -> TriggerFired:
    return TriggerFired(at=at, persona=run["persona"], key=run["key"], why=run["trigger"], run=run["run_id"])


def _skipped(skip: Skip) -> TriggerSkipped:
    return TriggerSkipped(persona=skip.persona, key=skip.key, reason=skip.reason)


def _by_clock(key: str) -> bool:
    """Whether a key is of an interval, a cron or a round: then the next one serves as well."""
    mark = key.partition("@")[2]
    return mark[:1].isdigit() or mark.startswith("round:")


def _needs(driver: str, budget: Budget) -> tuple[Unit, ...]:
    """The units without which a run would only end again; triage reads the log, which costs nothing."""
    if driver == TRIAGE:
        return ()
    writes: tuple[Unit, ...] = ("writes",) if budget.acts else ()
    model: tuple[Unit, ...] = ("tokens", "usd_micro") if driver == "model" else ()
    return ("calls", *writes, *model)


def _runnable(persona: LoadedPersona | None, drivers: Sequence[str]) -> tuple[str, Budget | None]:
    """Why a persona cannot run now, or "" and its limits."""
    if persona is None:
        return "no such persona now", None
    if persona.persona.driver not in drivers:
        return f"its driver {persona.persona.driver!r} cannot drive a run here", None
    try:
        return "", Budget.of(persona.persona.budget, file=persona.path)
    except ConfigError as error:
        return str(error), None


def _nobody() -> None:
    """Until an executor listens."""


__all__ = ["EVERYONE", "ROOM", "TRIAGE", "Queue"]
