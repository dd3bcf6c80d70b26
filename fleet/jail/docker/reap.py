"""Containers of a dead daemon: found by their labels, killed and removed, with what their runtime left.

Their processes end by themselves, or by `fleet.jail.reap`, with or without an engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from fleet.jail.docker.engine import Engine
from fleet.jail.docker.engine_choice import EngineChoice
from fleet.jail.docker.owner import OWNER, SPOOL, has_dead_owner, is_owned, spool_mark
from fleet.jail.docker.runtime_helpers import end_helpers


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
    said = [f"{len(found) - len(dead) - len(unseen)} of living fleets"]
    if dead:
        said.append(f"{len(dead)} of dead ones, which the next start removes")
    if unseen:
        names = " ".join(name[:12] for name in unseen)
        said.append(
            f"{len(unseen)} of another boot or container; if that fleet is gone: docker rm -f {names}"
        )
    return "; ".join(said)


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
