"""Jails that are forked from one process: each is fresh, and none outlives that process."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.errors import JailError
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.bwrap.spawn import bwrap_arguments
from fleet.jail.bwrap.zygote import Zygote
from fleet.jail.jail_spec import open_shape
from fleet.jail.locate import find_bwrap
from fleet.jail.model import RESOURCES, End, Image, Limits, Outcome
from fleet.jail.process import proc_stat
from fleet.jail.selfcheck import require
from tests.jail.test_conformance import IMAGE
from tests.jail.test_pool import ECHO, recorded

pytestmark = [pytest.mark.anyio, pytest.mark.jail]


def zygotes(spool: Path) -> list[int]:
    return recorded(spool, zygotes=True)


async def test_every_jail_of_an_image_has_the_same_origin_and_is_another_process(tmp_path: Path) -> None:
    jail = BwrapJail(IMAGE, pool=1, spool=tmp_path)
    seen: set[int] = set()
    for _ in range(4):
        await jail.warm()
        seen |= set(recorded(tmp_path))
        assert len(zygotes(tmp_path)) == 1
        assert (await jail.call(ECHO, deadline_s=5)).stdout == b"x\n"
    await jail.aclose()
    assert (len(seen), os.listdir(tmp_path)) == (4, [])


async def test_the_check_at_the_start_is_of_forked_jails(tmp_path: Path) -> None:
    jail = BwrapJail(Image(), pool=1, spool=tmp_path)
    made: list[str] = []

    async def watch() -> None:
        while True:
            for pid in zygotes(tmp_path):
                with suppress(OSError):
                    made.append(Path(f"/proc/{pid}/cmdline").read_text())
            await anyio.sleep(0.005)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        require(await jail.probe())
        tasks.cancel_scope.cancel()
    await jail.aclose()
    assert any("zygote.py" in line and "sandbox.start.selfcheck" in line for line in made)


GUEST = """
import json, os, resource, sys
def main():
    name = json.loads(sys.stdin.readline())["name"]
    for place in ("/box", "/tmp", "/dev/shm"):
        open(f"{place}/{name}", "x").close()
    os.openpty()
    seen = {place: sorted(os.listdir(place)) for place in ("/box", "/tmp", "/dev/shm", "/dev/pts")}
    size = os.statvfs("/box")
    print(json.dumps({
        "seen": seen,
        "processes": sorted(name for name in os.listdir("/proc") if name.isdigit()),
        "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "box": size.f_blocks * size.f_frsize,
    }))
    return 0
"""


async def test_nothing_is_left_of_the_jail_before_and_limits_are_those_of_each(tmp_path: Path) -> None:
    guests, spool = tmp_path / "guests", tmp_path / "spool"
    for folder in (guests, spool):
        folder.mkdir()
    (guests / "looks.py").write_text(GUEST)
    image = Image(mounts=((guests, "guests"),), guest="guests.looks", limits=Limits(box=8 << 20))
    jail = BwrapJail(image, pool=1, spool=spool)
    for name, resources, files, box in (
        ("left", "", Limits().files, 8 << 20),
        ("other", "browser", RESOURCES["browser"].files, RESOURCES["browser"].box),
        ("after", "", Limits().files, 8 << 20),
    ):
        asked = json.dumps({"name": name}).encode() + b"\n"
        outcome = await jail.call(asked, deadline_s=10, resources=resources)
        said = json.loads(outcome.stdout)
        places = {place: [name] for place in ("/box", "/tmp", "/dev/shm")}
        assert said["seen"] == {**places, "/dev/pts": ["0", "ptmx"]}
        assert (said["processes"], said["files"], said["box"]) == (["1", "2"], files, box)
    await jail.aclose()


async def test_a_call_whose_zygote_is_killed_is_lost_and_the_next_one_has_another(tmp_path: Path) -> None:
    jail = BwrapJail(IMAGE, pool=1, spool=tmp_path)
    await jail.warm()
    [zygote] = zygotes(tmp_path)
    jails: list[int] = []
    lost: list[Outcome] = []

    async def call() -> None:
        lost.append(await jail.call(b'{"do": "sleep", "seconds": 30}\n', deadline_s=10))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await anyio.sleep(0.3)
        jails = recorded(tmp_path)
        os.kill(zygote, signal.SIGKILL)
    assert [one.end for one in lost] == [End.LOST]
    outcome = await jail.call(ECHO, deadline_s=5)
    assert (outcome.end, outcome.stdout) == (End.EXITED, b"x\n")
    assert [proc_stat(pid) for pid in (zygote, *jails)] == [None] * (1 + len(jails))
    assert zygotes(tmp_path) != [zygote]
    await jail.aclose()
    assert os.listdir(tmp_path) == []


async def test_one_that_is_cooled_is_started_again(tmp_path: Path) -> None:
    jail = BwrapJail(IMAGE, pool=1, spool=tmp_path)
    await jail.warm()
    await jail.cool()
    assert os.listdir(tmp_path) == []
    assert (await jail.call(ECHO, deadline_s=5)).stdout == b"x\n"
    await jail.aclose()


def denied(*words: Any, **named: Any) -> list[str]:
    """As a policy of the kernel that knows bubblewrap, and nothing below it."""
    options = bwrap_arguments(*words, **named)
    return options if "--disable-userns" in options else ["--disable-userns", *options]


async def test_where_no_namespace_can_be_made_in_one_each_jail_is_started_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.jail.bwrap.spawn.bwrap_arguments", denied)
    zygote = Zygote(shape := open_shape(IMAGE, bwrap=find_bwrap()), tmp_path)
    for _ in range(2):
        live = await zygote.jail(Limits())
        assert (live.alive(), zygotes(tmp_path)) == (True, [])
        await live.end()
    assert "(namespaces)" in zygote.unable
    await zygote.end()
    shape.close()


@pytest.mark.parametrize("proven", ["forked", "anew"])
async def test_jails_are_made_in_the_way_that_the_check_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proven: str
) -> None:
    jail = BwrapJail(IMAGE, pool=1, spool=tmp_path)
    with monkeypatch.context() as context:
        if proven == "anew":
            context.setattr("fleet.jail.bwrap.spawn.bwrap_arguments", denied)
        require(await jail.probe())
    if proven == "forked":
        monkeypatch.setattr("fleet.jail.bwrap.spawn.bwrap_arguments", denied)
        with pytest.raises(JailError, match="namespaces"):
            await jail.call(ECHO, deadline_s=5)
    else:
        assert (await jail.call(ECHO, deadline_s=5)).stdout == b"x\n"
        assert zygotes(tmp_path) == []
    await jail.aclose()


async def test_what_fails_later_is_an_error_and_not_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zygote = Zygote(shape := open_shape(IMAGE, bwrap=find_bwrap()), tmp_path)
    other = await zygote.jail(Limits())
    monkeypatch.setattr("fleet.jail.bwrap.zygote.masks", lambda: ["/proc/nowhere"])
    with pytest.raises(JailError, match="/proc/nowhere"):
        await zygote.jail(Limits())
    assert (zygote.unable, other.alive()) == ("", True)
    monkeypatch.undo()
    await (await zygote.jail(Limits())).end()
    assert other.alive()
    await other.end()
    await zygote.end()
    shape.close()
    assert os.listdir(tmp_path) == []
