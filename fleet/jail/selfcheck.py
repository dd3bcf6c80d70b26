"""Prove a fence by behaviour: a version number proves nothing.

Two jails at once: one reports what it is and can reach; one sits on a host directory with a planted way out,
leaves a crowd of processes behind and is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio

from fleet.errors import JailError
from fleet.jail.locate import other_remedy
from fleet.jail.model import Egress, End, Image, Jail, Outcome, Tier
from fleet.jail.reap import leftover_prefix
from sandbox import strict_json

Line = tuple[str, bool, str]
"""Name, passed, observation or remedy."""

_DEADLINE_S = 10.0
_GONE_S = 2.0
_ANSWER = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
_MEMORY: Line = (
    "memory",
    True,
    "watched from inside, no cgroup: memory of the kernel for the jail (socket buffers, page tables) and "
    "unmapped shared memory are not counted",
)
_CAPABILITIES = ("CapEff", "CapBnd", "CapAmb")
_SAW = "saw "
"""Begins the observation of a jail that ran, and was not held."""
_NO_LEAK = "way out"
"""Without it a jail reaches less, not more."""
_REFUSED = frozenset({"EPERM", "EACCES", "ENOSYS", "ENOSPC", "EAFNOSUPPORT", "EROFS"})


@dataclass(frozen=True, slots=True)
class _Check:
    """One line of the report: a test on the facts, the fact to show, and the remedy."""

    name: str
    holds: Callable[[dict[str, Any]], bool]
    seen: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _Plan:
    image: Image
    open_jail: Callable[[Image, Path | None], Jail]
    spool: Path


_FACTS = (
    _Check(
        "seccomp",
        lambda f: f["status"]["Seccomp"] == "2",
        "status",
        "the kernel needs CONFIG_SECCOMP_FILTER",
    ),
    _Check(
        "capabilities",
        lambda f: all(int(f["status"][name], 16) == 0 for name in _CAPABILITIES),
        "status",
        "use a bubblewrap that honours --cap-drop ALL",
    ),
    _Check(
        "no new privileges",
        lambda f: f["status"]["NoNewPrivs"] == "1" and f["uid"] != 0,
        "status",
        "use a bubblewrap that is not setuid",
    ),
    _Check(
        "loopback only",
        lambda f: f["interfaces"] == ["lo"],
        "interfaces",
        "allow network namespaces",
    ),
    _Check(
        "user namespaces",
        lambda f: f["userns"] in _REFUSED,
        "userns",
        "use a bubblewrap with --disable-userns",
    ),
    _Check(
        "vsock",
        lambda f: f["vsock"] in _REFUSED,
        "vsock",
        "the system call filter is not in force",
    ),
    _Check(
        "environment",
        lambda f: f["environ"] in _REFUSED | {"ENODATA"},
        "environ",
        "the first process shows its environment",
    ),
    _Check(
        "first process",
        lambda f: f["memory"] in _REFUSED,
        "memory",
        "the first process can be written to: is another /proc mounted over it?",
    ),
    _Check(
        "reins of the first process",
        lambda f: all(seen in _REFUSED for seen in f["reins"].values()),
        "reins",
        "the system call filter is not in force",
    ),
    _Check(
        "inotify",
        lambda f: f["inotify"] in _REFUSED,
        "inotify",
        "the system call filter is not in force",
    ),
    _Check(
        "later system calls",
        lambda f: all(seen in _REFUSED for seen in f["later"].values()),
        "later",
        "the system call filter does not know them",
    ),
    _Check(
        "unix sockets",
        lambda f: f["unix"] in _REFUSED,
        "unix",
        "the system call filter is not in force",
    ),
    _Check(
        "read-only root",
        lambda f: f["root"] in _REFUSED,
        "root",
        "use a bubblewrap that honours --remount-ro",
    ),
    _Check(
        "way out",
        lambda f: f["broker"] == "HTTP/1.1 403 Forbidden",
        "broker",
        "allow AF_NETLINK in the service unit: the loopback interface must come up",
    ),
)


async def prove(
    image: Image,
    *,
    backend: str,
    open_jail: Callable[[Image, Path | None], Jail],
    spool: Path,
    notes: Sequence[Line] = (_MEMORY,),
) -> Tier:
    """Run every check in jails of this image with our own guest, and return the tier.

    `open_jail` makes the jails of one image, over a host directory if one is given, without a pool. `notes`
    are lines on what this backend leaves open or holds by other means.
    """
    if why := _few_files(image.limits.files) if backend == "bwrap" else "":
        return Tier(backend=backend, tier="none", ok=False, checks=(("open files", False, why),))
    plan = _Plan(replace(image, guest="sandbox.start.selfcheck"), open_jail, spool)
    results: dict[str, list[Line]] = {}

    async def note(name: str, check: Callable[[_Plan], Awaitable[list[Line]]]) -> None:
        try:
            results[name] = await check(plan)
        except JailError as error:
            results[name] = [(name, False, f"{error}; {error.remedy}" if error.remedy else str(error))]

    async with anyio.create_task_group() as group:
        for name, check in _CHECKS.items():
            group.start_soon(note, name, check)
    checks = [*(line for name in _CHECKS for line in results[name]), *notes]
    ok = all(passed for _, passed, _ in checks)
    return Tier(backend=backend, tier="standard", ok=ok, checks=tuple(checks))


def _few_files(needed: int) -> str:
    """Why no jail can start under this process's limit of open files: a jail sets its own, and cannot raise
    it; every other check would only fail for that."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return ""
    remedy = "raise it with `ulimit -n`, or LimitNOFILE= of the unit"
    return f"the limit of open files is {soft}, at least {needed} are needed: {remedy}"


def require(tier: Tier) -> None:
    """Refuse to continue without a jail: JailError names every failed check and its remedy."""
    failed = [f"{name}: {seen}" for name, passed, seen in tier.checks if not passed]
    if failed or not tier.ok:
        raise JailError(
            f"no jail works here ({tier.backend}): " + ("; ".join(failed) or "not a fence"),
            remedy=f"see `fleet check machine`; {other_remedy(tier.backend)}",
        )


def leaks(tier: Tier) -> list[str]:
    """What a jail was seen to do that the fence should have stopped, as opposed to no jail that starts."""
    return [f"{name}: {seen}" for name, passed, seen in tier.checks if not passed and seen.startswith(_SAW)]


async def _facts(plan: _Plan) -> list[Line]:
    outcome = await _run(plan, "facts", _refuse_everything)
    try:
        facts = strict_json.loads(outcome.stdout)
        lines = []
        for check in _FACTS:
            seen, passed = json.dumps(facts[check.seen]), check.holds(facts)
            saw = "" if check.name == _NO_LEAK else _SAW
            lines.append((check.name, passed, seen if passed else f"{saw}{seen}; {check.remedy}"))
        return lines
    except (ValueError, KeyError, TypeError):
        tail = outcome.stderr.decode(errors="replace").strip()[-200:]
        return [("jail", False, f"the self-check guest ended {outcome.end} {outcome.code}: {tail}")]


async def _left_behind(plan: _Plan) -> list[Line]:
    """A planted link to the old root must lead nowhere; a crowd of processes must die."""
    base = tempfile.mkdtemp(prefix=leftover_prefix(), dir=plan.spool)
    try:
        work, victim = Path(base, "work"), Path(base, "victim")
        work.mkdir()
        victim.mkdir()
        (work / "a").symlink_to(f"/oldroot{victim.resolve()}")
        os.chmod(base, 0o711)
        victim.chmod(0o777)
        thread = _Thread()
        outcome = await _run(plan, "linger", thread.held, work=work)
        reached = outcome.stdout.split(b"\n", 1)[0].decode(errors="replace")
        clean = reached == "ENOENT" and not os.listdir(victim)
        ran = _SAW if outcome.end is End.FLOOD else ""
        killed = bool(ran) and thread.cut
    finally:
        shutil.rmtree(base, ignore_errors=True)
    seen = f"{outcome.end}, {'no' if thread.cut else 'some'} process left"
    return [
        ("host directory", clean, reached if clean else f"{ran}{reached}; upgrade bubblewrap to 0.12"),
        ("kill", killed, seen if killed else f"{ran}{seen}; the kernel needs PID namespaces and pidfds"),
    ]


_CHECKS = {"jail": _facts, "host directory": _left_behind}


async def _run(plan: _Plan, do: str, egress: Egress, *, work: Path | None = None) -> Outcome:
    jail = plan.open_jail(plan.image, work)
    try:
        request = json.dumps({"do": do}).encode() + b"\n"
        return await jail.call(request, deadline_s=_DEADLINE_S, egress=egress)
    finally:
        with anyio.CancelScope(shield=True):
            await jail.aclose()


@dataclass(slots=True)
class _Thread:
    """A connection that every process of a jail holds: it is cut when the last of them is gone."""

    cut: bool = False

    @asynccontextmanager
    async def held(self, listener: socket.socket) -> AsyncIterator[None]:
        yield  # until the jail has ended; what it has connected waits in the queue
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_GONE_S):
                loop = asyncio.get_running_loop()
                ours, _ = await loop.sock_accept(listener)
                with ours:
                    ours.setblocking(False)
                    self.cut = await loop.sock_recv(ours, 1) == b""


@asynccontextmanager
async def _refuse_everything(listener: socket.socket) -> AsyncIterator[None]:
    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(_ANSWER)

    async with (
        await anyio.abc.SocketListener.from_socket(listener.dup()) as serving,
        anyio.create_task_group() as group,
    ):
        group.start_soon(serving.serve, answer)
        yield
        group.cancel_scope.cancel()
