"""One connection in its own thread: a transaction is one trip there, not several for each statement."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, CursorResult, Engine, Executable, ScalarResult

from fleet.errors import TryAgain
from fleet.store.sql.database import Work

T = TypeVar("T")


class ThreadConnection(NamedTuple):
    """The connection for transaction functions; its answers are immediate."""

    near: Connection

    async def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[*tuple[Any, ...]]:
        return self.near.execute(statement, parameters)

    async def scalar(self, statement: Executable, parameters: Any = None) -> Any:
        return self.near.scalar(statement, parameters)

    async def scalars(self, statement: Executable, parameters: Any = None) -> ScalarResult[Any]:
        return self.near.scalars(statement, parameters)


class ConnectionThread:
    """Runs transactions of one engine, one after the other."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        try:  # start it now: work queued for a thread that failed to start would run with a later one
            self._thread.submit(int)
        except RuntimeError as error:
            raise TryAgain(
                f"the journal's thread: {error}",
                remedy="raise TasksMax or `ulimit -u`, or end other processes",
            ) from None

    async def run(self, begin: str, work: Work[T]) -> T:
        """One transaction started by `begin`; an exception rolls it back. "": autocommit per statement."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._transaction, begin, work)

    async def dispose(self) -> None:
        """Run in the existing thread: at the end of a process no other one may start."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._engine.dispose)
        self._thread.shutdown()

    def _transaction(self, begin: str, work: Work[T]) -> T:
        with self._engine.begin() as connection:
            if begin:
                connection.exec_driver_sql(begin)
            return _done(work, ThreadConnection(connection))


def _done(work: Work[T], connection: ThreadConnection) -> T:
    """The result of a function that never waits."""
    steps = work(connection).__await__()
    try:
        next(steps)
    except StopIteration as end:
        answer: T = end.value
        return answer
    steps.close()
    raise RuntimeError("a transaction waits for nothing but its database")
