"""Several daemons, one journal: Procrastinate assigns runs to daemons, the journal decides what may be done.

A job means "attend to this run": the daemon that gets it claims the run, or takes it over if it was claimed
before, and then only settles it. So a job may be delivered twice, and a run is exercised at most once. A
daemon answers for the runs whose jobs it holds; it holds a job until its run has an outcome.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Self

import anyio
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.errors import ConfigError, TryAgain
from fleet.store import failpoints
from fleet.store.dispatch.jobs import Job, Jobs, run_of
from fleet.store.dispatch.source import Owner
from fleet.store.journal import Journal
from fleet.store.rows import OPEN_RUNS, NewRun, RunRow

STALLED_S = 120.0
"""Seconds without a heartbeat after which a daemon is dead and its peers settle its runs."""

AGAIN_S = 0.2
"""How long a cancelled task may take before it is cancelled again."""

_LOG = logging.getLogger("fleet.queue")


class Dispatcher:
    """One daemon's part: a Source over the shared queue.

    Runs of one persona do not overlap, on any machine. The event loop must never block for as
    long as `stalled_s`. `found` is called after a dead peer's run was taken over: from then on it is among
    those `left`.
    """

    def __init__(  # noqa: PLR0913  a constructor
        self,
        url: str,
        journal: Journal,
        platform: str,
        owner: Owner,
        *,
        stalled_s: float = STALLED_S,
        rung: Callable[[], str] = str,
        found: Callable[[], object] = bool,
    ) -> None:
        if not journal.shared:
            raise ConfigError(
                "a queue for several daemons needs the journal on PostgreSQL", remedy="store.url"
            )
        self._journal, self._platform, self._owner = journal, platform, owner
        self._stalled_s, self._rung = stalled_s, rung
        self._jobs = Jobs(url, platform)
        self._keeper: asyncio.Task[None] | None = None
        self._fetching = anyio.Lock()
        self._fetched: Job | None = None
        self._held: dict[str, Job] = {}
        self._over: list[Job] = []
        self._looked = time.monotonic()
        self._found = found

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Be registered as alive while this lasts; afterwards peers immediately get what is not settled."""
        async with self._jobs.open():
            self._keeper = asyncio.create_task(self._keep())
            try:
                yield self
            finally:
                with anyio.CancelScope(shield=True):
                    await _ended(self._keeper)
                    with suppress(TryAgain):
                        await self.left()
                        await self._finish_jobs()
                        for job in (*self._held.values(), self._fetched):
                            if job is not None:
                                await self._jobs.put_back(job)

    async def trigger(self, run: NewRun, *, hand: bool = False) -> bool:
        """`Journal.trigger`, with the job in the same transaction; False for a known firing."""
        return bool(await self._trigger([run], hand))

    async def trigger_all(self, runs: Sequence[NewRun]) -> set[str]:
        """`Journal.trigger_all`, with the jobs in the same transaction."""
        return await self._trigger(runs, hand=False)

    async def _trigger(self, runs: Sequence[NewRun], hand: bool) -> set[str]:
        async def defer(connection: AsyncConnection, new: set[str]) -> None:
            jobs = [self._jobs.job(run, hand=hand) for run in runs if run.run_id in new]
            await self._jobs.defer_all(jobs, within=connection)

        return await self._journal.trigger_all(runs, also=defer)

    async def begin(self, run_id: str) -> bool:
        async with self._fetching:
            if job := await self._jobs.fetch(run_id):
                return await self._judged(job) is not None
        await self._journal.finish(run_id, "cancelled", "another daemon is running its persona")
        await self._jobs.drop(run_id)
        return False

    async def take(
        self, waiting: Mapping[str, int], busy: Collection[str], at_work: Collection[str] = ()
    ) -> RunRow | None:
        """Claim the next run. Runs of dead peers that come first are taken over and become `left`."""
        if self._keeper is not None and self._keeper.done():
            self._keeper.result()  # it must not end: raise its error
        await self._finish_jobs()
        async with self._fetching:
            while job := self._fetched or await self._jobs.fetch():
                self._fetched = job  # until the journal has replied
                if run_of(job) in at_work and not await self.mine(run_of(job)):
                    return None
                row = await self._judged(job)
                self._fetched = None
                if row is not None:
                    return row
        if waiting.keys() - set(busy) and time.monotonic() - self._looked > self._stalled_s / 24:
            await self._defer_jobless()
        return None

    async def left(self) -> list[RunRow]:
        rows = [await self._journal.run(run_id) for run_id in list(self._held)]
        for row in rows:
            if row.state == "ended":
                await self.done(row.run_id)
            elif row.daemon != self._owner.daemon:
                self._held.pop(row.run_id, None)  # we were presumed dead: a peer answers for it now
        return [row for row in rows if row.run_id in self._held and row.state in OPEN_RUNS]

    async def done(self, run_id: str) -> None:
        if job := self._held.pop(run_id, None):
            self._over.append(job)
        with suppress(TryAgain):  # the rest is retried at the next pass
            await self._finish_jobs()

    async def mine(self, run_id: str) -> bool:
        return (await self._journal.run(run_id)).daemon == self._owner.daemon

    async def _judged(self, job: Job) -> RunRow | None:
        """The run of a job if it is to begin; the job is held from now on, unless the run has ended."""
        run_id = run_of(job)
        fresh = await self._journal.claim(run_id, **self._owner._asdict(), rung=self._rung())
        if not fresh and not await self._journal.adopt(run_id, daemon=self._owner.daemon):
            self._over.append(job)
            await self._finish_jobs()
            return None
        self._held[run_id] = job
        if fresh:
            return await self._journal.run(run_id)
        self._found()
        return None

    async def _finish_jobs(self) -> None:
        while self._over:
            job = self._over.pop()
            try:
                await self._jobs.finish(job)
            except BaseException:
                self._over.append(job)
                raise

    async def _keep(self) -> None:
        """Send heartbeats, and rescue the runs of dead peers.

        After an outage all daemons look dead: wait until the living have had time for a heartbeat.
        """
        steady = None
        while True:
            try:
                await self._jobs.beat()
                if steady is not None and time.monotonic() - steady >= self._stalled_s / 2:
                    await self._rescue()
                steady = steady or time.monotonic()
            except TryAgain as error:
                steady = None
                _LOG.warning("the queue waits: %s", error)
            await asyncio.sleep(self._stalled_s / 6)

    async def _rescue(self) -> None:
        """Requeue stalled jobs. Several daemons may do so at a time: each step is one statement.

        It takes no lock, so that a daemon that stops midway does not block the others.
        """
        # requeue jobs assigned to us in an answer that never arrived
        async with self._fetching:
            known = {job.id for job in (*self._held.values(), *self._over, self._fetched) if job}
            for job in await self._jobs.own():
                if job.id not in known:
                    await self._jobs.put_back(job)
        for job in await self._jobs.stalled(self._stalled_s):
            failpoints.point("queue.rescue")
            await self._jobs.rescue(job)
        await self._jobs.prune(self._stalled_s)
        for run_id in await self._jobs.unbegun():  # a run by hand: no one else would begin it
            made = datetime.fromisoformat((await self._journal.run(run_id)).created)
            if time.time() - made.timestamp() > self._stalled_s:
                await self._journal.finish(run_id, "cancelled", "the process ended before it began")
                await self._jobs.drop(run_id)
        await self._defer_jobless()

    async def _defer_jobless(self) -> None:
        """Add jobs for runs without one; a second job for a run finds it ended."""
        rows = [*await self._journal.queued_runs(), *await self._journal.open_runs()]
        known = await self._jobs.known()
        for row in rows:
            if row.platform == self._platform and row.run_id not in known:
                await self._jobs.defer_all([self._jobs.job(row)])
        self._looked = time.monotonic()


async def _ended(task: asyncio.Task[None]) -> None:
    """Cancel it until it ends.

    On Python 3.11 `asyncio.wait_for`, in psycopg's pool, loses a cancellation that comes together with what
    it waits for (python/cpython#86296): a daemon that drained just then never ended.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=AGAIN_S)
