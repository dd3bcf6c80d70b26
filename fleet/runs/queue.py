"""From a firing to a row: a key starts one run, ever; a skipped firing is recorded with its reason."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple, Self

from fleet.errors import ConfigError
from fleet.events.daemon_events import Feed, TriggerFired, TriggerSkipped
from fleet.gate.budget import Budget, Today, Unit, spent_for_today
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Persona
from fleet.runs.driver_choice import DRIVERS, FIX, RETEST, TRIAGE
from fleet.runs.run import new_run_id
from fleet.runs.signals import Signals
from fleet.store.dispatch.source import Source
from fleet.store.journal import Journal
from fleet.store.rows import READ_BLOCKS, NewRun, log_changed
from fleet.triggers.model import EVERYONE, Firing, Skip

MOST_WAITING = 256
"""Most waiting runs of one persona: a flood of events must not become a flood of runs."""
WHOLE = frozenset(
    {
        "facets-changed",
        "code-changed",
        "posture-changed",
        "log-grew",
        "log-cleared",
        "log-changed",
        "sponsor-low",
        "build-changed",
        "outage-over",
    }
)
"""Events after which a run looks at the present state of one whole: a waiting run sees the later ones too."""
_CLOCK = "clock"


class Queue:
    """The triggers' Sink over the journal. `signals.work` is set when a new run waits.

    A `source` also queues a job to run it; on a shared journal, runs without one are found some seconds
    later. `day` returns the fleet's limits of a day: when they or the persona's are spent, no run starts.
    `idle` says why the platform has nothing for a persona, or "".
    """

    def __init__(  # noqa: PLR0913  a constructor
        self,
        journal: Journal,
        platform: str,
        personas: Mapping[str, LoadedPersona],
        feed: Feed,
        *,
        source: Source | None = None,
        day: Callable[[], Mapping[Unit, int]] = dict,
        drivers: Sequence[str] = DRIVERS,
        signals: Signals | None = None,
        idle: Callable[[Persona], str] = lambda _: "",
    ) -> None:
        self._journal, self._platform = journal, platform
        self._source: Source | Journal = source or journal
        self._personas, self._feed = personas, feed
        self._day, self._idle = day, idle
        self._drivers = (*drivers, TRIAGE, FIX)
        self._ready: dict[str, _Ready] = {}
        self._signals = signals or Signals()
        self._work = self._signals.work

    async def fire(self, firing: Firing, *, priority: int = 0) -> bool:
        """Queue it as a waiting run; False when it already is one or is skipped, which is recorded.

        A clock tick, or another change of one whole, while a run waits for such a one changes nothing: the
        waiting run sees the same.
        """
        if await self._journal.run_of(firing.key):
            return False
        ready = self._look_up(firing.persona)
        if ready.persona and ready.persona.persona.driver == TRIAGE and _kind(firing.key) in WHOLE:
            read = (await self._journal.get(f"{READ_BLOCKS}{self._platform}") or "").split()
            if any(firing.key.startswith(log_changed(firing.persona, block)) for block in read):
                return False  # the entries of a pass itself, which it has read
            self._signals.bursts.note(firing.persona)
        return bool(await self.fire_all([firing], priority=priority))

    async def fire_all(self, firings: Sequence[Firing], *, priority: int = 0) -> set[str]:
        """`fire` for each, with one transaction for all new ones: ten thousand may be due at one tick.

        The ids of the new runs.
        """
        names = {firing.persona for firing in firings}
        waiting = await self._journal.queued_by_persona(self._platform, names)
        runs, skips = await self._judge(firings, set(), waiting, priority)
        if skips:  # known runs are not skips
            known = await self._journal.known_keys([firing.key for firing in firings])
            runs, skips = await self._judge(firings, known, waiting, priority)
        new = await self._source.trigger_all(runs)
        if new:
            at = self._feed.now()  # ten thousand copies would take a tenth of the time here
            fired = (run for run in runs if run.run_id in new)
            self._feed.publish(
                *(
                    TriggerFired(at=at, persona=run.persona, key=run.key, why=run.trigger, run=run.run_id)
                    for run in fired
                )
            )
            self._work.set()
        if skips:
            await self._skip(skips)
        return new

    async def _judge(
        self,
        firings: Sequence[Firing],
        known: Collection[str],
        waiting: Mapping[str, list[str]],
        priority: int,
    ) -> tuple[list[NewRun], list[Skip]]:
        """Split firings with unknown keys into runs and skips."""
        runs: dict[str, NewRun] = {}
        skips: list[Skip] = []
        ahead = {persona: list(keys) for persona, keys in waiting.items()}
        day, today = self._day(), _Today(await self._journal.spent_today())
        for firing in firings:
            if firing.key in known or firing.key in runs:
                continue
            ready, keys = self._look_up(firing.persona), ahead.setdefault(firing.persona, [])
            refusal = ready.refusal or _crowded(firing, keys, ready)
            if refusal := refusal or await self._spent(ready, day, today):
                skips.append(Skip(firing.persona, firing.key, refusal))
                continue
            keys.append(firing.key)
            runs[firing.key] = NewRun(
                run_id=new_run_id(),
                persona=firing.persona,
                key=firing.key,
                platform=self._platform,
                trigger=firing.why,
                rung="",
                budget=ready.limits,
                priority=priority,
                due=_stamp(firing.due),
            )
        return list(runs.values()), skips

    def _look_up(self, name: str) -> _Ready:
        """The readiness of a persona; computed once per version of its file."""
        persona, known = self._personas.get(name), self._ready.pop(name, None)
        if persona is None:
            return _Ready(None, "no such persona any more")
        if known is None or known.persona is not persona:
            known = _Ready.of(persona, self._drivers, self._idle(persona.persona))
        self._ready[name] = known
        return known

    async def skip(self, skip: Skip) -> None:
        """Record it: a row for `status`, an event for followers."""
        await self._skip([skip])

    async def _skip(self, skips: Sequence[Skip]) -> None:
        await self._journal.skip([(skip.persona, skip.key, skip.reason) for skip in skips])
        self._feed.publish(
            *(TriggerSkipped(persona=skip.persona, key=skip.key, reason=skip.reason) for skip in skips)
        )

    async def _spent(self, ready: _Ready, day: Mapping[Unit, int], today: Today) -> str:
        if ready.persona is None or ready.budget is None or not (ready.budget.day or day):
            return ""
        persona, budget = ready.persona.persona, ready.budget
        needs: list[Unit] = []  # without one of these a run would end immediately; triage reads the log: free
        if persona.driver != TRIAGE:
            needs += ["calls"]
            needs += ["writes"] if budget.acts else []
            needs += ["tokens", "usd_micro"] if persona.driver == "model" else []
        return await spent_for_today(today, persona.name, budget, day, units=needs)


class _Ready(NamedTuple):
    """Why a persona cannot run now, or "" and its budget; `limits` is the budget in the journal's form."""

    persona: LoadedPersona | None
    refusal: str
    budget: Budget | None = None
    limits: dict[str, int] = {}

    @classmethod
    def of(cls, persona: LoadedPersona, drivers: Sequence[str], idle: str) -> Self:
        if persona.persona.driver not in drivers:
            return cls(persona, f"its driver {persona.persona.driver!r} cannot drive a run here")
        if idle:
            return cls(persona, idle)
        try:
            budget = Budget.of(persona.persona.budget, file=persona.path)
        except ConfigError as error:
            return cls(persona, str(error))
        return cls(persona, "", budget, {str(unit): limit for unit, limit in budget.limits().items()})


class _Today(NamedTuple):
    """The day's ledger at one moment."""

    spent: Mapping[str, Mapping[str, int]]

    async def spent_today(self) -> Mapping[str, Mapping[str, int]]:
        return self.spent


@lru_cache(maxsize=16)
def _stamp(due: datetime) -> str:
    """Cached: ten thousand may be due at one tick."""
    return due.astimezone(UTC).isoformat(timespec="microseconds")


def _crowded(firing: Firing, waiting: Sequence[str], ready: _Ready) -> str:
    if len(waiting) >= MOST_WAITING:
        return f"{len(waiting)} runs of it wait already"
    if waiting and ready.persona is not None and ready.persona.persona.driver == RETEST.name:
        return f"a run of it waits already ({waiting[0]}): it runs the same items again"
    kind = _kind(firing.key)
    if kind in WHOLE | {_CLOCK} and (earlier := [key for key in waiting if _kind(key) == kind]):
        return f"a run of it waits already ({earlier[0]})"
    return ""


def _kind(key: str) -> str:
    """The kind of trigger: an event's name, or the clock for an interval, a cron or a round."""
    mark = key.partition("@")[2]
    return _CLOCK if mark[:1].isdigit() or mark.startswith("round:") else mark.partition(":")[0]


__all__ = ["EVERYONE", "FIX", "MOST_WAITING", "TRIAGE", "Queue"]
