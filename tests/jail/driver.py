"""Run the whole battery as whoever runs this, and print one JSON object: id -> [held, seen].

`python -m tests.jail.driver BACKEND [ID ...]`; BACKEND is one word of what `tests.jail.yard.Backend` says. It
is a program of its own so that a test run of root can run it as an ordinary user as well.
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

from fleet.jail.model import End, Image
from tests.jail.canaries import planted
from tests.jail.probes.battery import ALL
from tests.jail.scenarios import SCENARIOS
from tests.jail.yard import SMALL, Backend, Verdict, Yard

PROBES = Path(__file__).parent / "probes"
_GROUPS = 4
_AT_ONCE = 2


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


def main() -> None:
    word, *chosen = sys.argv[1:]
    backend = Backend(*word.split())
    names = chosen or [*ALL, *SCENARIOS]
    memory = (
        "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    )  # removing 3000 directories: 0.1 s or 12 s
    with planted() as facts, tempfile.TemporaryDirectory(prefix="spool-", dir=memory) as spool:
        facts |= {"limits": asdict(SMALL), "user": backend.user}
        print(json.dumps(asyncio.run(battery(backend, names, facts, Path(spool)))))


if __name__ == "__main__":
    main()
