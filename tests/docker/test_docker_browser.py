"""Pages in a browser in a container look as from bubblewrap's jails (tests/sandbox/test_browse.py)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from fleet.jail.docker.engine_choice import EngineChoice
from sandbox.tools.qa_browse import SPEC
from tests.docker.jails import containers
from tests.dockerd import DockerEngine
from tests.sandbox.browsing import CANARY, Stand, needs_browser, standing
from tests.sandbox.test_browse import LINK, PAGES

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.jail,
    pytest.mark.docker,
    pytest.mark.skipif(not os.environ.get("DOCKER_FULL"), reason="fourteen browsers: make docker"),
    needs_browser,
]

LOOKS = [
    *((path, "") for path in ("/clean", "/faulty", "/guarded", "/away", "/trap")),
    ("/raw", f"<script>{CANARY}(name)</script>"),
    ("/raw", LINK),
]


async def seen(stand: Stand, path: str, value: str) -> dict[str, str]:
    """What a look shows, without what no two looks share; each stand has a port of its own."""
    result: dict[str, Any] = {"unjudged": ["not looked yet"]}
    for _ in range(3):  # a busy machine leaves a part of a page unjudged, and says so
        if result["unjudged"]:
            result = await stand.look(stand.query(path, value) if value else path, script_canary=CANARY)
    shown = {name: said for name, said in result.items() if name not in SPEC.volatile}
    place = urlsplit(stand.server.url).netloc
    shown["refused"] = sorted(map(str, shown["refused"]))  # a page's requests end in any order
    return {name: str(said).replace(place, "PLACE") for name, said in shown.items()}


@pytest.mark.parametrize(("path", "value"), LOOKS)
async def test_a_page_looks_the_same_from_both_fences(
    dockerd: DockerEngine, tmp_path: Path, path: str, value: str
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    async with (
        standing(tmp_path / "one", PAGES) as usual,
        standing(tmp_path / "two", PAGES, EngineChoice(socket=dockerd.socket)) as contained,
    ):
        assert await seen(contained, path, value) == await seen(usual, path, value)
    assert containers(dockerd) == []
    assert [list((tmp_path / name).iterdir()) for name in ("one", "two")] == [[], []]
