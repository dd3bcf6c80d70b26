"""A journal in a file, in memory and on PostgreSQL: the same suite holds for all three."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from fleet.store.journal import MEMORY, Journal
from tests.doubles.journal import new_run
from tests.store.cluster import Cluster, running

Places = Callable[[], Path | str]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


@pytest.fixture(params=["file", "memory", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a new journal goes."""
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("cluster")
        return cluster.place()
    return MEMORY if request.param == "memory" else tmp_path / "fleet.db"


@pytest.fixture(params=["file", "postgres"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    """Gives new places, each of which can be opened more than once."""
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("cluster")
        return cluster.place
    numbers = iter(range(1000))
    return lambda: tmp_path / f"{next(numbers)}.db"


@pytest.fixture
async def journal(place: Path | str, anyio_backend: str) -> AsyncIterator[Journal]:
    async with await Journal.open(place) as opened:
        yield opened


@pytest.fixture
def queue(journal: Journal) -> Callable[..., Awaitable[bool]]:
    """Queue a run with nothing remarkable about it."""

    async def queue(run_id: str = "r1", key: str = "") -> bool:
        return await journal.trigger(
            new_run(
                run_id,
                "qa-smoke",
                key=key or run_id,
                platform="devnet",
                trigger="person",
                budget={"calls": 5},
            )
        )

    return queue
