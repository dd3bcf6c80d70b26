"""Escapes that only the host side can see: what is left, what was read, what came back."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from fleet.errors import JailError
from fleet.jail.battery.yard import Verdict, Yard, ended
from fleet.jail.model import Egress, End
from fleet.jail.rmtree import rmtree


async def planted_way_out(yard: Yard) -> Verdict:
    """F12: a link to the old root from an earlier run on the same directory."""
    with tempfile.TemporaryDirectory(dir=yard.spool) as base:
        work, victim = Path(base, "work"), Path(base, "victim")
        work.mkdir()
        victim.mkdir()
        victim.chmod(0o777)
        os.chmod(base, 0o711)
        for name in ("a", "tmp", "sub"):
            (work / name).symlink_to(f"/oldroot{victim}")
        outcome = await yard.act("leave", work=work, code=0)
        left = os.listdir(victim)
        return outcome.end is End.EXITED and not left, f"{outcome.end} {left}"


async def wrecked(yard: Yard) -> Verdict:
    """F05, F14: everything that makes removing hard."""
    with tempfile.TemporaryDirectory(dir=yard.spool) as base:
        work, outside = Path(base, "work"), Path(base, "outside")
        work.mkdir()
        outside.mkdir()
        (outside / "precious").write_text("precious")
        key = yard.facts["secrets"][0]
        limits = replace(yard.image.limits, file=64 << 20, cpu_s=20, inodes=100_000)
        request = {"key": key, "outside": str(outside), "files": 5000}
        done = await yard.act("wreck", work=work, limits=limits, deadline_s=30, **request)
        if done.end is not End.EXITED or done.code:
            return False, f"{done.end} {done.code} {done.stderr[-300:]!r}"
        os.mkfifo(work / "fifo")
        started = time.monotonic()
        rmtree(Path(base), "work")
        gone = not work.exists() and (outside / "precious").read_text() == "precious"
        seconds = time.monotonic() - started
        return gone and seconds < 8, f"gone {gone}, {seconds:.1f}s"


async def exchanged(yard: Yard) -> Verdict:
    """F13: a directory that becomes a link and back while we remove."""
    with tempfile.TemporaryDirectory(dir=yard.spool) as base:
        work, outside = Path(base, "work"), Path(base, "outside")
        work.mkdir()
        outside.mkdir()
        outside.chmod(0o777)
        for number in range(300):
            (outside / str(number)).write_text("precious")
        limits = replace(yard.image.limits, inodes=1 << 30)
        attack = asyncio.ensure_future(
            yard.act("exchange", work=work, outside=str(outside), deadline_s=1.5, limits=limits)
        )
        rounds = 0
        while not attack.done():
            await asyncio.sleep(0.01)
            rounds += 1
            await asyncio.to_thread(_try_remove, work, "tree")
        outcome = await attack
        _try_remove(Path(base), "work")
        left = len(os.listdir(outside))
        return (
            left == 300 and rounds > 3 and not work.exists(),
            f"{outcome.end} {left} {rounds}",
        )


def _try_remove(parent: Path, name: str) -> None:
    try:
        rmtree(parent, name)
    except JailError:
        return  # still at work: the next round


async def lingering(yard: Yard) -> Verdict:
    """T01, P10: 40 processes that ignore everything, past the deadline."""
    for deadline_s in (0.6, 1.2, 2.4):  # a busy machine may need more than the first for 80 forks
        mark = 10_000 + secrets.randbelow(10_000_000)
        limits = replace(yard.image.limits, cpu_s=mark, processes=128)
        outcome = await yard.act("linger", deadline_s=deadline_s, limits=limits)
        left = yard.running(mark)
        in_time = outcome.end is End.TIMEOUT and outcome.seconds < deadline_s + 1
        seen = f"{outcome.end} left {left} after {outcome.seconds:.2f}s {outcome.stderr[-100:]!r}"
        if left or not in_time:
            return False, seen
        if b"lingering" in outcome.stdout:
            return True, seen
    return False, f"never lingered: {seen}"


async def stopped(yard: Yard) -> Verdict:
    """T05: everything stops itself; the deadline kills it anyway."""
    return ended(await yard.act("stop", deadline_s=0.4), End.TIMEOUT)


async def spinning(yard: Yard) -> Verdict:
    """T02: a loop that ignores SIGXCPU is killed by the hard limit one second later."""
    outcome = await yard.act("spin", limits=replace(yard.image.limits, cpu_s=2), deadline_s=60)
    held, seen = ended(outcome, End.SIGNALED, signal.SIGKILL)
    return held and outcome.stdout == b"spinning\n", f"{seen} {outcome.stdout!r}"


async def outer_killed(yard: Yard) -> Verdict:
    """T04: only the process outside of the jail dies; the run ends as lost, and nothing is left."""
    mark = 10_000 + secrets.randbelow(10_000_000)
    limits, arrived = replace(yard.image.limits, cpu_s=mark), asyncio.Event()
    run = asyncio.ensure_future(
        yard.act("arrive", limits=limits, deadline_s=60, egress=_named("here", arrived))
    )
    waits = asyncio.ensure_future(arrived.wait())
    await asyncio.wait((run, waits), return_when=asyncio.FIRST_COMPLETED)
    waits.cancel()
    os.kill(yard.outer(mark), signal.SIGKILL)
    outcome = await run
    left = yard.running(mark)
    return outcome.end is End.LOST and not left, f"{outcome.end} {left}"


async def shared_memory(yard: Yard) -> Verdict:
    """R04: MAP_SHARED memory, which no rlimit of ours counts, is seen by the watch inside."""
    outcome = await yard.act("share", bytes=1 << 30, deadline_s=20)
    return ended(outcome, End.SIGNALED, signal.SIGKILL)


async def blinded(yard: Yard) -> Verdict:
    """R04: the same from a guest that first takes what it can from the process that watches."""
    outcome = await yard.act("blind", bytes=1 << 30, deadline_s=20)
    return ended(outcome, End.SIGNALED, signal.SIGKILL)


async def crowded(yard: Yard) -> Verdict:
    """R02: eight processes, each below its own limit."""
    outcome = await yard.act("crowd", bytes=yard.image.limits.data * 3, deadline_s=20)
    return ended(outcome, End.SIGNALED, signal.SIGKILL)


async def many_inodes(yard: Yard) -> Verdict:
    """R08: empty files use no blocks; an engine's tmpfs is full soon after PID 1 would have ended it."""
    outcome = await yard.act("inodes", deadline_s=30)
    held, seen = ended(outcome, End.SIGNALED, signal.SIGKILL)
    full = yard.backend.kind == "docker" and b"No space left on device" in outcome.stderr
    return held or (full and outcome.end is End.EXITED), seen


async def flooding(yard: Yard) -> Verdict:
    """R09: more output than the cap, on either stream, ends the run at once."""
    for fd in (1, 2):
        outcome = await yard.act("flood", fd=fd)
        kept = len(outcome.stdout if fd == 1 else outcome.stderr)
        cap = yard.image.limits.stdout if fd == 1 else yard.image.limits.stderr
        if outcome.end is not End.FLOOD or kept != cap or outcome.seconds > 3:
            return False, f"{fd}: {outcome.end} {kept} {outcome.seconds:.2f}s"
    return True, "cut at the cap"


async def binary_output(yard: Yard) -> Verdict:
    """R09: 100 KiB of every byte comes back as it was."""
    outcome = await yard.act("lines", count=400)
    return outcome.stdout == bytes(
        range(256)
    ) * 400 and outcome.end is End.EXITED, f"{len(outcome.stdout)} bytes"


async def aborting(yard: Yard) -> Verdict:
    """R10: a crash is a crash."""
    return ended(await yard.act("crash", signal=int(signal.SIGABRT)), End.SIGNALED, signal.SIGABRT)


async def truthful(yard: Yard) -> Verdict:
    """T06: an exit status that looks like a signal is still an exit status."""
    return ended(await yard.act("leave", code=137), End.EXITED, 137)


async def neighbours(yard: Yard) -> Verdict:
    """J01, I02: two jails at once share nothing but locks on the files of /usr, a known leftover."""
    one, two = await asyncio.gather(yard.act("meet", name="one"), yard.act("meet", name="two"))
    first, second = json.loads(one.stdout), json.loads(two.stdout)
    apart = first["seen"] == ["one"] and second["seen"] == ["two"]
    alone = first["processes"] <= 2 and second["processes"] <= 2
    return apart and alone, f"{first} {second}"


def _named(name: str, asked: asyncio.Event | None = None) -> Egress:
    @asynccontextmanager
    async def serve(listener: socket.socket) -> AsyncIterator[None]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            if asked is not None:
                asked.set()
            writer.write(name.encode())
            writer.close()
            if name == "once":
                server.close()

        server = await asyncio.start_server(answer, sock=listener)
        try:
            yield
        finally:
            server.close()

    return serve


async def own_way_out(yard: Yard) -> Verdict:
    """N09: each jail reaches the broker of its own call; one without a broker reaches nothing."""
    calls = [yard.act("connect", egress=_named(name)) for name in ("one", "two")]
    seen = [o.stdout.strip() for o in await asyncio.gather(*calls, yard.act("connect"))]
    return seen == [b"one", b"two", b"ConnectionRefusedError"], str(seen)


async def broker_gone(yard: Yard) -> Verdict:
    """T08: a broker that dies leaves the guest with an error, not with a way out."""
    outcome = await yard.act("reconnect", egress=_named("once"))
    seen = outcome.stdout.split()
    return seen in ([b"once", b"ConnectionRefusedError"], [b"once", b"ConnectionResetError"]), str(seen)


async def bomb_and_sibling(yard: Yard) -> Verdict:
    """R05: a jail at its process limit does not keep another from starting."""
    bomb = asyncio.ensure_future(yard.act("linger", deadline_s=1.5))  # 40 processes under a limit of 40
    await asyncio.sleep(0.3)
    sibling = await yard.act("leave", code=5)
    await bomb
    return ended(sibling, End.EXITED, 5)


SCENARIOS: dict[str, Callable[[Yard], Awaitable[Verdict]]] = {
    "F12": planted_way_out,
    "F05 F14": wrecked,
    "F13": exchanged,
    "T01 P10": lingering,
    "T02": spinning,
    "T04": outer_killed,
    "T05": stopped,
    "T06-exit": truthful,
    "T08": broker_gone,
    "N09": own_way_out,
    "J01 I02": neighbours,
    "R02-crowd": crowded,
    "R04": shared_memory,
    "R04-blind": blinded,
    "R05-sibling": bomb_and_sibling,
    "R08": many_inodes,
    "R09": flooding,
    "R09-binary": binary_output,
    "R10": aborting,
}
