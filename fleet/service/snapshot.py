"""The state of a fleet at one moment, as the health pages and `fleet status` show it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from fleet.findings.outage import FACTS, OutageBook, read_book, shown
from fleet.gate.budget import Unit, day_limits, left_today
from fleet.personas.model import Persona
from fleet.runs.desk.exit_codes import exit_code
from fleet.store.journal import Journal
from fleet.store.rows import RunRow
from fleet.store.tables.units import FLEET

UNREACHED = 4
"""Exit code of a run that did not reach its platform, or could not tell why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaSummary:
    """A persona in use; it is on /readyz, so that `fleet status` need not read the files.

    `looks`: its runs look at the platform, not only at the log; `day`: its limits of a day.
    """

    name: str
    looks: bool = True
    day: Mapping[Unit, int] = field(default_factory=dict)

    @classmethod
    def of(cls, persona: Persona) -> Self:
        day = day_limits(persona.budget.day) if persona.budget else {}
        return cls(name=persona.name, looks=persona.driver != "triage", day=day)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformReach:
    """`up` is None when the last look could not tell, or before the first one.

    `since` (ISO) is the begin of the outage, else the end of the run of `by` (a persona) that looked last.
    """

    up: bool | None = None
    since: str = ""
    by: str = ""
    why: str = "no run has looked at it yet"


UNKNOWN = PlatformReach()
"""Before the first look."""


def platform_reach(book: OutageBook, last: Sequence[RunRow]) -> PlatformReach:
    """The newest look. `last` are the last ended runs of the personas that look at the platform."""
    if (outage := book.open) is not None:
        return PlatformReach(up=False, since=outage.since, by=outage.persona, why=shown(outage.title))
    looks = [
        row
        for row in last
        if row.outcome == "done" or exit_code({"outcome": row.outcome, "detail": row.detail}) == UNREACHED
    ]
    if not looks:
        return UNKNOWN
    newest = max(looks, key=lambda row: row.ended)
    if newest.outcome == "done":
        return PlatformReach(up=True, since=newest.ended, by=newest.persona, why="")
    return PlatformReach(since=newest.ended, by=newest.persona, why=newest.detail or newest.outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSnapshot:
    """What the journal says of one platform. Budgets are by owner: "" is the fleet, else a persona."""

    last: Sequence[RunRow] = ()
    """The last ended run of each persona."""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """Number of waiting runs, by persona."""
    limits: Mapping[str, Mapping[Unit, int]] = field(default_factory=dict)
    """Limits of a day."""
    left: Mapping[str, Mapping[Unit, int]] = field(default_factory=dict)
    """What is left of them today."""
    reachable: PlatformReach = UNKNOWN

    @classmethod
    async def read(
        cls,
        journal: Journal,
        platform: str,
        personas: Collection[PersonaSummary],
        fleet_day: Mapping[Unit, int],
    ) -> Self:
        """Raises what the journal raises."""
        limits = {FLEET: fleet_day} | {one.name: one.day for one in personas if one.day}
        last = await journal.last_ended(platform)
        readers = {one.name for one in personas if not one.looks}
        book = read_book(await journal.get(FACTS + platform))
        return cls(
            last=last,
            waiting=(await journal.at_hand(platform))[0],
            limits=limits,
            left=await left_today(journal, limits),
            reachable=platform_reach(book, [row for row in last if row.persona not in readers]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSnapshot:
    """The state of a daemon."""

    journal: JournalSnapshot
    rung: str
    paused: bool
    degraded: str = ""
    draining: str = ""
    """Why no run starts although STOP is not set: the disk is full."""
    live: int
    beat_age_s: float
    now: datetime
    outcomes: Mapping[str, int]
    ages: Mapping[str, str]
    budgets: Mapping[tuple[str, str], int]
    """What runs in flight may still spend, by persona and unit."""
    outbox: int
    log_entries: int | None
    log_mirrored: int
    subscription: str = ""
    """As in `Tally`."""
    personas: tuple[PersonaSummary, ...] = ()
    """The personas in use."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why the current version of a persona's file is rejected, by name."""
    upcoming: Mapping[str, str] = field(default_factory=dict)
    """The next start (ISO) of each persona that a clock or its own pace starts."""
    last_success: Mapping[str, str] = field(default_factory=dict)
    """When (ISO) the last run of each persona ended that did all it could."""
    coverage: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Number of probes of a persona's last run, by persona and group."""
    items: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Number of items as triage left them, by state and severity."""
    worklist_age_s: float | None = None
    """Since triage wrote the list; None before the first."""
