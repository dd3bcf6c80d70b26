"""The engine and the platform that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import pytest
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from tests.docker.jails import containers
from tests.dockerd import DockerEngine, dockerd
from tests.platforms.conftest import bare_stand
from tests.platforms.firing import Home, home
from tests.platforms.stand import Stand

__all__ = ["bare_stand", "dockerd"]


@pytest.fixture(autouse=True)
def _swept(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test that failed left on the shared engine is not the trouble of the next one."""
    if "dockerd" not in request.fixturenames:
        yield
        return
    engine: DockerEngine = request.getfixturevalue("dockerd")
    yield
    for container in containers(engine):
        with suppress(NotFound):
            remove(container)


def remove(container: Container) -> None:
    """Remove it by force; being removed already is what is wanted."""
    try:
        container.remove(force=True, v=True)
    except APIError as error:
        if error.status_code != HTTPStatus.CONFLICT:
            raise


@pytest.fixture
async def at(bare_stand: Stand, tmp_path: Path) -> Home:
    """A fleet's own place, pointed at the small platform."""
    return await home(tmp_path / "fleet", bare_stand)
