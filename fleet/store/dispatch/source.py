"""The source of work, and the runs a process answers for: the journal, or a shared queue."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from fleet.store.journal import Journal
from fleet.store.rows import NewRun, RunRow


class Owner(NamedTuple):
    """Who claims. `pid` and `pid_start` identify it on one machine, `daemon` across machines."""

    pid: int
    pid_start: int
    daemon: str = ""


class Source(Protocol):
    """Queues, hands out and takes back runs. Raises TryAgain while the journal or the queue is away."""

    async def trigger(self, run: NewRun, *, hand: bool = False) -> bool:
        """`Journal.trigger`, plus a job to fetch it; with `hand` only `begin` does."""

    async def trigger_all(self, runs: Sequence[NewRun]) -> set[str]:
        """`trigger` of several; the ids of those that are new."""

    async def begin(self, run_id: str) -> bool:
        """Claim one run that was triggered by hand; False when its persona runs elsewhere."""

    async def take(
        self, waiting: Mapping[str, int], busy: Collection[str], at_work: Collection[str] = ()
    ) -> RunRow | None:
        """Claim the next run that may start. `waiting` counts by persona; none of `busy` starts.

        `at_work` are runs that this process still handles, its own or not: none of them is taken back from a
        peer before that ends, since it could act on outdated facts.
        """

    async def left(self) -> list[RunRow]:
        """Runs without an outcome that this process answers for: those in flight, and those to settle."""

    async def done(self, run_id: str) -> None:
        """This run has its outcome: forget it."""

    async def mine(self, run_id: str) -> bool:
        """Whether a run that was claimed here is still this process's, and not settled by a peer."""


class Embedded:
    """The journal is the queue: one process holds it, so every open run that it does not handle is dead."""

    def __init__(
        self, journal: Journal, platform: str, owner: Owner, *, rung: Callable[[], str] = str
    ) -> None:
        self._journal, self._platform, self._owner, self._rung = journal, platform, owner, rung

    async def trigger(self, run: NewRun, *, hand: bool = False) -> bool:  # noqa: ARG002  the port's
        return await self._journal.trigger(run)

    async def trigger_all(self, runs: Sequence[NewRun]) -> set[str]:
        return await self._journal.trigger_all(runs)

    async def begin(self, run_id: str) -> bool:
        return await self._journal.claim(run_id, **self._owner._asdict(), rung=self._rung())

    async def take(
        self,
        waiting: Mapping[str, int],
        busy: Collection[str],
        at_work: Collection[str] = (),  # noqa: ARG002  the port's
    ) -> RunRow | None:
        if not waiting.keys() - set(busy):
            return None
        owner = self._owner._asdict()
        return await self._journal.claim_next(self._platform, **owner, rung=self._rung(), apart=busy)

    async def left(self) -> list[RunRow]:
        return [row for row in await self._journal.open_runs() if row.platform == self._platform]

    async def done(self, run_id: str) -> None:
        """Nothing to do: the row is enough."""

    async def mine(self, run_id: str) -> bool:  # noqa: ARG002  the port's
        return True
