"""Run the whole battery as the user who runs this, and print one JSON object: id -> [held, seen].

`python -m fleet.jail.battery.attempts BACKEND [ID ...]`; BACKEND is one word of what `yard.Backend` says.
It is a program of its own: what it plants on the host is in its environment, keyring and descriptors.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fleet.errors import JailError
from fleet.jail.battery.canaries import planted
from fleet.jail.battery.probes.battery import ALL
from fleet.jail.battery.probes.registry import Escaped
from fleet.jail.battery.scenarios import SCENARIOS
from fleet.jail.battery.yard import SMALL, Backend, Verdict, Yard
from fleet.jail.model import End, Image

PROBES = Path(__file__).parent / "probes"
_GROUPS = 4
_AT_ONCE = 2
HOST = "host"
"""Stands for an attempt where something on the host was changed and no attempt says which did it."""


def image() -> Image:
    """The battery's guests under small limits."""
    return Image(mounts=((PROBES, "probes"),), limits=SMALL, guest="probes.battery")


async def _probes(
    backend: Backend, names: Sequence[str], facts: dict[str, Any], spool: Path
) -> dict[str, Verdict]:
    jail = backend.open(image(), spool)
    try:
        request = json.dumps({"probes": names, "facts": facts}).encode() + b"\n"
        outcome = await jail.call(request, deadline_s=30)
    except JailError as error:
        return dict.fromkeys(names, (None, str(error)))
    finally:
        await jail.aclose()
    if outcome.end is not End.EXITED or outcome.code:
        seen = f"{outcome.end} {outcome.code} {outcome.stderr[-500:]!r}"
        return dict.fromkeys(names, (False, seen))
    return {name: (held, seen) for name, (held, seen) in json.loads(outcome.stdout).items()}


async def battery(
    backend: Backend, names: Sequence[str], facts: dict[str, Any], spool: Path
) -> dict[str, Verdict]:
    """Run the named probes, a few jails for all of them, and the named scenarios, one jail or two each."""
    room = asyncio.Semaphore(_AT_ONCE)
    results: dict[str, Verdict] = {}

    async def group(chosen: Sequence[str]) -> None:
        async with room:
            results.update(await _probes(backend, chosen, facts, spool))

    async def scenario(name: str) -> None:
        async with room:
            try:
                results[name] = await SCENARIOS[name](Yard(backend, image(), spool, facts))
            except JailError as error:
                results[name] = None, str(error)
            except Exception as error:
                results[name] = False, f"{type(error).__name__}: {error}"

    inside = [name for name in ALL if name in names]
    async with asyncio.TaskGroup() as tasks:
        for name in SCENARIOS:
            if name in names:
                tasks.create_task(scenario(name))
        for at in range(_GROUPS):
            if inside[at::_GROUPS]:
                tasks.create_task(group(inside[at::_GROUPS]))
    return results


def tried(backend: Backend, names: Sequence[str]) -> dict[str, Verdict]:
    """Plant the canaries and make these attempts, all without a name; HOST where a canary was reached."""
    # removing 3000 directories: 0.1 s or 12 s
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    results: dict[str, Verdict] = {}
    try:
        with planted() as facts, tempfile.TemporaryDirectory(prefix="spool-", dir=memory) as spool:
            facts |= {"limits": asdict(SMALL), "user": backend.user}
            chosen = names or [*ALL, *SCENARIOS]
            results = asyncio.run(battery(backend, chosen, facts, Path(spool)))
    except Escaped as escape:
        results[HOST] = False, str(escape)
    return results


if __name__ == "__main__":
    print(json.dumps(tried(Backend(*sys.argv[1].split(" ")), sys.argv[2:])))
