"""Where the scenarios take their jails from, under limits small enough to hit."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fleet.jail.bwrap import BwrapJail
from fleet.jail.model import Egress, End, Image, Limits, Outcome

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

Verdict = tuple[bool, str]


@dataclass(frozen=True)
class Yard:
    """Where a scenario takes its jails from."""

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
        jail = BwrapJail(image, pool=0, spool=self.spool, work=work)
        try:
            line = json.dumps({"do": do, **request}).encode() + b"\n"
            return await jail.call(line, deadline_s=deadline_s, egress=egress)
        finally:
            await jail.aclose()

    def running(self, mark: int) -> list[int]:
        """Host processes of jails with this time limit: the limits are on the command line of bubblewrap."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if f'"cpu_s": {mark}'.encode() in command and b"bwrap" in command.split(b"\0")[0]:
                    found.append(int(entry.name))
        return found


def ended(outcome: Outcome, end: End, code: int = 0) -> Verdict:
    seen = f"{outcome.end} {outcome.code} in {outcome.seconds:.2f}s {outcome.stderr[-200:]!r}"
    return outcome.end is end and outcome.code == code, seen
