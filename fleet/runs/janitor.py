"""Retries the clean-up of ended runs, beside new work, until nothing is left."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import anyio

from fleet.drivers.session import RunOver
from fleet.errors import FleetError, LostRun
from fleet.events.daemon_events import Feed, NameReleased, RunSettled, RunUnsettled
from fleet.events.model import Event, ResourceReleased
from fleet.events.stream import Stream
from fleet.gate.stop import stopped
from fleet.retry import CLEAN_UP
from fleet.runs.call.wallet import Wallet
from fleet.runs.context import FleetContext, until_stopped
from fleet.runs.executor import Executor, RunEndListener
from fleet.runs.run import resettle
from fleet.runs.settlement.finality import PostingSide, look_at_posts
from fleet.runs.settlement.lost_runs import close_orphans
from fleet.runs.settlement.reorg import clear_again, delegated, release_again, undone
from fleet.runs.settlement.settle import release_left, transactions
from fleet.store.rows import EffectRow, RunRow, is_news

TICK_S = 60.0
POSTS_S = 15.0
"""Pause between looks at entries that are not final: a chain that steps back is noticed within it."""
LOOK_S = 1.0
"""Longest delay until the end of a STOP is seen."""

_TRANSACTIONS, _POSTS, _UNDONE, _ORPHANS = _PARTS = (
    "transactions",
    "entries at finality",
    "undone clean-up",
    "orphans",
)
"""Parts of a sweep that belong to no run."""

_LOG = logging.getLogger("fleet.janitor")


class Janitor:
    """Settles abandoned runs and releases names of ended runs. Does nothing during STOP.

    A failure is emitted once per reason and retried with back-off; it does not block the others.
    """

    def __init__(self, world: FleetContext, executor: Executor, feed: Feed, *, ended: RunEndListener) -> None:
        self._world, self._executor, self._feed, self._ended = world, executor, feed, ended
        self._failed: dict[str, tuple[int, float]] = {}  # run or part: number of failures, next try
        self._told: dict[str, str] = {}
        self._leftovers = world.signals.leftovers
        self._undone: list[EffectRow] = []
        self._delegated: list[EffectRow] = []
        self._look_back = True  # at a start, and when a peer took over a run from here

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            if not stopped(self._world.state):
                await self.sweep()
            while stopped(self._world.state):
                await anyio.sleep(LOOK_S)
                self._leftovers.set()
            if await self._wait():
                self._look_back = True

    async def _wait(self) -> bool:
        """Pause until the next sweep, and look at recent entries meanwhile; whether a signal ended it."""
        ends = self._world.clock.monotonic() + self._pause()
        while (left := ends - self._world.clock.monotonic()) > POSTS_S:
            if await self._leftovers.wait(POSTS_S):
                return True
            await self._try(_POSTS, self._look_at_posts)
        return await self._leftovers.wait(max(left, 0))

    async def sweep(self) -> None:
        """One round over everything left behind."""
        await self._try(_TRANSACTIONS, partial(transactions, self._world, ""))
        try:
            left = await self._executor.left()
            names = await self._world.journal.effects(None, ["name"], ["open", "done"])
            open_runs = {row.run_id for row in await self._world.journal.open_runs()}
        except FleetError as error:
            _LOG.warning("the journal cannot be read: %s", error)
            return
        await self._try(_POSTS, self._look_at_posts)
        await self._try(_UNDONE, self._look_for_undone)
        left_over = (*names, *self._undone, *self._delegated)
        runs = {row.run_id for row in left} | {one.run_id for one in left_over}
        for run in self._failed.keys() - {*_PARTS, *runs}:  # peers settled it meanwhile
            del self._failed[run]
            self._told.pop(run, None)
        for row in left:
            await self._try(row.run_id, partial(self._settle, row))
        busy = open_runs | self._executor.live.keys()
        for run in sorted({one.run_id for one in left_over} - busy - {""}):
            if (self._world.folder(run) / "keys").is_dir():  # only names held by our keys can be released
                await self._try(run, partial(self._release, run))
            else:
                await self._try(run, partial(self._clean_again, run))
        if self._world.journal.shared and self._look_back:

            async def close() -> None:
                world = self._world
                waiting = await close_orphans(
                    world.state, world.journal, world.clock, busy=self._executor.live
                )
                self._look_back = bool(waiting)

            await self._try(_ORPHANS, close)

    async def _settle(self, row: RunRow) -> None:
        report = await resettle(self._world, row)
        if not report.settled:
            raise _Waits(report.detail)
        await self._world.source.done(row.run_id)
        self._feed.publish(RunSettled(run=row.run_id, persona=row.persona, outcome=report.outcome))
        news = any(map(is_news, report.findings))
        ended = await self._world.journal.run(row.run_id)
        self._ended(ended, found=news or bool(ended.discovered))

    async def _release(self, run: str) -> None:
        """Emit to the daemon's stream: the run's own file is closed."""

        def tell(event: Event) -> None:
            if isinstance(event, ResourceReleased):
                self._feed.publish(NameReleased(run=run, name=event.ref))

        await self._world.journal.tend(run)
        stream = Stream(run, clock=self._world.clock, sink=_Nowhere(), readers=(tell,))
        await release_left(self._world, run, stream, Wallet(self._world, run))

    async def _look_at_posts(self) -> None:
        await look_at_posts(PostingSide.of(self._world), self._moved)

    def _moved(self, run: str, why: str) -> None:
        self._feed.publish(RunUnsettled(run=run, persona="", reason=why))

    async def _look_for_undone(self) -> None:
        self._undone = await undone(self._world)
        self._delegated = await delegated(self._world)

    async def _clean_again(self, run: str) -> None:
        for name in self._undone:
            if name.run_id == run:
                await self._world.journal.tend(run)
                tell = partial(self._feed.publish, NameReleased(run=run, name=name.ref))
                await release_again(self._world, name, tell)
        for clear in self._delegated:
            if clear.run_id == run:
                await self._world.journal.tend(run)
                await clear_again(self._world, clear)

    async def _try(self, run: str, act: Callable[[], Awaitable[None]]) -> None:
        failures, again = self._failed.get(run, (0, 0.0))
        now = self._world.clock.monotonic()
        if now < again or stopped(self._world.state):
            return
        try:
            await until_stopped(self._world.state, act)
        except RunOver:
            pass  # STOP: the next sweep goes on
        except LostRun:
            self._failed.pop(run, None)  # a peer settles it
            self._told.pop(run, None)
        except Exception as error:
            expected = isinstance(error, FleetError)
            if not expected:
                _LOG.exception("clean-up met a fault: %s", run)
            self._failed[run] = (failures + 1, now + CLEAN_UP.pause(failures))
            await self._complain(run, error, expected)
        else:
            self._failed.pop(run, None)
            self._told.pop(run, None)

    async def _complain(self, run: str, error: Exception, expected: bool) -> None:
        reason = str(error) if expected else f"{type(error).__name__}: {error}"
        if self._told.get(run) == reason:
            return
        self._told[run] = reason
        if expected:
            self._feed.publish(
                RunUnsettled(run="" if run in _PARTS else run, persona="", reason=reason[:500])
            )
        else:
            where = f"clean-up of {'' if run in _PARTS else 'run '}{run}"
            self._feed.fault(where, error, "it is tried again after a while")

    def _pause(self) -> float:
        now = self._world.clock.monotonic()
        return max(min((again - now for _, again in self._failed.values()), default=TICK_S), LOOK_S)


class _Waits(FleetError):
    """Record that clean-up could not be finished now."""


class _Nowhere:
    def write(self, event: Event) -> None:
        pass

    def write_all(self, events: Iterable[Event]) -> None:
        pass
