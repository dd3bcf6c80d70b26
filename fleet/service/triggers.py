"""Runs every kind of trigger on one sink, planned from the current personas."""

from __future__ import annotations

import hashlib
import json
import math
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio

from fleet.clock import Clock, iso
from fleet.config import Platform
from fleet.errors import TryAgain
from fleet.events.daemon_events import DaemonEvent, SubscriptionLost, SubscriptionOpened
from fleet.personas.duration import parse_duration
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Persona
from fleet.runs.call.targets import Capabilities
from fleet.runs.desk.stop_conditions import ENDED_WELL
from fleet.runs.survey import why_idle
from fleet.store.journal import Journal
from fleet.store.rows import BLIND, TRIAL, ItemRow, RunRow
from fleet.triggers.build import BuildWatch
from fleet.triggers.chain.posture_watch import PostureWatch
from fleet.triggers.chain.read import ChainNode
from fleet.triggers.chain.subscription import HeadSubscription
from fleet.triggers.chain.watch import KEY as CURSOR
from fleet.triggers.chain.watch import ChainWatch
from fleet.triggers.clock.continuous import Continuous, Rounds
from fleet.triggers.clock.schedule import Clockwork
from fleet.triggers.deliver import tell
from fleet.triggers.files import KEY as FILES
from fleet.triggers.files import FileWatch
from fleet.triggers.hooks.webhook import unfired
from fleet.triggers.items import ItemWatch, WhyWait
from fleet.triggers.log_file import LogFileWatch
from fleet.triggers.model import FireAll, FiringSink, Skip
from fleet.triggers.outage_end import OutageEndWatch

SEEN = "service.seen"
"""Journal key of each persona's first start, from which its intervals count, so that restarts change none."""
FIRST_S, GAP_S, SPREAD_S = 15.0, 45.0, 600.0
"""Seconds from the first start of a fleet to that of its first persona, between two, and of all at most."""
PARTS = "service.parts."
"""Journal key, by platform: the digest of the profile, and since when (ISO) it has been that."""
CHANGES = frozenset({"facets-changed", "code-changed", "build-changed", "outage-over"})
"""Events after which a persona whose runs looked at nothing may have something to look at."""
FILE = "file:"

ROUNDS_S = 5.0
"""Maximum delay until the end of a run on another daemon is seen."""

Side = tuple[str, Callable[[], Awaitable[None]]]


class Triggers:
    """Fires the planned personas. Paths of `file:` triggers are relative to `base`.

    `hooks` are the names of the configured webhooks; a persona with an unknown one is logged. `emit` takes
    the events of the subscription to new blocks, which requires `chain.ws` in the profile. `log_entries`
    counts those of a log in a file. A persona that the platform has nothing for is not planned.
    """

    def __init__(  # noqa: PLR0913  a constructor
        self,
        sink: FiringSink,
        journal: Journal,
        node: ChainNode,
        platform: Platform,
        sponsor: str,
        base: Path,
        clock: Clock,
        *,
        emit: Callable[[DaemonEvent], None],
        fire_all: FireAll | None = None,
        hooks: Callable[[], Collection[str]] = tuple,
        item_waits: WhyWait | None = None,
        log_entries: Callable[[], Awaitable[int]] | None = None,
    ) -> None:
        self._sink, self._hooks = sink, hooks
        self._journal, self._clock = journal, clock
        self._platform, self._parts_since = platform, ""
        self._on: dict[str, set[str]] = {}
        self._seen: dict[str, str] = {}
        self._due: dict[str, str] = {}
        self.clockwork = Clockwork(sink, fire_all=fire_all, clock=clock)
        self.continuous = Continuous(sink, clock=clock)
        self._ended = anyio.Event()
        place = f"{socket.gethostname()}\0{base.absolute()}".encode()  # files are those of one machine
        here = "." + hashlib.sha256(place).hexdigest()[:12] if journal.shared else ""
        there = f".{platform.name}.{sponsor}" if journal.shared else ""
        self.chain = ChainWatch(
            node,
            platform.chain.diamond,
            journal,
            sink,
            self.subscribers,
            confirmations=platform.chain.confirmations,
            sponsor=sponsor,
            low_wei=platform.sponsor.max_wei,
            clock=clock,
            key=CURSOR + there,
        )
        self.posture = PostureWatch(platform, node, journal, sink, self.subscribers, clock=clock)
        self._emit, self._ws = emit, platform.chain.ws
        self._here, self._watches_chain = Capabilities(platform), bool(platform.chain.diamond)
        self._log = log_entries and LogFileWatch(
            platform.log_name, log_entries, journal, sink, self.subscribers, clock=clock
        )
        self.builds = BuildWatch(platform, journal, sink, self.subscribers, clock=clock)
        self.outages = OutageEndWatch(platform.name, journal, sink, self.subscribers, clock=clock)
        waits = item_waits or _never
        self.items = ItemWatch(platform.name, journal, sink, self.subscribers, waits, clock=clock)
        self.files = FileWatch(base, journal, sink, self._files, clock=clock, key=FILES + here)

    @property
    def sides(self) -> tuple[Side, ...]:
        """The tasks to run while triggers fire, by name."""

        def report(trouble: str) -> None:
            self._emit(SubscriptionLost(reason=trouble) if trouble else SubscriptionOpened())

        def wake() -> None:
            self.chain.wake()
            self.posture.wake()

        heads = HeadSubscription(self._ws, wake, report, clock=self._clock)
        rounds: tuple[Side, ...] = (("the rounds of all daemons", self._count),)
        chain: tuple[Side, ...] = (("the chain watcher", self.chain.run),)
        blocks: tuple[Side, ...] = (("the subscription to new blocks", heads.run),)
        return (
            *(rounds if self._journal.shared else ()),
            *(blocks if self._ws else ()),
            ("the clock", self.clockwork.run),
            ("continuous triggers", self.continuous.run),
            *(chain if self._watches_chain else ()),
            *((("the watcher of the log", self._log.run),) if self._log else ()),
            ("the file watcher", self.files.run),
            *((("the watcher of the posture", self.posture.run),) if self.posture.contracts else ()),
            ("the build watcher", self.builds.run),
            ("the watcher of outages", self.outages.run),
            ("the watcher of items", self.items.run),
        )

    def ended(self, row: RunRow, *, found: bool) -> None:
        """Note that a run ended in this process; with several daemons, the journal counts instead."""
        if row.trigger == TRIAL:
            return
        self.outages.wake()
        self.items.wake()
        if self._journal.shared:
            self._ended.set()
        else:
            blind = row.detail or BLIND if row.outcome == BLIND else ""
            self.continuous.ended(
                row.persona, found=found, well=row.outcome in ENDED_WELL, blind="" if found else blind
            )

    async def _count(self) -> None:
        """Pass runs that ended on any daemon to the continuous triggers."""
        while True:
            with anyio.move_on_after(ROUNDS_S):
                await self._ended.wait()
            self._ended = anyio.Event()
            with suppress(TryAgain):
                for name in self.continuous.upcoming():
                    self.continuous.know(name, await self._rounds(name))

    async def _rounds(self, name: str) -> Rounds:
        rounds = await self._journal.rounds(name, self._parts_since)
        return Rounds(rounds.ended, rounds.quiet, _moment(rounds.last), rounds.blind, rounds.why)

    def upcoming(self) -> dict[str, datetime]:
        """The next start of each persona that the clock or its own pace starts."""
        ticks, rounds = self.clockwork.upcoming(), self.continuous.upcoming()
        both = ticks.keys() & rounds.keys()
        return ticks | rounds | {name: min(ticks[name], rounds[name]) for name in both}

    def subscribers(self, event: str) -> Collection[str]:
        """Personas with a trigger `on` this event; after a change of the platform's parts also those whose
        runs looked at nothing."""
        return sorted({*self._on.get(event, ()), *(self.continuous.blind() if event in CHANGES else ())})

    async def start(self, personas: Collection[LoadedPersona]) -> None:
        """Plan all personas from their state in the journal. What looked at nothing with another profile may
        look at something now, so that is forgotten."""
        key, parts = PARTS + self._platform.name, self._platform.model_dump_json()
        digest, known = hashlib.sha256(parts.encode()).hexdigest(), await self._journal.get(key)
        if known is None or not known.startswith(digest):
            now = f"{digest} {iso(self._clock.now())}"
            known = now if await self._journal.swap(key, known, now) else await self._journal.get(key) or now
        self._parts_since = known.partition(" ")[2]
        self._seen = _table(await self._journal.get(SEEN))
        self._due = await self._journal.last_due()
        await self._first_seen(sorted((one.persona for one in personas), key=_urgency))
        for persona in personas:
            await self._plan(persona)

    async def plan(self, persona: LoadedPersona) -> None:
        """Add or replace a persona; its unchanged triggers keep running."""
        await self._first_seen([persona.persona])
        await self._plan(persona)

    def drop(self, name: str) -> None:
        """Remove a persona."""
        self.clockwork.drop(name)
        self.continuous.drop(name)
        for names in self._on.values():
            names.discard(name)

    async def _plan(self, persona: LoadedPersona) -> None:
        name, triggers = persona.persona.name, persona.persona.triggers
        for names in self._on.values():
            names.discard(name)
        if why := why_idle(persona.persona, self._here):
            self.drop(name)
            await tell(self._sink, Skip(name, f"{name}@start", why))
            return
        for trigger in triggers:
            if trigger.on is not None:
                self._on.setdefault(trigger.on, set()).add(name)
        for skip in unfired(persona.persona, self._hooks()):
            await tell(self._sink, skip)
        latest = self._clock.now() + timedelta(seconds=SPREAD_S)  # beyond it, a wrong clock wrote it
        first = min(_moment(self._seen[name]) or latest, latest)
        self.clockwork.plan(name, triggers, since=_moment(self._due.get(name, "")), first=first)
        pace = [trigger for trigger in triggers if trigger.continuous]
        if not pace:
            self.continuous.drop(name)
            return
        self.continuous.plan(name, pace[0], await self._rounds(name), first=first)

    async def _first_seen(self, personas: Sequence[Persona]) -> None:
        """Give new personas their first start, one after the other, none later than its own period."""
        if {one.name for one in personas} <= self._seen.keys():
            return
        while True:
            stored = await self._journal.get(SEEN)
            known, now = self._seen | _table(stored), self._clock.now()
            new = [one for one in personas if one.name not in known]
            gap = min(GAP_S, (SPREAD_S - FIRST_S) / max(len(new), 1))
            waits = {one.name: min(FIRST_S + gap * at, _period(one)) for at, one in enumerate(new)}
            self._seen = {name: iso(now + timedelta(seconds=int(s))) for name, s in waits.items()} | known
            if await self._journal.swap(SEEN, stored, json.dumps(self._seen)):
                return

    def _files(self) -> Mapping[str, Collection[str]]:
        found = {on.removeprefix(FILE): names for on, names in self._on.items() if on.startswith(FILE)}
        return {path: sorted(names) for path, names in found.items() if names}


def _period(persona: Persona) -> float:
    """Seconds of its shortest period; infinite without one."""
    periods = (one.every or one.continuous for one in persona.triggers)
    return min((parse_duration(one) for one in periods if one), default=math.inf)


def _urgency(persona: Persona) -> tuple[bool, float, float, str]:
    """What looks at the platform before what works on findings; then short periods, then grave probes."""
    works = persona.driver in ("triage", "retest", "fix")
    gravest = max((probe.severity.weight for probe in persona.probe), default=0.0)
    return works, _period(persona), -gravest, persona.name


async def _never(_: ItemRow) -> str:
    """Where nothing proposes fixes, every item waits."""
    return "nothing here proposes fixes"


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _table(text: str | None) -> dict[str, str]:
    """The stored value, or {} if it does not have our format."""
    try:
        found = json.loads(text or "{}")
        return {str(name): str(at) for name, at in found.items()}
    except (ValueError, AttributeError):
        return {}
