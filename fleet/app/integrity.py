"""Whether a system is, after its tests, what it was before them: by what the operator's commands print.

The service takes the baseline before the first run of an engagement (a platform with its times), and holds it
against a second look once the engagement is over; `fleet check integrity` does at any time. What differs is
in DECISIONS.md, and a notice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from fleet.clock import Clock, iso
from fleet.command import run_command
from fleet.config import FleetConfig, Platform
from fleet.config.integrity import Category
from fleet.errors import FleetError
from fleet.runs.call.decision_file import Decision, DecisionFile
from fleet.runs.call.sightings import SIGHTED
from fleet.store.journal import Journal
from fleet.text import counted, line

BASELINE, LOOKED = "integrity:", "integrity-after:"
"""Prefixes of the facts of a platform: the first look, and when the last engagement was looked at."""
LARGEST = 1 << 18
"""Bytes that one command may print."""
SHOWN = 20
LOOK_S = 60.0
Lines = Mapping[Category, tuple[str, ...]]


class CannotLook(FleetError):
    """A command that cannot be started, fails, takes too long, or prints too much."""


@dataclass(frozen=True, slots=True)
class IntegrityReport:
    """What two looks differ in, by category: lines that are new, and lines that are gone; `faults` are what
    could not be looked at, which is a difference too."""

    since: str
    at: str
    seconds: float
    looked: dict[str, int] = field(default_factory=dict)
    new: dict[str, list[str]] = field(default_factory=dict)
    gone: dict[str, list[str]] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        return bool(self.new or self.gone or self.faults)

    def words(self) -> str:
        """One line."""
        parts = [f"{name}: {why}" for name, why in self.faults.items()]
        for sign, rows in (("+", self.new), ("-", self.gone)):
            parts += [f"{name}: {sign}{one}" for name, found in rows.items() for one in found[:3]]
        return "; ".join(parts) or f"as at {self.since}: {', '.join(self.looked)}"


def engagement(platform: Platform) -> str:
    """Names a platform with the times of its tests."""
    return f"{platform.name}:{platform.schedule.not_before or ''}/{platform.schedule.not_after or ''}"


async def look_by(command: tuple[str, ...], seconds: float) -> tuple[str, ...]:
    """What a command prints, by line. CannotLook, OSError or ValueError."""
    env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", "/")}
    end = await run_command(command, env=env, limit=LARGEST, seconds=seconds)
    if end.late:
        raise CannotLook(f"{command[0]} took more than {seconds:g} s")
    if end.flooded:
        raise CannotLook(f"{command[0]} prints more than {LARGEST} bytes: let it print checksums")
    if end.status:
        said = line(end.errors.decode("utf-8", "replace"), 200)
        raise CannotLook(f"{command[0]} ended with {end.status}: {said}")
    return tuple(sorted({row for row in end.output.decode("utf-8", "replace").splitlines() if row.strip()}))


async def look(config: FleetConfig) -> tuple[dict[Category, tuple[str, ...]], dict[str, str]]:
    """What each stated command prints, sorted, and why others could not be looked at."""
    found, faults = dict[Category, tuple[str, ...]](), dict[str, str]()
    for name, command in config.integrity.commands.items():
        try:
            found[name] = await look_by(command, config.integrity.seconds)
        except (CannotLook, OSError, ValueError) as error:
            faults[name] = line(str(error), 300)
    return found, faults


async def take_baseline(
    config: FleetConfig, platform: Platform, journal: Journal, clock: Clock, *, anew: bool = False
) -> dict[str, str]:
    """Keep how the system is before its tests, once an engagement; what could not be looked at."""
    key = BASELINE + engagement(platform)
    if not config.integrity.commands or (not anew and await journal.get(key)):
        return {}
    found, faults = await look(config)
    if not faults:
        await journal.put(key, json.dumps({"at": iso(clock.now()), "lines": found}))
    return faults


async def compare(
    state: Path, config: FleetConfig, platform: Platform, journal: Journal, clock: Clock
) -> IntegrityReport | None:
    """Hold the system against its baseline; what differs is on record and told. None without a baseline."""
    kept = await journal.get(BASELINE + engagement(platform))
    if kept is None:
        return None
    known, began = json.loads(kept), clock.monotonic()
    found, faults = await look(config)
    before = {name: set(rows) for name, rows in known["lines"].items()}
    faults |= dict.fromkeys(found.keys() - before.keys(), "it has no baseline")
    faults |= dict.fromkeys(before.keys() - found.keys() - faults.keys(), "no command looks at it any more")
    both = sorted(found.keys() & before.keys())
    shown: dict[str, dict[str, list[str]]] = {
        sign: {
            name: [line(row, 200) for row in sorted(rows)[:SHOWN]]
            for name in both
            if (rows := set(found[name]) - before[name] if sign == "new" else before[name] - set(found[name]))
        }
        for sign in ("new", "gone")
    }
    at = iso(clock.now())
    looked: dict[str, int] = {name: len(found[name]) for name in both}
    seconds = round(clock.monotonic() - began, 3)
    report = IntegrityReport(known["at"], at, seconds, looked, shown["new"], shown["gone"], faults)
    _record(state, clock, report)
    if report.differs:
        told = json.dumps(
            {"run": "", "at": at, "what": f"the system is not as before its tests: {report.words()}"}
        )
        await journal.put(f"{SIGHTED}{platform.name}:fence:integrity {at}", told)
    return report


def _record(state: Path, clock: Clock, report: IntegrityReport) -> None:
    count = sum(len(rows) for found in (report.new, report.gone) for rows in found.values())
    one = Decision(
        "the system under test is as before its tests"
        if not report.differs
        else f"the system under test differs from what it was: {counted(count, 'line')}",
        f"as at {report.since}, or not",
        "nothing differs" if not report.differs else "a person looks at it",
        report.words(),
        "fleet check integrity",
        charter="[integrity]",
    )
    DecisionFile(state, clock).record(one, run="none", turn=0)


async def watch_end(
    state: Path, config: FleetConfig, platform: Platform, journal: Journal, clock: Clock
) -> None:
    """Look once when an engagement is over; runs until it is cancelled."""
    while True:
        end, key = platform.schedule.end, LOOKED + platform.name
        due = bool(config.integrity.commands) and end is not None and clock.now() >= end
        if (
            due
            and await journal.get(key) != engagement(platform)
            and await compare(state, config, platform, journal, clock) is not None
        ):
            await journal.put(key, engagement(platform))
        await anyio.sleep(LOOK_S)
