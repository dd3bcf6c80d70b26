"""What is measured meanwhile: memory and descriptors of the daemon, what it started, which keys it made."""

from __future__ import annotations

import os
import statistics
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from fleet.jail.process import proc_stat
from tests.soak.stand import Stand

EVERY_S = 1.0
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Sample:
    """`descriptors` leaves out those of runs' folders: five for each run in flight."""

    at: float
    pid: int
    rss: int
    descriptors: int


@dataclass(slots=True)
class Gauges:
    """`offspring` are processes that ever descended from a daemon of ours, by pid and start."""

    stand: Stand
    samples: list[Sample] = field(default_factory=list)
    offspring: set[tuple[int, int]] = field(default_factory=set)
    secrets: set[bytes] = field(default_factory=set)

    async def run(self) -> None:
        """Sample until cancelled."""
        while True:
            self.look()
            await anyio.sleep(EVERY_S)

    def look(self) -> None:
        process = self.stand.process
        if process is None or process.poll() is not None:
            return
        with suppress(OSError):
            resident = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * PAGE
            descriptors = 0
            for held in Path(f"/proc/{process.pid}/fd").iterdir():
                with suppress(OSError):  # closed meanwhile
                    descriptors += "/runs/" not in os.readlink(held)
            self.samples.append(Sample(time.monotonic(), process.pid, resident, descriptors))
        for pid in descendants(process.pid):
            if stat := proc_stat(pid):
                self.offspring.add((pid, stat.start))
        for path in self.stand.state.glob("runs/*/keys/*"):
            with suppress(OSError, ValueError):
                self.secrets.add(bytes.fromhex(path.read_text().strip()))

    def orphans(self) -> list[int]:
        """Processes that a daemon of ours started and that are alive, but no longer its."""
        process = self.stand.process
        own = descendants(process.pid) if process else set()
        return [pid for pid, start in self.offspring if pid not in own and _lives(pid, start)]

    def growth(self) -> dict[str, float]:
        """Of the longest life, after its first quarter: how much more the last third held than the first.

        Memory by its median, descriptors by their lowest tenth: runs in flight hold some, and for a moment
        after a fault there is not even a pool of jails.
        """
        lives: dict[int, list[Sample]] = {}
        for sample in self.samples:
            lives.setdefault(sample.pid, []).append(sample)
        life = max(lives.values(), key=len)
        steady = life[len(life) // 4 :]
        third = max(len(steady) // 3, 1)
        early, late = steady[:third], steady[-third:]
        memory = [statistics.median(one.rss for one in part) / 2**20 for part in (early, late)]
        held = [sorted(one.descriptors for one in part)[len(part) // 10] for part in (early, late)]
        minutes = (life[-1].at - life[0].at) / 60
        return {
            "minutes": round(minutes, 1),
            "mib_early": round(memory[0], 1),
            "mib_late": round(memory[1], 1),
            "mib": round(memory[1] - memory[0], 2),
            "descriptors_early": held[0],
            "descriptors_late": held[1],
            "descriptors": held[1] - held[0],
            "descriptors_most": max(one.descriptors for one in life),
        }


def descendants(pid: int) -> set[int]:
    """Every process below this one."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (stat := proc_stat(int(entry))):
            parents.setdefault(stat.parent, []).append(int(entry))
    found: set[int] = set()
    new = parents.get(pid, [])
    while new:
        found.update(new)
        new = [child for parent in new for child in parents.get(parent, [])]
    return found


def _lives(pid: int, start: int) -> bool:
    stat = proc_stat(pid)
    return stat is not None and stat.start == start and stat.state not in "ZX"
