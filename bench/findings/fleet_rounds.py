"""The shipped personas on a running platform: rounds of `fleet run`, real jails, and what was posted."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import anyio.to_thread

from bench.findings.reduced_personas import without_own_probes
from bench.findings.rules import EvidenceCall, Posted
from fleet.clock import SystemClock
from fleet.files import ROOT
from fleet.findings.evidence import load
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.store.journal import Journal
from tests.platforms.firing import Home, home
from tests.platforms.stand import Stand

PERSONAS = ("qa-smoke", "qa-security", "qa-fuzz", "qa-ux", "qa-perf")
RUN_S = 660.0
"""More than a persona's own wall time of ten minutes, after which it proves and posts what it found."""
CUT = 75
"""The exit status of a run that left something to a later one: its budget bounds every look here."""


@dataclass(slots=True)
class FinderOutcome:
    """What a finder reported of one platform, and what it spent."""

    items: list[Posted] = field(default_factory=list)
    calls: int = 0
    writes: int = 0
    seconds: float = 0.0
    first_s: float = 0.0
    """Until the first proof; 0 without one."""
    parts: dict[str, float] = field(default_factory=dict)
    """Seconds by persona."""
    troubles: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FleetRounds:
    """The fleet as a finder: each persona `rounds` times, one after the other, in a fresh state directory."""

    rounds: int
    remembered: bool = True
    """False: without the probes that remember the devnet's seeded defects."""
    personas: tuple[str, ...] = PERSONAS

    async def observe(self, folder: Path, stand: Stand) -> FinderOutcome:
        """Fire the personas at `exercise` and read what was posted."""
        at = await home(folder, stand)
        write_dial(at.state, Rung.EXERCISE, "a bench on its own platform", "bench", SystemClock())
        if not self.remembered:
            without_own_probes(at.state / "personas")  # which replace the shipped ones
        began, started = datetime.now(UTC), time.monotonic()
        outcome = FinderOutcome()
        for persona in self.personas * self.rounds:
            before = time.monotonic()
            try:
                done = await anyio.to_thread.run_sync(_run, persona, at)
            except subprocess.TimeoutExpired:  # what was posted before counts
                outcome.troubles.append(f"{persona}: killed after {RUN_S:.0f} s")
                continue
            finally:
                outcome.parts[persona] = outcome.parts.get(persona, 0.0) + time.monotonic() - before
            told = done.stdout.startswith("{")  # a traceback ends with 1 as well
            if done.returncode not in (0, 1, CUT) or not told:
                outcome.troubles.append(f"{persona}: status {done.returncode}: {done.stderr.strip()[-300:]}")
        outcome.seconds = time.monotonic() - started
        await _read(at.state, began, outcome)
        return outcome


def _run(persona: str, at: Home) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fleet.cli", "run", persona, "--json"],
        capture_output=True,
        text=True,
        timeout=RUN_S,
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
        env=at.environment() | {"PYTHONPATH": str(ROOT), "QA_FLEET_EXPLORE": "true"},
    )


async def _read(state: Path, began: datetime, outcome: FinderOutcome) -> None:
    """The posted items with their evidence, and what all runs spent."""
    async with await Journal.open(state / "fleet.db") as journal:
        for row in await journal.findings():
            if row.state != "posted":
                continue
            bundle = load(state / "runs" / row.run_id / "evidence", row.evidence)
            calls = tuple(EvidenceCall(one["tool"], one["args"], one["result"]) for one in bundle["steps"])
            seen = str(bundle["seen_at"])
            outcome.items.append(Posted(title=row.title, calls=calls, surface=row.surface, at=seen))
        for run in await journal.runs(1_000):
            spent = await journal.spent(run.run_id)
            outcome.calls += int(spent.get("calls", 0))
            outcome.writes += int(spent.get("writes", 0))
    if outcome.items:
        first = min(datetime.fromisoformat(one.at) for one in outcome.items)
        outcome.first_s = max(0.0, (first - began).total_seconds())
