"""One connection in a thread of its own: a transaction is one trip there, not several for each statement."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, CursorResult, Engine, Executable, ScalarResult

from fleet.errors import TryAgain
from fleet.store.sql.database import Work

T = TypeVar("T")


class ThreadConnection(NamedTuple):
    """A connection as works expect one; none of its answers has to be waited for."""

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
        try:  # now: what is queued for a thread that did not come is done when another one comes
            self._thread.submit(int)
        except RuntimeError as error:
            raise TryAgain(
                f"the journal's thread: {error}",
                remedy="raise TasksMax or `ulimit -u`, or end other processes",
            ) from None

    async def run(self, begin: str, work: Work[T]) -> T:
        """One transaction that `begin` begins; an exception rolls it back. "": each statement is its own."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._transaction, begin, work)

    async def dispose(self) -> None:
        """In the thread that is there: at the end of a process another one may not start any more."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._engine.dispose)
        self._thread.shutdown()

    def _transaction(self, begin: str, work: Work[T]) -> T:
        with self._engine.begin() as connection:
            if begin:
                connection.exec_driver_sql(begin)
            return _done(work, ThreadConnection(connection))


def _done(work: Work[T], connection: ThreadConnection) -> T:
    """What a work answers that never has to wait."""
    steps = work(connection).__await__()
    try:
        next(steps)
    except StopIteration as end:
        answer: T = end.value
        return answer
    steps.close()
    raise RuntimeError("a transaction waits for nothing but its database")
