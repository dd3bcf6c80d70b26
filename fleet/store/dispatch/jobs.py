"""Procrastinate's tables as this fleet uses them: one job a run, handed out under a lock of its persona.

The library's own worker is not used: it stops its heartbeat before the jobs that it drains have ended,
returns silently when the server restarts, and cannot be paused or resized. Our work loop can.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import anyio
import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from psycopg_pool import PoolClosed, PoolTimeout
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.errors import TryAgain
from fleet.store.rows import NewRun
from fleet.store.sql.server import SESSION, link

_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(7163400)"
"""Advisory lock held while the tables are created."""
_RESCUE = """
WITH stalled AS (
    SELECT id FROM procrastinate_jobs
     WHERE id = %(job)s AND status = 'doing' AND worker_id IS NOT DISTINCT FROM %(worker)s FOR UPDATE
)
SELECT procrastinate_retry_job_v2(id, now(), NULL, %(queue)s, NULL) FROM stalled
"""
"""The library's own, but only while the job still belongs to the examined worker."""
_TASK = "run"
_THERE = "SELECT to_regclass('procrastinate_jobs')"
LOCK_S = 5
"""Seconds that a statement of the queue waits for a lock; its own transactions are over in milliseconds."""
_KNOWN = "SELECT id FROM procrastinate_workers WHERE id = %(worker)s"
_AWAY = (ConnectorException, psycopg.OperationalError, PoolTimeout, PoolClosed)


class Jobs:
    """The jobs of one platform, as seen by one worker. TryAgain while the server is away."""

    def __init__(self, url: str, platform: str) -> None:
        self._platform = platform
        self._connector = PsycopgConnector(
            conninfo=url,
            min_size=1,
            max_size=4,
            timeout=5.0,
            kwargs=link(dict(parse_qsl(urlsplit(url).query))),
            configure=_limited,
        )
        self._app = App(connector=self._connector)
        self._manager = self._app.job_manager
        self._task = self._app.task(name=_TASK)(_nothing)
        self._worker = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Create missing tables and register as a worker; jobs it already has are stalled."""
        with _reached():
            await self._app.open_async()
        try:
            # create them in one transaction under a lock, which ends with its connection
            with _reached():
                async with self._connector.pool.connection() as connection, connection.transaction():
                    await connection.execute(_ONE_AT_A_TIME)
                    found = await (await connection.execute(_THERE)).fetchone()
                    if found is None or found[0] is None:
                        await connection.execute(self._app.schema_manager.get_schema())
            with _reached():
                self._worker = await self._manager.register_worker()
            yield self
            with suppress(TryAgain), _reached():  # peers forget a worker that went without a word
                await self._manager.unregister_worker(self._worker)
        finally:
            with anyio.CancelScope(shield=True):
                await self._app.close_async()

    async def beat(self) -> None:
        """Send a heartbeat; register anew once this worker was presumed dead and forgotten."""
        with _reached():
            await self._manager.update_heartbeat(self._worker)
            found = await self._connector.execute_query_all_async(_KNOWN, worker=self._worker)
            if not found:
                self._worker = await self._manager.register_worker()

    async def prune(self, seconds: float) -> None:
        """Forget workers without a heartbeat for this long; their jobs become free."""
        with _reached():
            await self._manager.prune_stalled_workers(seconds)

    def job(self, run: NewRun, *, hand: bool = False) -> Job:
        """The job of a run, not deferred yet; one by `hand` is for its creator."""
        made = self._task.configure(
            lock=f"{self._platform}/{run.persona}",
            priority=run.priority,
            queue=self._queue(run.run_id if hand else ""),
        )
        return made.make_new_job(run_id=run.run_id)

    async def defer_all(self, jobs: list[Job], *, within: AsyncConnection | None = None) -> None:
        """Queue them in one statement, `within` a transaction of the journal."""
        raw = (await within.get_raw_connection()).driver_connection if within else None
        try:
            await self._manager.batch_defer_jobs_async(jobs, connection=raw)
        except ConnectorException as error:
            if within and isinstance(error.__cause__, Exception):
                raise DBAPIError("defer", None, error.__cause__) from error
            raise TryAgain("the queue's database does not answer") from error

    async def fetch(self, hand: str = "") -> Job | None:
        """The next job whose persona is free, or the one of a run by `hand`; this worker then owns it."""
        with _reached():
            return await self._manager.fetch_job([self._queue(hand)], self._worker)

    async def finish(self, job: Job) -> None:
        with _reached(), _unless_gone():
            await self._manager.finish_job(job, Status.SUCCEEDED, delete_job=True)

    async def rescue(self, job: Job) -> None:
        """`put_back` a job that was `stalled`, unless a peer did so meanwhile."""
        query = {"job": job.id, "worker": job.worker_id, "queue": self._queue()}
        with _reached():
            await self._connector.execute_query_all_async(_RESCUE, **query)

    async def put_back(self, job: Job) -> None:
        """Release it to the next worker."""
        with _reached(), _unless_gone():
            await self._manager.retry_job(job, queue=self._queue())

    async def drop(self, run_id: str) -> None:
        """Forget an unfetched job by hand."""
        with _reached():
            for job in await self._manager.list_jobs_async(queue=self._queue(run_id)):
                await self._manager.cancel_job_by_id_async(job.id or 0, delete_job=True)

    async def known(self) -> set[str]:
        """Runs that have a job."""
        with _reached():
            return {run_of(job) for job in await self._manager.list_jobs_async(task=_TASK)}

    async def own(self) -> list[Job]:
        """Jobs of this worker."""
        with _reached():
            jobs = await self._manager.list_jobs_async(task=_TASK, status="doing", worker_id=self._worker)
            return list(jobs)

    async def unbegun(self) -> list[str]:
        """Runs by hand with an unfetched job."""
        with _reached():
            jobs = await self._manager.list_jobs_async(task=_TASK, status="todo")
            return [run_of(job) for job in jobs if job.queue == self._queue(run_of(job))]

    async def stalled(self, seconds: float) -> list[Job]:
        """Jobs of workers without a heartbeat for this long, except this one."""
        with _reached():
            found = await self._manager.get_stalled_jobs(task_name=_TASK, seconds_since_heartbeat=seconds)
        ours = [job for job in found if job.queue in (self._queue(), self._queue(run_of(job)))]
        return [job for job in ours if job.worker_id != self._worker]

    def _queue(self, hand: str = "") -> str:
        return f"{self._platform}:{hand}" if hand else self._platform


def run_of(job: Job) -> str:
    return str(job.task_kwargs["run_id"])


@contextmanager
def _reached() -> Iterator[None]:
    """Translate an unreachable queue to TryAgain."""
    try:
        yield
    except _AWAY as error:
        raise TryAgain("the queue's database does not answer", remedy="is the server up?") from error


@contextmanager
def _unless_gone() -> Iterator[None]:
    """A peer presumed this worker dead, and now has the job or has ended it."""
    try:
        yield
    except ConnectorException as error:
        if not isinstance(error.__cause__, psycopg.errors.RaiseException):
            raise


async def _limited(connection: psycopg.AsyncConnection[Any]) -> None:
    """The server ends a session that idles in a transaction, with its locks."""
    await connection.execute(SESSION.encode(), (f"{LOCK_S * 1000}ms",))
    await connection.commit()


async def _nothing(run_id: str) -> None:
    """Never called: no worker of the library runs these jobs."""


__all__ = ["Job", "Jobs", "run_of"]
