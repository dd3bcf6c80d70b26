"""Running platforms for a module's tests, and a fleet of its own for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.platforms.bare import bare
from tests.platforms.firing import Home, home
from tests.platforms.full import full
from tests.platforms.stand import Stand


@pytest.fixture(scope="module")
async def bare_stand(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stand]:
    """Log, registry and loupe, a static site, nothing else."""
    async with bare(tmp_path_factory.mktemp("bare")) as stand:
        yield stand


@pytest.fixture(scope="module")
async def full_stand(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stand]:
    """The clean devnet, all of it."""
    async with full(tmp_path_factory.mktemp("full")) as stand:
        yield stand


@pytest.fixture
def settled(tmp_path: Path) -> Callable[[Stand], Awaitable[Home]]:
    """Makes a new fleet that is pointed at a platform."""

    async def make(stand: Stand) -> Home:
        return await home(tmp_path / "fleet", stand)

    return make
