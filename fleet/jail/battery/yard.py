"""Where the scenarios take their jails from, under limits small enough to hit."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fleet.config import JailSection
from fleet.errors import JailError
from fleet.jail.choice import open_jail
from fleet.jail.jail_spec import UNPRIVILEGED
from fleet.jail.model import Egress, End, Image, Jail, Limits, Outcome
from fleet.jail.process import proc_stat

SMALL = Limits(
    data=128 << 20,
    file=2 << 20,
    files=64,
    processes=40,
    box=8 << 20,
    tmp=4 << 20,
    shm=2 << 20,
    cpu_s=5,
    memory=192 << 20,
    inodes=20_000,
    stdout=1 << 20,
    stderr=16 << 10,
)

Verdict = tuple[bool | None, str]
"""Whether the fence held, None where no jail could be made to try it; what was seen."""


@dataclass(frozen=True)
class Backend:
    """`forks`, bubblewrap's jails as runs have them; `bwrap`, those that it starts one by one; or `docker`
    with an engine's URL, perhaps a runtime and an image: `docker unix:///x runsc`."""

    kind: str
    socket: str = ""
    runtime: str = ""
    image: str = ""

    @property
    def user(self) -> int:
        """The user that a guest finds itself to be: an engine maps none."""
        return UNPRIVILEGED if self.kind == "docker" else 1000

    def open(self, image: Image, spool: Path, work: Path | None = None) -> Jail:
        config = JailSection(
            backend="docker" if self.kind == "docker" else "bubblewrap",
            socket=self.socket,
            runtime=self.runtime,
            image=self.image,
        )
        pool = 1 if self.kind == "forks" and work is None else 0
        return open_jail(config, image, pool=pool, spool=spool, work=work)


@dataclass(frozen=True)
class Yard:
    """Where a scenario takes its jails from."""

    backend: Backend
    image: Image
    spool: Path
    facts: dict[str, Any]

    async def act(
        self,
        do: str,
        *,
        deadline_s: float = 10,
        egress: Egress | None = None,
        limits: Limits | None = None,
        work: Path | None = None,
        **request: Any,
    ) -> Outcome:
        """Run one act in a fresh jail."""
        image = replace(self.image, guest="probes.acts", limits=limits or self.image.limits)
        jail = self.backend.open(image, self.spool, work)
        try:
            line = json.dumps({"do": do, **request}).encode() + b"\n"
            return await jail.call(line, deadline_s=deadline_s, egress=egress)
        finally:
            await jail.aclose()

    def running(self, mark: int) -> list[int]:
        """Host processes of jails with this time limit: it is set, or on their command line."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command, limits = (entry / "cmdline").read_bytes(), (entry / "limits").read_text()
                except OSError:
                    continue
                if f'"cpu_s": {mark}'.encode() in command or re.search(rf"cpu time +{mark} ", limits):
                    found.append(int(entry.name))
        return found

    def outer(self, mark: int) -> int:
        """The process on our side of a jail: bubblewrap's, what waits for a fork, an engine's shim."""
        stats = {pid: stat for pid in self.running(mark) if (stat := proc_stat(pid))}
        parents = {pid: stat.parent for pid, stat in stats.items()}
        firsts = [pid for pid, parent in parents.items() if parent not in parents]
        if self.backend.kind == "forks":  # the oldest guest that has the limit; another may wait for a call
            init = proc_stat(parents[min(firsts, key=lambda pid: stats[pid].start)])
            if init is None:
                raise JailError("the jail ended by itself")
            return init.parent
        (first,) = firsts
        return first if self.backend.kind == "bwrap" else parents[first]


def ended(outcome: Outcome, end: End, code: int = 0) -> Verdict:
    seen = f"{outcome.end} {outcome.code} in {outcome.seconds:.2f}s {outcome.stderr[-200:]!r}"
    return outcome.end is end and outcome.code == code, seen
