"""One soak, and its report in JSON: `python -m tests.soak --folder EMPTY [--minutes 2] [--seed 7]`."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from tests.soak import checks
from tests.soak.cast import SEEDED
from tests.soak.faults import DEADLY, FAULTS, FIRST
from tests.soak.gauges import Gauges
from tests.soak.stand import Complaint, Stand

WARM_S = 240.0
MEND_S = 240.0
"""How long the daemon may take after a fault: janitor and queue try again later and later."""
FOUND = len(SEEDED)
"""Findings on the log before the first fault."""


@dataclass(slots=True)
class Soak:
    """The schedule: every fault once in an order of chance, then again."""

    stand: Stand
    gauges: Gauges
    minutes: float
    only: list[str]
    faults: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)
    deck: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    async def run(self) -> None:
        await self.stand.until(self._warm, WARM_S, f"{FOUND} findings before the first fault")
        self.say("warm")
        start = time.monotonic()
        while (passed := time.monotonic() - start) < self.minutes * 60:
            await self.inflict(self._next(late=passed > self.minutes * 20))
        await self._close()

    def _next(self, *, late: bool) -> list[str]:
        """A few faults that come one right after the other; the short form has no time for one at a time."""
        few = self.stand.chance.randint(1, 2) if self.minutes >= 10 else 3
        chosen: list[str] = []
        while len(chosen) < few:
            self.deck = self.deck or self._shuffled()
            name = self.deck.pop()
            if not (late and name in DEADLY and not self.only):
                chosen.append(name)
        return chosen

    async def inflict(self, names: list[str]) -> None:
        """From the beginning of the first fault until everything is as it should be after the last."""
        for name in names:
            self.say(f"fault: {name}")
            self.faults[name] += 1
            self.stand.alive()
            with anyio.fail_after(MEND_S):
                await FAULTS[name](self.stand)
        took, last = await self._mended(" and ".join(names))
        for name in names:
            self.slowest[name] = max(took, self.slowest.get(name, 0))
        self.complain(await checks.broken(self.stand))
        self.say(f"mended after {took:.1f} s; last of all: {last}")

    async def _mended(self, what: str) -> tuple[float, str]:
        """Seconds until nothing was unfinished, and what was so longest."""
        stopped, since = time.monotonic(), checks.rows(self.stand, "select max(rowid) from runs")[0][0]
        problems: list[str] = []
        last = "nothing"

        async def mended() -> bool:
            nonlocal last
            problems[:] = await checks.unfinished(self.stand, self.gauges, since)
            last = problems[0] if problems else last
            return not problems

        try:
            await self.stand.until(mended, MEND_S, f"after {what}")
        except Complaint as error:
            raise Complaint(f"{'; '.join(problems)}; {error}") from None
        return time.monotonic() - stopped, last

    async def _close(self) -> None:
        """SIGTERM, then nothing may be left."""
        self.complain(list(checks.leaks(self.stand, self.gauges)))
        if (code := await self.stand.end()) != 0:
            raise Complaint(f"I8: SIGTERM ended the daemon with status {code}:\n{self.stand.words(2000)}")
        left = [f"I4: left behind: {line}" for _, line in self.stand.processes().values()]
        left += [*checks.jails_left(self.stand, self.gauges), *checks.keys_left(self.stand)]
        open_runs = checks.rows(self.stand, "select run_id from runs where state in ('running', 'settling')")
        self.complain(left + [f"I4: run {run} is open" for (run,) in open_runs])
        self.complain(await checks.broken(self.stand) + await checks.names_left(self.stand))

    async def _warm(self) -> bool:
        return len(await checks.log(self.stand)) >= FOUND and await self.stand.ready() is not None

    def _shuffled(self) -> list[str]:
        if self.minutes < 10 and not self.faults and not self.only:
            return [*reversed(FIRST)]
        deck = sorted(self.only or FAULTS)
        self.stand.chance.shuffle(deck)
        return deck

    def complain(self, problems: list[str]) -> None:
        if problems:
            raise Complaint("; ".join(problems))

    def say(self, what: str) -> None:
        print(f"{time.monotonic() - self.began:7.1f}  {what}", file=sys.stderr, flush=True)

    async def report(self) -> dict[str, Any]:
        stand = self.stand

        def counts(column: str, of: str) -> dict[str, int]:
            query = f"select {column}, count(*) from {of} group by 1 order by 2 desc"
            return dict(checks.rows(stand, query))

        slowest = sorted(self.slowest.items(), key=lambda item: -item[1])[:6]
        return {
            "minutes": round((time.monotonic() - self.began) / 60, 1),
            "faults": dict(sorted(self.faults.items())),
            "slowest_to_mend_s": {name: round(seconds, 1) for name, seconds in slowest},
            "runs": counts("outcome", "runs"),
            "findings": counts("state", "findings"),
            "posted": counts("probe", "findings where state = 'posted'"),
            "untrue": await checks.untrue(stand),
            "requests": stand.line.asked,
            "killed": stand.killed,
            "feed": dict(Counter(event.type for event in stand.events())),
            "tracebacks": stand.log.read_text("utf-8", "replace").count("Traceback"),
            "growth": self.gauges.growth(),
        }


async def main(options: argparse.Namespace) -> int:
    """Told to end, it ends what it started."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_told, tasks.cancel_scope)
        code = await soak(options)
        tasks.cancel_scope.cancel()
        return code
    return 130


async def _told(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        async for _ in received:
            return scope.cancel()


async def soak(options: argparse.Namespace) -> int:
    """One soak and its report on stdout; 1 when something was found."""
    chance = random.Random(options.seed)
    async with (
        Stand(options.folder, chance, options.small_disk, hold_s=held(options.minutes)) as stand,
        anyio.create_task_group() as tasks,
    ):
        gauges = Gauges(stand)
        tasks.start_soon(gauges.run)
        soak = Soak(stand, gauges, options.minutes, options.only)
        complaint = ""
        try:
            await soak.run()
        except (Complaint, TimeoutError) as error:
            complaint = str(error) or "a fault did not come to its end"
        report = await soak.report() | {"seed": options.seed, "complaint": complaint}
        tasks.cancel_scope.cancel()
        if complaint and options.small_disk:
            with anyio.CancelScope(shield=True):
                await stand.end()
            left = shutil.ignore_patterns("keys", "*.sock")
            shutil.copytree(stand.state, stand.folder / "left", ignore=left)
    print(json.dumps(report, indent=1))
    return 1 if complaint else 0


def held(minutes: float) -> float:
    """Seconds that a fault lasts at most."""
    return 4.0 if minutes < 5 else 10.0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--small-disk", action="store_true")
    parser.add_argument("--only", action="append", default=[], choices=sorted(FAULTS))
    options = parser.parse_args()
    options.folder = options.folder.absolute()
    options.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return options


if __name__ == "__main__":
    sys.exit(anyio.run(main, parsed()))
