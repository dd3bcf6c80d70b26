"""The daemon: until a signal, triggers fill the queue, the executor empties it and the janitor cleans up."""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import anyio
from anyio import to_thread

from fleet import __version__, disk_reserve
from fleet.broker import services
from fleet.clock import iso, rest
from fleet.config import FleetConfig, Platform
from fleet.errors import ConfigError, FleetError, JailError, TryAgain, UsageError
from fleet.events.daemon_events import (
    ConfigRefused,
    ConfigReloaded,
    DaemonDraining,
    DaemonLost,
    DaemonStarted,
    DaemonStopped,
    DialTurned,
    Feed,
    RunUnsettled,
)
from fleet.fix.fix_pass import Fixing
from fleet.fix.remains import clear_remains
from fleet.gate.budget import day_limits
from fleet.gate.dial import DIAL, read_dial, set_by
from fleet.gate.stop import StopReading, stopped
from fleet.gate.stop import stop as set_stop
from fleet.jail.selfcheck import leaks
from fleet.personas.load import LoadedPersona
from fleet.runs.call.halt import Halt, journal_halt, note_halt
from fleet.runs.call.measures import service_memory
from fleet.runs.call.sealed import TRAJECTORY, checked, longest_unlooked
from fleet.runs.call.sightings import SIGHTED
from fleet.runs.context import FleetContext
from fleet.runs.executor import Executor
from fleet.runs.janitor import Janitor
from fleet.runs.queue import FIX, TRIAGE, Queue
from fleet.runs.replay import again
from fleet.runs.run import SETTLE_S, Work, execute, forget_unbegun
from fleet.runs.settlement.lost_runs import take_back
from fleet.service.advisories import FOLDER, AdvisoryWatch, known_here
from fleet.service.boundary_watch import BoundaryCheck, BoundaryWatch
from fleet.service.health import DaemonHealth
from fleet.service.lost_daemon import in_words, lost_daemon
from fleet.service.notify.receivers import receivers_of
from fleet.service.notify.watch import HostNews, NoticeWatch
from fleet.service.persona_watcher import PersonaWatcher
from fleet.service.readiness import Notifier, Readiness
from fleet.service.resources import CHECK, ResourceWatch
from fleet.service.retention import FolderRetention
from fleet.service.retry_unproven import UnprovenRetry
from fleet.service.supervise import ENDING, handle_signals, side
from fleet.service.triggers import Side, Triggers
from fleet.store.rows import RunRow
from fleet.store.tables.units import FLEET
from fleet.text import counted, line
from fleet.triggers.model import asked_for

LEAVE_S = services.SETTLE_S + SETTLE_S
"""Maximum seconds that a run takes to end after its grace: its current call, then its settling.

`TimeoutStopSec` of the unit must exceed this plus the default grace."""
WEATHER_S = 1.0
MAINTAINED = "the excluded time is over, and the platform may be tested again"
"""What a person checks before tests go on after an excluded time."""
LOOK_BYTES = 1 << 26
"""Bytes of runs' records that one look at boundaries reads, about: all of them are looked at in turn."""
AGAIN_S = 2.0
"""Seconds before a second look at records that seem broken: somebody may be writing them."""
SIGNED = "profile and personas are what the authority means, and signed: `fleet check scope`"
"""What a person checks after the signed scope was changed under a running service."""
SCOPE_EVERY_S = 60.0
HUNG_S = 120.0
"""Seconds without a turn of the work loop after which the daemon is said to be degraded."""

_LOG = logging.getLogger("fleet.service")


@dataclass(slots=True, kw_only=True)
class Daemon:
    """All parts of one resident process, made by the composition root. `serve` returns once drained.

    `more` are side tasks of the caller, `page` is the address of its pages; `load_config` reads
    configuration and profile again, or raises FleetError.
    `again`: it drained because its profile changed, and is to be started again.
    """

    world: FleetContext
    personas: dict[str, LoadedPersona]
    feed: Feed
    queue: Queue
    triggers: Triggers
    roll: PersonaWatcher
    executor: Executor
    janitor: Janitor
    health: DaemonHealth
    readiness: Readiness
    notifier: Notifier
    load_config: Callable[[], Awaitable[tuple[FleetConfig, Platform]]]
    grace_s: float
    more: Sequence[Side] = ()
    boundaries: Mapping[str, BoundaryCheck] = field(default_factory=dict)
    """What else is looked at each half hour, besides scope and records."""
    open_case: Callable[[StopReading], object] = id
    """Makes the case of a STOP after a fence or a boundary failed, where the scope is signed."""
    page: str = ""
    _firing: anyio.CancelScope = field(init=False, default_factory=anyio.CancelScope)
    again: bool = False
    _rung: str = ""
    _fault: str = ""
    _scope_due: float = float("-inf")
    _resources: ResourceWatch = field(init=False)
    _strained: str = ""
    _looked: dict[str, float] = field(default_factory=dict)
    """When the records of each run were last looked at, and held."""
    _lost: DaemonLost | None = None

    def __post_init__(self) -> None:
        self._resources = ResourceWatch(self.world.platform.limits)

    async def serve(self) -> None:
        """Serve until a signal. SideTaskDied if a part ends early, after every run is settled."""
        with anyio.open_signal_receiver(*ENDING, signal.SIGHUP) as received:
            self._lost = await lost_daemon(self.world.state, self.world.journal)
            if self._lost is not None and not self._lost.at:
                self.feed.publish(self._lost)
            await forget_unbegun(self.world)
            await clear_remains(self.world.state)
            for run, why in (await take_back(self.world)).items():
                self.feed.publish(RunUnsettled(run=run, persona="", reason=why))
            await self.triggers.start(list(self.personas.values()))
            self._announce()
            listen = partial(
                handle_signals, received, drain=self.drain, reload=self.reload, ending=self._stopped
            )
            await self._serve(listen)

    async def _serve(self, listen: Callable[[], Awaitable[None]]) -> None:
        reason = "a side task died"
        checks = {
            "the signed scope": self._scope_fault,
            "the records": self._records_fault,
            "the jail": self._jail_fault,
        }
        watch = BoundaryWatch(
            {**checks, **self.boundaries}, self.feed, self.world.clock, self._boundary_broken
        )
        sides = (
            ("the signal handler", listen),
            ("the look at dial and STOP", self._weather),
            ("the look at boundaries", watch.run),
        )
        try:
            async with anyio.create_task_group() as tasks:
                for name, run in (*sides, *self.more):
                    tasks.start_soon(side, name, run)
                tasks.start_soon(self._fire)
                await self.executor.run()
                tasks.cancel_scope.cancel()
            reason = self.readiness.draining
        finally:
            self.readiness.stop()
            self._stopped(reason)

    def _stopped(self, reason: str) -> None:
        self.feed.publish(DaemonStopped(reason=reason))

    def drain(self, reason: str) -> None:
        """Start no more runs, stop triggers and janitor, and give runs in flight their grace."""
        self.readiness.drain(reason, self.grace_s + LEAVE_S, again=self.again)
        self.notifier.status(f"draining after {reason}: {counted(len(self.executor.live), 'run')} in flight")
        self.feed.publish(DaemonDraining(reason=reason, grace_s=self.grace_s))
        self._firing.cancel()
        self.executor.drain(self.grace_s)

    async def reload(self) -> None:
        """Reload the configuration; keep the old one if the new one is invalid.

        The profile is in every part: a changed one is taken by a start of its own, after the drain.
        """
        try:
            new, profile = await self.load_config()
        except FleetError as error:
            _LOG.error("configuration refused: %s", error)
            self.feed.publish(ConfigRefused(reason=str(error)))
            return
        done = self.world.live.reload(new)
        self.world.signals.work.set()
        if profile == self.world.platform or "platform" in done.waiting or self.readiness.draining:
            self.feed.publish(ConfigReloaded(changed=done.changed, waiting=done.waiting))
            return
        self.feed.publish(ConfigReloaded(changed=(*done.changed, *done.waiting, "profile")))
        self.again = True
        self.drain("a changed profile")

    async def _fire(self) -> None:
        """Run triggers, folder watch, janitor and keeper until the daemon drains."""
        keeper = FolderRetention(self.world, self.feed)
        again = UnprovenRetry(self.world.journal, self.queue, self.world.clock, self.world.platform.name)
        world = self.world
        notices = NoticeWatch(
            world.journal,
            world.platform.name,
            world.redactor,
            world.clock,
            config=world.live,
            news=self._news,
            receivers=partial(receivers_of, state=world.state),
            asked=world.signals.asked,
        )
        with self._firing:
            async with anyio.create_task_group() as tasks:
                for name, run in self.triggers.sides:
                    tasks.start_soon(side, name, run)
                tasks.start_soon(side, "the persona watcher", self.roll.run)
                tasks.start_soon(side, "the janitor", self.janitor.run)
                tasks.start_soon(side, "the keeper", keeper.run)
                tasks.start_soon(side, "the retry of unproven findings", again.run)
                tasks.start_soon(side, "notifications", notices.run)
                tasks.start_soon(side, "known vulnerabilities", AdvisoryWatch(world.state).run)

    def _news(self) -> HostNews:
        budgets = {name: one.persona.budget for name, one in self.personas.items()}
        days = {name: day_limits(budget.day) for name, budget in budgets.items() if budget}
        hung = "the work loop has stopped" if self.readiness.beat_age_s > HUNG_S else ""
        pause = stopped(self.world.state)
        broken = self.executor.remains or (pause.why if pause and pause.check else "")
        well, known = known_here(self.world.state / FOLDER, self.world.clock.now())
        return HostNews(
            refused=self.roll.refused,
            loaded=frozenset(self.personas),
            limits={**days, FLEET: day_limits(self.world.config.budget)},
            trouble=broken or self.world.signals.held or hung or ("" if well else known),
            second=self.world.platform.escalation.second,
            ending=self.world.platform.schedule.countdown(self.world.clock.now()),
            lost=in_words(self._lost) if self._lost else "",
            figures=self._figures(),
        )

    def _figures(self) -> dict[str, float]:
        """What an outside monitor is posted, by the names of `/metrics`."""
        state = self.world.state
        return {
            "fleet_beat_age_seconds": self.readiness.beat_age_s,
            "fleet_degraded": float(bool(self.world.signals.held)),
            "fleet_paused": float(stopped(state) is not None),
            "fleet_queue_depth": sum(self.executor.waiting.values()),
            "fleet_rung": read_dial(state / DIAL).rung.height,
            "fleet_runs_live": len(self.executor.live),
            "fleet_service_memory_bytes": service_memory(),
        }

    async def _weather(self) -> None:
        """Emit changes of dial and STOP, and update the status line."""
        signals = self.world.signals
        while True:
            rung = read_dial(self.world.state / DIAL)
            if rung.rung != self._rung or rung.fault != self._fault:
                said = set_by(self.world.state)
                who, why = (said.who, said.why) if said else ("", rung.why)
                self.feed.publish(DialTurned(rung=str(rung.rung), who=who, why=why))
                self._rung, self._fault = str(rung.rung), rung.fault
            short = disk_reserve.look(self.world.state)
            if short != signals.held:
                signals.held = short
                signals.work.set()
                signals.leftovers.set()
            if paused_now := stopped(self.world.state):
                await self.world.jail.cool()
                if paused_now.check and self.world.config.authority.signers:
                    self.open_case(paused_now)
            elif why := self._maintenance():
                await self._pause("the schedule", why, MAINTAINED)
            elif why := await self._exhausted():
                await self._pause("the fleet, which takes too much of this machine", why, CHECK)
            elif why := await self._tampered():
                await self._pause("the fleet, whose signed scope was changed", why, SIGNED)
            if not self.readiness.draining:
                paused = ", paused" if paused_now else ""
                paused += f", degraded: {short}" if short else ""
                runs, waiting = len(self.executor.live), sum(self.executor.waiting.values())
                self.notifier.status(f"{self._rung}{paused}: {counted(runs, 'run')}, {waiting} waiting")
            await anyio.sleep(rest(WEATHER_S))

    def _maintenance(self) -> str:
        """Why a person must let the tests go on, in an excluded time; "" outside of one."""
        schedule = self.world.platform.schedule
        one = schedule.maintenance(self.world.clock.now()) if schedule.resume == "person" else ""
        return f"schedule.excluded {one} begins, or goes on" if one else ""

    async def _exhausted(self) -> str:
        """Why the service takes more than `limits` permits; "" while it does not. What comes near is
        told, once an hour."""
        world = self.world
        told, over = self._resources.look(world.clock.monotonic())
        hour = iso(world.clock.now())[:13]
        if told and hour != self._strained:
            self._strained = hour
            said = json.dumps({"run": "", "at": iso(world.clock.now()), "what": told})
            with suppress(TryAgain):
                await world.journal.put(f"{SIGHTED}{world.platform.name}:strain:the service at {hour}", said)
        return over

    async def _tampered(self) -> str:
        """Why the scope on disk is not as it was signed, by a look each minute; "" while it is."""
        now = self.world.clock.monotonic()
        if now < self._scope_due:
            return ""
        self._scope_due = now + SCOPE_EVERY_S
        return await self._scope_fault()

    async def _scope_fault(self) -> str:
        """Why the scope on disk is not as it was signed; "" while it is, or without signers."""
        if not self.world.config.authority.signers:
            return ""
        try:
            await self.load_config()
        except FleetError as error:
            self.feed.publish(ConfigRefused(reason=str(error)))
            return str(error)
        return ""

    async def _records_fault(self) -> str:
        """What the hash chains of decisions, events and runs say; a second look, before a fault counts."""
        world = self.world
        due = await to_thread.run_sync(longest_unlooked, world.state, self._looked, LOOK_BYTES)
        for pause in (0.0, AGAIN_S):
            await anyio.sleep(pause)
            rows = await checked(world.state, world.journal, "", due)
            faults = [f"{row['record']}: {row['fault']}" for row in rows if row["fault"]]
            if not faults:
                self._looked |= dict.fromkeys(due, world.clock.monotonic())
                return ""
        return "; ".join(faults[:3])

    async def _jail_fault(self) -> str:
        """What a jail was seen to do that it may not; no jail that starts is no leak, and refuses calls."""
        try:
            return "; ".join(leaks(await self.world.jail.probe()))
        except JailError:
            return ""

    async def _boundary_broken(self, name: str, fault: str) -> None:
        """STOP, once for the same fault: a person who resumed knows it. STOP first: a journal may be away."""
        key, shown, known = f"boundary:{name}", line(fault, 500), None
        with suppress(TryAgain):
            known = await self.world.journal.get(key)
        if known != shown:
            await self._pause(f"the fleet, where {name} did not hold", fault, f"{name}: {fault}")
            await self.world.journal.put(key, shown)

    async def _pause(self, who: str, why: str, check: str) -> None:
        """Set STOP, and keep who did and why."""
        set_stop(self.world.state, who, why, self.world.clock, check=check)
        halt = Halt("stop", who, why)
        note_halt(self.world.state, self.world.clock, halt)
        await journal_halt(self.world.journal, self.world.clock, halt)

    def _announce(self) -> None:
        self._rung = str(read_dial(self.world.state / DIAL).rung)  # its fault is reported by the first look
        started = DaemonStarted(
            version=__version__,
            pid=os.getpid(),
            platform=self.world.platform.name,
            rung=self._rung,
            personas=len(self.personas),
            next={name: iso(at) for name, at in sorted(self.triggers.upcoming().items())},
            page=self.page,
        )
        self.feed.publish(started)


async def _refused(error: FleetError) -> None:
    raise error


async def see_through(world: FleetContext, fixing: Fixing, row: RunRow, persona: LoadedPersona) -> object:
    """Execute one claimed run; a triage run reads the log instead of the platform, from where it stopped, and
    a run of the driver `fix` proposes a fix; a person may ask for one probe, or for the calls of a run."""
    works: dict[str, Work] = {TRIAGE: partial(fixing.triage, persona), FIX: partial(fixing.fix, row.run_id)}
    work, driver = works.get(persona.persona.driver), None
    kind, of = asked_for(row.key)
    try:
        if kind == "try":
            world, persona = world.as_trial(), persona.only(of)
        elif kind == "replay":
            persona, driver = again(world.folder(of) / TRAJECTORY, persona)
            work = None
    except UsageError as error:  # it was claimed, so it ends like any other
        work = partial(_refused, ConfigError(str(error)))

    return await execute(world, row.run_id, persona, trigger=row.trigger, work=work, driver=driver)
