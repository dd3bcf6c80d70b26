"""A journal on disk and one in memory: the same suite holds for both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from fleet.store.journal import MEMORY, Journal


@pytest.fixture(params=["file", "memory"])
async def journal(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str
) -> AsyncIterator[Journal]:
    path = MEMORY if request.param == "memory" else tmp_path / "fleet.db"
    async with await Journal.open(path) as opened:
        yield opened


@pytest.fixture
def queue(journal: Journal) -> Callable[..., Awaitable[bool]]:
    """Queue a run with nothing remarkable about it."""

    async def queue(run_id: str = "r1", key: str = "") -> bool:
        return await journal.trigger(
            run_id,
            persona="qa-smoke",
            key=key or run_id,
            platform="devnet",
            trigger="person",
            rung="observe",
            budget={"calls": 5},
        )

    return queue
