"""What the trials of a file share: processes that fork fast, a server, a devnet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from fleet.devnet.devnet import Devnet
from tests.crash.course import LANES
from tests.crash.farm import Zygotes
from tests.store.cluster import Cluster, running


@pytest.fixture(scope="module")
def zygotes() -> Iterator[Zygotes]:
    zygotes = Zygotes(LANES)
    yield zygotes
    zygotes.end()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


@pytest.fixture(scope="module")
async def devnet(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Devnet]:
    folder = tmp_path_factory.mktemp("devnet")
    async with Devnet(folder, keys=folder / "keys") as devnet:
        yield devnet
