"""The work loop: takes waiting runs, a few at a time and one per persona, and completes each."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from fleet.clock import rest
from fleet.errors import FleetError, LostRun, TryAgain
from fleet.events.daemon_events import FaultMet, Feed, FlightsEnded, QueuePaused, QueueResumed
from fleet.gate.stop import StopReading, stopped
from fleet.personas.load import LoadedPersona
from fleet.retry import QUEUE
from fleet.runs.call.halt import resume_after
from fleet.runs.context import FleetContext
from fleet.runs.driver_choice import TRIAGE
from fleet.runs.settlement.settle import waits_key
from fleet.store.rows import RunRow, is_news

POLL_S = 1.0
"""Maximum delay, in seconds, until a request of another process (cancel, STOP, queue) is seen."""
ASK_S, LOST_S = 3.0, 2.0
"""Seconds that a shared journal's server has for an answer, and of failed turns after which everything in
flight is ended: nothing new is asked five seconds after the loss of a server, as after a STOP."""
GONE_S = 60.0
"""Seconds after STOP within which everything in flight has ended."""
NO_THREAD = "can't start new thread"
"""CPython's message. Every later run would fail too, while the daemon seems alive."""

_LOG = logging.getLogger("fleet.queue")


Execute = Callable[[RunRow, LoadedPersona], Awaitable[object]]
"""Completes one claimed run; an exception is an internal error."""


class RunEndListener(Protocol):
    """Called after every run with a recorded outcome; `found` if it found something new."""

    def __call__(self, row: RunRow, /, *, found: bool) -> None: ...


@dataclass(slots=True)
class _Flight:
    persona: str
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class Executor:
    """One per process. `run` ends after `drain`, when the last run in flight has ended.

    Args:
        beat: called on every turn of the loop: the work loop itself must feed the watchdog.
        ended: called for every run with a recorded outcome; a run without one sets `leftovers` of the
            world's signals instead.
    """

    def __init__(
        self,
        world: FleetContext,
        personas: Mapping[str, LoadedPersona],
        execute: Execute,
        feed: Feed,
        *,
        ended: RunEndListener,
        beat: Callable[[], None],
    ) -> None:
        self._world, self._personas, self._execute = world, personas, execute
        self._feed, self._ended, self._beat = feed, ended, beat
        self.waiting: Mapping[str, int] = {}
        self._flights: dict[str, _Flight] = {}
        self._claiming = anyio.Lock()
        self._signals = world.signals
        self._deadline: float | None = None
        self._paused = False
        self._stop: StopReading | None = None
        """The last STOP seen, since the queue was paused."""
        self._stopping = 0
        """Runs that were in flight when STOP was seen, until all have ended."""
        self._failures, self._failing_since = 0, math.inf
        self.remains = ""
        """The runs that STOP did not end in time, in words; "" for none."""

    @property
    def live(self) -> dict[str, str]:
        """Runs in flight, with their personas."""
        return {run: flight.persona for run, flight in self._flights.items()}

    def drain(self, grace_s: float) -> None:
        """Claim no more runs; cancel and settle those in flight after `grace_s`."""
        self._deadline = self._world.clock.monotonic() + grace_s
        self._signals.work.set()

    async def left(self) -> list[RunRow]:
        """Runs without an outcome that no process is working on."""
        async with self._claiming:  # not between a claim in the journal and its flight here
            return [row for row in await self._world.source.left() if row.run_id not in self._flights]

    async def run(self) -> None:
        """Work until drained."""
        async with anyio.create_task_group() as tasks:
            while self._deadline is None or self._flights:
                self._beat()
                await self._signals.work.wait(await self._guarded_turn(tasks))

    async def _guarded_turn(self, tasks: TaskGroup) -> float:
        """One turn; return seconds until the next. Backs off while the journal refuses requests."""
        began = self._failing_since = min(self._failing_since, self._world.clock.monotonic())
        try:
            await self._turn(tasks)
        except FleetError as error:
            if not error.retryable:
                raise
            self._failures += 1
            if self._world.journal.shared and self._world.clock.monotonic() - began >= LOST_S:
                self._journal_lost(str(error))
            pause = QUEUE.pause(self._failures)
            _LOG.warning("the queue waits %.0f s: %s", pause, error)
            return min(pause, POLL_S) if self._flights or self._deadline is not None else pause
        self._failures, self._failing_since = 0, math.inf
        return rest(POLL_S)

    async def _turn(self, tasks: TaskGroup) -> None:
        if self._deadline is not None and self._world.clock.monotonic() >= self._deadline:
            for run in list(self._flights):
                await self._cancel(run, "the daemon was asked to stop")
        self.waiting, asked = await self._at_hand()
        if asked:
            await self._cancel_asked()
        if await self._is_paused() or self._deadline is not None:
            return
        while (apart := self._apart()) is not None:
            row = await self._claim(apart)
            if row is None:
                return
            self.waiting = Counter(self.waiting) - Counter([row.persona])
            tasks.start_soon(self._see_through, row)

    async def _at_hand(self) -> tuple[Mapping[str, int], bool]:
        """The journal's word on what waits. TryAgain when a shared one's server does not answer in time."""
        journal, name = self._world.journal, self._world.platform.name
        if not journal.shared:
            return await journal.at_hand(name)
        try:
            with anyio.fail_after(ASK_S):
                return await journal.at_hand(name)
        except TimeoutError:
            why = f"the journal's server has not answered for {ASK_S:g} s"
            raise TryAgain(why, remedy="look at the server of [store]") from None

    def _journal_lost(self, why: str) -> None:
        """End everything in flight, since nothing of another host reaches this process any more: no cancel,
        no budget. What the runs owe is settled once the journal answers."""
        for run, flight in self._flights.items():
            if not flight.scope.cancel_called:
                self._world.in_flight.cancel(run, f"the journal was lost: {why}")
                flight.scope.cancel()

    def _apart(self) -> set[str] | None:
        """The personas whose runs may not begin now; None when none may.

        Triage takes no place of the others: it reads the log, and the list must not wait for explorers. On a
        shared journal it does, since daemons share one order.
        """
        apart = {*self.live.values(), *self._signals.bursts.under_way()}
        places = self._world.config.concurrency
        shared = self._world.journal.shared
        if sum(shared or not self._reads(name) for name in self.live.values()) < places:
            return apart
        if shared:
            return None
        names = {*self._personas, *self.waiting}
        return apart | {name for name in names if not self._reads(name)}

    def _reads(self, name: str) -> bool:
        persona = self._personas.get(name)
        return persona is not None and persona.persona.driver == TRIAGE

    async def _claim(self, apart: set[str]) -> RunRow | None:
        async with self._claiming:
            at_work = {*self._flights, *self._world.in_flight}
            row = await self._world.source.take(self.waiting, apart, at_work)
            if row is not None:
                self._signals.bursts.began(row.persona)
                self._flights[row.run_id] = _Flight(row.persona)
            return row

    async def _is_paused(self) -> bool:
        pause = stopped(self._world.state)
        why = pause.why if pause else self._signals.held or self._world.closed()
        if why and not self._paused:
            self._feed.publish(QueuePaused(reason=why))
        elif self._paused and not why:
            self._stopping = 0
            known = await resume_after(self._world.journal, self._stop.since) if self._stop else None
            self._feed.publish(QueueResumed(who=known.who, why=known.why) if known else QueueResumed())
        if not self._flights:
            self.remains = ""
        if pause is not None:
            self._measure(pause)
        self._paused, self._stop = bool(why), (pause or self._stop) if why else None
        return self._paused

    def _measure(self, pause: StopReading) -> None:
        """Publish how long the flights took to end after STOP, once they have."""
        began = datetime.fromisoformat(pause.since) if pause.since else self._world.clock.now()
        seconds = max(0.0, (self._world.clock.now() - began).total_seconds())
        if self._stopping and not self._flights:
            self._feed.publish(FlightsEnded(runs=self._stopping, seconds=round(seconds, 3)))
            self._stopping = 0
        if self._flights and seconds >= GONE_S and not self.remains:
            self.remains = (
                f"{GONE_S:.0f} s after STOP these have not ended: {', '.join(sorted(self._flights))}"
            )
            self._feed.publish(
                FaultMet(
                    where="STOP",
                    error_code="still_running",
                    error_message=self.remains,
                    recovery_action="they are waited for; a person ends their processes",
                )
            )

    async def _cancel_asked(self) -> None:
        for row in await self._world.journal.cancels():
            if row.run_id in self._flights:
                await self._cancel(row.run_id, row.cancel)
            elif row.state == "queued" and await self._world.journal.finish(
                row.run_id, "cancelled", row.cancel
            ):
                await self._tell_ended(row.run_id)

    async def _cancel(self, run: str, why: str) -> None:
        """Record durably, then cancel: the settler, now or after a crash, must know how the run ended."""
        flight = self._flights[run]
        if not flight.scope.cancel_called:
            self._world.in_flight.cancel(run, why)
            try:
                with suppress(LostRun):  # then a peer records how it ended
                    await self._world.journal.put(waits_key(run), f"cancelled\n{why}", run=run)
            finally:
                flight.scope.cancel()

    async def _see_through(self, row: RunRow) -> None:
        persona = self._personas.get(row.persona)
        try:
            with self._flights[row.run_id].scope:
                if persona is None:
                    await self._world.journal.finish(row.run_id, "cancelled", "its persona was removed")
                else:
                    await self._execute(row, persona)
        except Exception as error:
            ours = not isinstance(error, FleetError)  # a full disk needs no traceback
            _LOG.error("run %s of %s failed: %s", row.run_id, row.persona, error, exc_info=ours)
            self._feed.fault(f"run {row.run_id} of {row.persona}", error, "the run is settled and cleaned up")
            if str(error) == NO_THREAD:
                raise TryAgain(
                    f"this process cannot start a thread (run {row.run_id}): it stops and starts no new run",
                    remedy="raise TasksMax of the unit or `ulimit -u`, or end other processes",
                ) from error
        finally:
            with anyio.CancelScope(shield=True):
                del self._flights[row.run_id]
                self._stopping += stopped(self._world.state) is not None
                self._world.in_flight.forget(row.run_id)  # from a run that was cancelled before it was opened
                try:
                    await self._tell_ended(row.run_id)
                except FleetError as error:
                    _LOG.error("cannot read how run %s ended: %s", row.run_id, error)
                self._signals.work.set()

    async def _tell_ended(self, run: str) -> None:
        """Ask the journal, because a cancelled run returns no report."""
        row = await self._world.journal.run(run)
        peers = row.daemon and not await self._world.source.mine(run)
        if row.state == "ended" and not peers:
            await self._world.source.done(run)
            findings = await self._world.journal.findings(run)
            news = any(map(is_news, findings))
            self._ended(row, found=news or bool(row.discovered))
        else:
            self._signals.leftovers.set()
