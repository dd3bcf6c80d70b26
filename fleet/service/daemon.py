"""The daemon: triggers fill the queue, the executor empties it, the janitor sweeps; until a signal."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import anyio

from fleet import __version__, disk_reserve
from fleet.broker import services
from fleet.clock import rest
from fleet.config import FleetConfig
from fleet.errors import FleetError
from fleet.events.daemon_events import (
    ConfigRefused,
    ConfigReloaded,
    DaemonDraining,
    DaemonStarted,
    DaemonStopped,
    DialTurned,
    Feed,
    RunUnsettled,
)
from fleet.gate.dial import DIAL, read_dial, read_note
from fleet.gate.stop import stopped
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext
from fleet.runs.desk.stop_conditions import ENDED_WELL
from fleet.runs.executor import Executor
from fleet.runs.janitor import Janitor
from fleet.runs.lifecycle import SETTLE_S, execute, forget_unbegun
from fleet.runs.queue import TRIAGE, Queue
from fleet.runs.settlement.lost_runs import take_back
from fleet.service.health import DaemonHealth
from fleet.service.metrics import Tally
from fleet.service.notify import Notifier
from fleet.service.persona_watcher import PersonaWatcher
from fleet.service.retention import FolderRetention
from fleet.service.second_chance import SecondChance
from fleet.service.supervise import ENDING, side, signals
from fleet.service.triggers import Side, Triggers
from fleet.store.rows import RunRow

LIVE_KEYS = ("concurrency", "trusted", "never", "hooks", "keep")
"""Configuration that takes effect immediately; `never` also for runs in flight, at their next signature."""
LEAVE_S = services.SETTLE_S + SETTLE_S
"""Longest time a run needs to end after its grace: its current call, then its settling.

`TimeoutStopSec` of the unit is longer than this and the default grace."""
WEATHER_S = 1.0

_LOG = logging.getLogger("fleet.service")

Triage = Callable[[FleetContext, LoadedPersona], Awaitable[str]]
"""One pass over the log; returns one line for people."""


@dataclass(slots=True)
class Daemon:
    """Everything of one resident process, made by the composition root. `serve` returns once drained.

    `more` are side tasks of the caller; `reread` reads the configuration anew, raising ConfigError.
    """

    world: FleetContext
    personas: dict[str, LoadedPersona]
    feed: Feed
    queue: Queue
    triggers: Triggers
    roll: PersonaWatcher
    triage: Triage
    reread: Callable[[], FleetConfig]
    grace_s: float
    notifier: Notifier = field(default_factory=Notifier)
    tally: Tally = field(default_factory=Tally)
    more: Sequence[Side] = ()
    executor: Executor = field(init=False)
    janitor: Janitor = field(init=False)
    vitals: DaemonHealth = field(init=False)
    draining: str = ""
    _firing: anyio.CancelScope = field(init=False)
    _rung: str = ""

    def __post_init__(self) -> None:
        limit = self.world.config.concurrency
        self.executor = Executor(
            self.world,
            self.personas,
            self._execute,
            self.feed,
            ended=self._ended,
            beat=self._beat,
            limit=limit,
        )
        self.janitor = Janitor(self.world, self.executor, self.feed, ended=self._ended)
        self.executor.left_behind = self.world.source.found = self.janitor.nudge
        self.executor.held = lambda: self.vitals.short
        self.queue.nudge = self.executor.nudge
        self._firing = anyio.CancelScope()
        self.vitals = DaemonHealth(self.world, self.executor, self.personas, self.tally)

    async def serve(self) -> None:
        """Serve until a signal. SideTaskDied if a part ends before; every run is settled first."""
        with anyio.open_signal_receiver(*ENDING, signal.SIGHUP) as received:
            await forget_unbegun(self.world)
            for run, why in (await take_back(self.world)).items():
                self.feed.tell(RunUnsettled(run=run, persona="", reason=why))
            await self.triggers.start(list(self.personas.values()))
            self._announce()
            await self._serve(lambda: signals(received, drain=self.drain, reload=self.reload))

    async def _serve(self, listen: Callable[[], Awaitable[None]]) -> None:
        reason = "a side task died"
        sides = (("the signal handler", listen), ("the look at dial and STOP", self._weather))
        try:
            async with anyio.create_task_group() as tasks:
                for name, run in (*sides, *self.more):
                    tasks.start_soon(side, name, run)
                tasks.start_soon(self._fire)
                await self.executor.run()
                tasks.cancel_scope.cancel()
            reason = self.draining
        finally:
            self.vitals.ready = False
            self.notifier.say("STOPPING=1")
            self.feed.tell(DaemonStopped(reason=reason))

    def drain(self, reason: str) -> None:
        """Start no new runs, stop triggers and janitor, and give runs in flight their grace."""
        self.draining = reason
        self.vitals.ready = False
        self.notifier.say("STOPPING=1")
        self.notifier.say(f"EXTEND_TIMEOUT_USEC={int((self.grace_s + LEAVE_S) * 1e6)}")
        self.notifier.status(f"draining after {reason}: {len(self.executor.live)} runs in flight")
        self.feed.tell(DaemonDraining(reason=reason, grace_s=self.grace_s))
        self._firing.cancel()
        self.executor.drain(self.grace_s)

    async def reload(self) -> None:
        """Read the configuration anew; keep the old one if it is invalid."""
        try:
            new = self.reread()
        except FleetError as error:
            _LOG.error("configuration refused: %s", error)
            self.feed.tell(ConfigRefused(reason=str(error)))
            return
        old = self.world.config
        changed = [key for key in FleetConfig.model_fields if getattr(old, key) != getattr(new, key)]
        live = {key: getattr(new, key) for key in changed if key in LIVE_KEYS}
        self.world.never.put(new.never)
        self.world = replace(self.world, config=old.model_copy(update=live))
        self.executor.limit = new.concurrency
        self.executor.nudge()
        waiting = tuple(key for key in changed if key not in live)
        self.feed.tell(ConfigReloaded(changed=tuple(live), waiting=waiting))

    async def _fire(self) -> None:
        """Triggers, the folder watch, the janitor and the keeper: they stop when the daemon drains."""
        keeper = FolderRetention(lambda: self.world, self.feed)
        again = SecondChance(self.world.journal, self.queue, self.world.clock, self.world.platform.name)
        with self._firing:
            async with anyio.create_task_group() as tasks:
                for name, run in self.triggers.sides:
                    tasks.start_soon(side, name, run)
                tasks.start_soon(side, "the persona watcher", self.roll.run)
                tasks.start_soon(side, "the janitor", self.janitor.run)
                tasks.start_soon(side, "the keeper", keeper.run)
                tasks.start_soon(side, "the next chance", again.run)

    async def _execute(self, row: RunRow, persona: LoadedPersona) -> object:
        """Apply the current configuration."""
        world = self.world
        work = (lambda: self.triage(world, persona)) if persona.persona.driver == TRIAGE else None
        return await execute(world, row.run_id, persona, trigger=row.trigger, work=work)

    def _ended(self, row: RunRow, *, found: bool) -> None:
        self.triggers.ended(row.persona, found=found, well=row.outcome in ENDED_WELL)

    def _beat(self) -> None:
        """One turn of the work loop; feeds the watchdog."""
        self.vitals.beat()
        self.notifier.feed()
        if not self.vitals.ready and not self.draining:
            self.vitals.ready = True
            self.notifier.say("READY=1", f"MAINPID={os.getpid()}")

    async def _weather(self) -> None:
        """Emit changes of dial and STOP, and update the status line."""
        while True:
            rung = read_dial(self.world.state / DIAL)
            if rung.rung != self._rung:
                said = read_note(self.world.state)
                who, why = (said.who, said.why) if said else ("", rung.why)
                if self._rung:
                    self.feed.tell(DialTurned(rung=str(rung.rung), who=who, why=why))
                self._rung = str(rung.rung)
            short = disk_reserve.look(self.world.state)
            if short != self.vitals.short:
                self.vitals.short = short
                self.executor.nudge()
                self.janitor.nudge()
            if not self.draining:
                paused = ", paused" if stopped(self.world.state) else ""
                paused += f", degraded: {short}" if short else ""
                runs, waiting = len(self.executor.live), sum(self.executor.waiting.values())
                self.notifier.status(f"{self._rung}{paused}: {runs} runs, {waiting} waiting")
            await anyio.sleep(rest(WEATHER_S))

    def _announce(self) -> None:
        self._rung = str(read_dial(self.world.state / DIAL).rung)
        started = DaemonStarted(
            version=__version__,
            pid=os.getpid(),
            platform=self.world.platform.name,
            rung=self._rung,
            personas=len(self.personas),
        )
        self.feed.tell(started)
