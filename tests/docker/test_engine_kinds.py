"""Engines that are not the usual one: what they cannot do is found before a jail is made by them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.errors import JailError
from fleet.jail.docker.engine import Engine, Ready
from fleet.jail.selfcheck import require
from tests.docker.jails import containers, jail
from tests.dockerd import DockerEngine, running_engine, why_no_engine

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.jail,
    pytest.mark.docker,
    pytest.mark.skipif(not os.environ.get("DOCKER_FULL"), reason="engines of their own: make docker"),
]

UNIFIED = ("unshare", "--mount", "sh", "-c", 'mount -t cgroup2 none /sys/fs/cgroup && exec "$@"', "sh")
"""An engine that sees cgroup v2 alone; where version 1 has the controllers, it has none."""
CONTROLLERS = Path("/proc/cgroups")


def held_by_version_1() -> bool:
    """Whether memory, pids and cpu are in hierarchies of version 1: their number is 0 in version 2."""
    lines = (line.split() for line in CONTROLLERS.read_text().splitlines() if not line.startswith("#"))
    return all(number != "0" for name, number, *_ in lines if name in ("memory", "pids", "cpu"))


async def test_an_engine_that_can_limit_nothing_is_refused(tmp_path: Path) -> None:
    """As a rootless one is without delegated control groups."""
    if why := why_no_engine():
        pytest.skip(why)
    if not held_by_version_1():
        pytest.skip("the control groups are of version 2 here: every test of this folder is on them")
    with running_engine(inside=UNIFIED) as engine:
        used = jail(engine, tmp_path)
        tier = await used.probe()
        with pytest.raises(JailError, match="cannot limit memory, pids, cpu") as refusal:
            require(tier)
        assert "cgroup v2 with delegation" in str(refusal.value)
        await used.aclose()
        assert containers(engine) == []
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("rootless", "words"), [(False, "is root on this machine"), (True, "and not root")])
async def test_the_tier_says_whose_the_engine_is(
    dockerd: DockerEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rootless: bool, words: str
) -> None:
    """A rootless one with control groups needs a system of version 2: its own word is given here."""
    asked = Engine.ready

    async def ready(engine: Engine) -> Ready:
        return replace(await asked(engine), rootless=rootless)

    monkeypatch.setattr(Engine, "ready", ready)
    used = jail(dockerd, tmp_path)
    tier = await used.probe()
    await used.aclose()
    said = {name: seen for name, _, seen in tier.checks}
    assert tier.ok
    assert words in said["engine"]
    assert "libseccomp does not know" in said["filters"]
