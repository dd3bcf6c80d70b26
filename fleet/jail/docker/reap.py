"""Containers of a dead daemon: found by their labels, killed and removed, with what their runtime left.

Their processes end by themselves, or by `fleet.jail.reap`, with or without an engine.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from fleet.jail.docker.engine import Engine
from fleet.jail.docker.engine_choice import EngineChoice
from fleet.jail.docker.runtime_helpers import end_helpers
from fleet.jail.process import boot_id, is_process, proc_stat

SPOOL, OWNER = "qa-fleet.spool", "qa-fleet.owner"
_START, _BOOT, _PIDS = "qa-fleet.owner-start", "qa-fleet.boot", "qa-fleet.pids"


def spool_mark(spool: Path) -> str:
    """A spool by its place and its inode: two fleets in containers may use the same path on one engine."""
    place = spool.resolve()
    return f"{place.stat().st_ino}:{place}"


def owner_labels(spool: Path) -> dict[str, str]:
    """The labels of a container that this process makes."""
    own = proc_stat(os.getpid())
    start = own.start if own else 0
    return {
        SPOOL: spool_mark(spool),
        OWNER: str(os.getpid()),
        _START: str(start),
        _BOOT: boot_id(),
        _PIDS: _pid_namespace(),
    }


def is_owned(labels: Mapping[str, str]) -> bool:
    """Whether the process that made this container is alive."""
    pid, start = labels.get(OWNER, ""), labels.get(_START, "")
    if not (pid.isdecimal() and start.isdecimal()):
        return False
    return is_process(int(pid), int(start), labels.get(_BOOT, ""))


def has_dead_owner(labels: Mapping[str, str]) -> bool:
    """Whether that process is certainly gone: it was of this boot and of our pid namespace, and is not there.

    False for one that another user hides, and for that of a fleet in another container.
    """
    pid, start = labels.get(OWNER, ""), labels.get(_START, "")
    seen_from_here = (labels.get(_BOOT), labels.get(_PIDS)) == (boot_id(), _pid_namespace())
    if not (seen_from_here and pid.isdecimal() and start.isdecimal() and int(pid)):
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    stat = proc_stat(int(pid))
    return stat is not None and (stat.start != int(start) or stat.state in "ZX")


def _pid_namespace() -> str:
    return os.readlink("/proc/self/ns/pid")


async def reap_containers(choice: EngineChoice, spool: Path) -> int:
    """Kill and remove every container whose daemon is dead; return how many there were.

    Of this spool that is whatever has no living owner; of others, whose directory may be gone, what has an
    owner that is certainly dead. JailError when the engine does not answer. The rest is left alone.
    """
    async with _labelled(choice) as (engine, found):
        mark = spool_mark(spool)
        stale = [
            container
            for container, labels in found.items()
            if has_dead_owner(labels) or (labels.get(SPOOL) == mark and not is_owned(labels))
        ]
        for container in stale:
            await engine.remove(container)
        await asyncio.to_thread(end_helpers, stale)
        return len(stale)


async def describe_containers(choice: EngineChoice) -> str:
    """In words, whose containers the engine has; JailError when it does not answer."""
    async with _labelled(choice) as (_, found):
        dead = [name for name, labels in found.items() if has_dead_owner(labels)]
        unseen = [name for name, labels in found.items() if name not in dead and not is_owned(labels)]
    parts = [f"{len(found) - len(dead) - len(unseen)} of living fleets"]
    if dead:
        parts.append(f"{len(dead)} of dead ones, which the next start removes")
    if unseen:
        names = " ".join(name[:12] for name in unseen)
        parts.append(
            f"{len(unseen)} of another boot or container; if that fleet is gone: docker rm -f {names}"
        )
    return "; ".join(parts)


@asynccontextmanager
async def _labelled(
    choice: EngineChoice,
) -> AsyncIterator[tuple[Engine, Mapping[str, Mapping[str, str]]]]:
    """The engine, and the labels of every container that a fleet made, by id."""
    engine = Engine(choice)
    try:
        found = await engine.containers(OWNER)
        yield engine, {str(entry["Id"]): entry.get("Labels") or {} for entry in found}
    finally:
        await engine.aclose()
