"""Run the escape battery in jails of the configured backend, and say what it showed of this machine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from fleet import __version__
from fleet.clock import Clock, iso
from fleet.config import JailSection
from fleet.errors import JailError
from fleet.jail.battery.probes.battery import ALL
from fleet.jail.battery.record import FenceRecord, jails_of
from fleet.jail.battery.scenarios import SCENARIOS
from fleet.jail.battery.yard import Verdict
from fleet.jail.choice import backend, engine_choice

WEAKER_FILE = Path(__file__).parent / "weaker.toml"
_DEADLINE_S = 180.0


async def try_fence(config: JailSection, clock: Clock) -> FenceRecord:
    """Make every attempt in jails of the configured backend; JailError where the battery itself ends early.

    An attempt that fails is made once more with nothing beside it: a busy machine is not a leak.
    """
    which = backend(config)
    word = "forks"
    if which == "docker":
        engine = engine_choice(config)
        word = f"docker {engine.url()} {engine.runtime} {engine.image}"
    names = [*ALL, *SCENARIOS]
    if which == "docker" and os.geteuid():
        names.remove("T04")  # it kills the engine's own process, which is of root
    found = await _attempts(word, names)
    for name in [name for name, (held, _) in found.items() if not held and name in names]:
        if not _listed(which, name, found[name][1]):
            found |= await _attempts(word, [name])
    weaker = {name for name, (held, seen) in found.items() if not held and _listed(which, name, seen)}
    return FenceRecord(
        at=iso(clock.now()),
        version=__version__,
        kernel=os.uname().release,
        backend=jails_of(config),
        held=tuple(name for name, (held, _) in found.items() if held),
        weaker=tuple(sorted(weaker)),
        failed={n: seen for n, (held, seen) in found.items() if held is False and n not in weaker},
        untried={name: seen for name, (held, seen) in found.items() if held is None},
    )


async def _attempts(word: str, names: Sequence[str]) -> dict[str, Verdict]:
    """What each showed: in a process of its own, which has nothing of this one but its PATH."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "fleet.jail.battery.attempts", word, *names),
        cwd="/",
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "QA_CANARY": secrets.token_hex(8),
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_DEADLINE_S):
            out, error = await process.communicate()
    except TimeoutError:
        raise JailError(
            f"the escape battery did not end in {_DEADLINE_S:.0f} s", remedy="fleet check machine"
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise JailError(
            f"the escape battery ended with {process.returncode}: {error.decode(errors='replace')[-300:]}",
            remedy="fleet check machine",
        )
    return {name: (held, seen) for name, (held, seen) in json.loads(out).items()}


def _listed(which: str, name: str, seen: str) -> bool:
    """Whether this backend is known to answer this attempt more weakly, with just that."""
    known = tomllib.loads(WEAKER_FILE.read_text())
    listed = known.get(which, {}) | (known.get(f"{which}-user", {}) if os.geteuid() else {})
    return name in listed and bool(re.fullmatch(listed[name]["seen"], seen))
