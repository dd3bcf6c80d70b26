"""Several daemons, one journal: Procrastinate says who looks at which run, the journal what may be done.

A job means "somebody look at this run". `execute(run_id)` claims the run or, when it was claimed before,
settles it; so a job may be delivered twice and a run is exercised at most once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol, TypeAlias

import anyio
import psycopg
from procrastinate import App, JobContext, PsycopgConnector, RetryStrategy
from procrastinate.exceptions import ConnectorException
from psycopg_pool import PoolClosed, PoolTimeout
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.errors import ConfigError
from fleet.store.journal import Journal

Execute: TypeAlias = Callable[[str], Awaitable[object]]

STALLED_S = 120.0
"""A daemon that was not heard of for so long is dead; its runs are settled by the others."""
_RESCUE, _SCHEMA = 7163399, 7163400
"""Advisory locks: one rescuer, one maker of tables at a time."""
_AWAY = (ConnectorException, psycopg.OperationalError, PoolTimeout, PoolClosed)


class Stop(Protocol):
    """An event of asyncio or of anyio."""

    def is_set(self) -> bool: ...
    async def wait(self) -> object: ...


class Dispatcher:
    """One daemon's part: `trigger` queues, `work` executes until told to stop.

    Runs of one persona do not overlap, on whatever machine. `execute` must never block the event loop
    for as long as `stalled_s`, and must settle a run that is claimed already.
    """

    def __init__(
        self,
        url: str,
        journal: Journal,
        platform: str,
        execute: Execute,
        *,
        concurrency: int = 2,
        stalled_s: float = STALLED_S,
    ) -> None:
        if not journal.shared:
            raise ConfigError(
                "a queue for several daemons needs the journal on PostgreSQL", remedy="store.url"
            )
        self._journal, self._platform, self._execute = journal, platform, execute
        self._concurrency, self._stalled_s = concurrency, stalled_s
        self._live: dict[int, tuple[asyncio.Task[Any], int | None]] = {}
        connector = PsycopgConnector(conninfo=url, min_size=1, max_size=4, timeout=5.0)
        self._app = App(connector=connector)
        self._connector = connector
        again = RetryStrategy(
            wait=max(1, int(stalled_s / 4))
        )  # for ever: a run that is not settled stays one
        self._task = self._app.task(name="run", queue=platform, pass_context=True, retry=again)(self._run)

    async def prepare(self) -> None:
        """Make the queue's tables where there are none."""
        async with self._app.open_async(), self._alone("SELECT pg_advisory_xact_lock(%s)", _SCHEMA):
            if not await self._app.job_manager.check_connection_async():
                await self._app.schema_manager.apply_schema_async()

    async def trigger(self, run_id: str, *, persona: str, priority: int = 0, **run: Any) -> bool:
        """`Journal.trigger`, with the job in the same transaction; False for a firing that is known."""

        async def defer(connection: AsyncConnection) -> None:
            raw = (await connection.get_raw_connection()).driver_connection
            job = self._task.configure(connection=raw, lock=persona, priority=priority)
            try:
                await job.defer_async(run_id=run_id)
            except ConnectorException as error:
                if isinstance(error.__cause__, Exception):
                    raise DBAPIError("defer", None, error.__cause__) from error
                raise

        return await self._journal.trigger(run_id, persona=persona, priority=priority, also=defer, **run)

    async def work(self, stop: Stop) -> None:
        """Execute runs until `stop`; then those that run end first. Cancelled, they are cancelled too."""
        while not stop.is_set():
            try:
                async with self._app.open_async():
                    await self._round(stop)
            except _AWAY:
                await self._app.close_async()
            with suppress(
                TimeoutError
            ):  # a worker returns after a restart of the server: it is started again
                await asyncio.wait_for(stop.wait(), 0.5)

    async def _round(self, stop: Stop) -> None:
        """One life of a worker. It is cancelled once: it then ends its jobs, and beats no more by itself."""
        worker = asyncio.create_task(self._app.run_worker_async(**self._options()))
        keeper = asyncio.create_task(self._keep())
        stopping = asyncio.create_task(_wait(stop))
        try:
            await asyncio.wait({worker, keeper, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not keeper.done():
                worker.cancel()
                await asyncio.wait({worker, keeper}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            with anyio.CancelScope(shield=True):
                await _ended(worker, *(task for task, _ in self._live.values()), stopping)
                await _ended(keeper)
        for task in (keeper, worker):
            if not task.cancelled():
                task.result()

    def _options(self) -> Any:
        return {
            "queues": [self._platform],
            "concurrency": self._concurrency,
            "install_signal_handlers": False,
            "delete_jobs": "successful",
            "fetch_job_polling_interval": min(5.0, self._stalled_s / 6),
            "update_heartbeat_interval": self._stalled_s / 6,
            "stalled_worker_timeout": self._stalled_s,
        }

    async def _run(self, context: JobContext, run_id: str) -> None:
        task, job = asyncio.current_task(), context.job
        assert task is not None
        assert job.id is not None
        self._live[job.id] = task, job.worker_id
        try:
            await self._execute(run_id)
        finally:
            del self._live[job.id]

    async def _keep(self) -> None:
        """Beat for the jobs of this daemon, also while it drains; look after those of dead ones.

        After an outage everybody looks dead: nobody is rescued before the living had time to beat again.
        """
        steady = None
        while True:
            try:
                for worker_id in {worker for _, worker in self._live.values() if worker is not None}:
                    await self._app.job_manager.update_heartbeat(worker_id)
                if steady is not None and time.monotonic() - steady >= self._stalled_s / 2:
                    await self._rescue()
                elif not await self._app.job_manager.check_connection_async():
                    raise ConfigError("the queue's tables are gone", remedy="restore the database")
                steady = steady or time.monotonic()
            except _AWAY:
                steady = None
            await asyncio.sleep(self._stalled_s / 6)

    async def _rescue(self) -> None:
        """Put stalled jobs back; one daemon at a time, or two would put back what a third has just begun."""
        manager = self._app.job_manager
        async with self._alone("SELECT pg_try_advisory_xact_lock(%s)", _RESCUE) as mine:
            if not mine:
                return
            stalled = await manager.get_stalled_jobs(
                queue=self._platform, seconds_since_heartbeat=self._stalled_s
            )
            for job in stalled:
                if job.id not in self._live:
                    with suppress(ConnectorException):  # it ended meanwhile
                        await manager.retry_job(job)

    @asynccontextmanager
    async def _alone(self, query: str, number: int) -> AsyncIterator[bool]:
        async with self._connector.pool.connection() as connection, connection.transaction():
            row = await (await connection.execute(query.encode(), (number,))).fetchone()
            yield bool(row and row[0] is not False)


async def _wait(stop: Stop) -> None:
    await stop.wait()


async def _ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel what still runs, once, and see it end."""
    for task in tasks:
        if not task.cancelling():
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
