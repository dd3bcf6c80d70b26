"""Runs the open items of a persona again: seen again, clean, or not reached, which is never "fixed"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from fleet.clock import iso
from fleet.findings.outage import WORD
from fleet.findings.recurrence import LOOKS, Recurrence, key_of, read_recurrence
from fleet.personas.model import Probe
from fleet.runs.proof.attempt import attempt
from fleet.runs.proof.candidates import shows
from fleet.runs.proof.claims import kept
from fleet.runs.proof.probe_runner import PROVEN, Exercise
from fleet.store.rows import FindingRow

MOST = 12
"""Items run again by one run at most; the longest unlooked-at come first."""
SPARE = 8
"""Calls left to the run beyond the re-runs."""

RetestVerdict = Literal["shown", "clean", "unreached"]


async def retest(exercise: Exercise) -> Mapping[str, RetestVerdict]:
    """Record what this run saw again, and run again what it did not see; the verdict by fingerprint."""
    journal, clock = exercise.world.journal, exercise.world.clock
    rows = await journal.findings(exercise.run)
    verdicts: dict[str, RetestVerdict] = {row.fingerprint: "shown" for row in rows if row.state in PROVEN}
    known = await journal.facts(key_of(exercise.world.platform.name))
    met = {row.fingerprint for row in rows}
    waiting = []
    for row in _open(await journal.findings(states=["posted", "repeated"]), exercise):
        figures = read_recurrence(known.get(key_of(exercise.world.platform.name, row.fingerprint)))
        if row.fingerprint not in met and not figures.clean_at:
            waiting.append((figures.looked, row))
    for _, row in sorted(waiting, key=lambda one: (one[0], one[1].fingerprint))[:MOST]:
        probe = kept(row)
        if probe is None or await exercise.session.calls_left() < len(probe.steps) * LOOKS + SPARE:
            continue
        verdicts[row.fingerprint] = await _looked_at(exercise, row, probe)
    for fingerprint, verdict in verdicts.items():
        name, at = key_of(exercise.world.platform.name, fingerprint), iso(clock.now())
        after = _after(read_recurrence(known.get(name)), verdict, at, exercise.run)
        await journal.put(name, after.model_dump_json(), run=exercise.run)
    return verdicts


def _open(rows: Iterable[FindingRow], exercise: Exercise) -> list[FindingRow]:
    """The latest entry of each item that this persona has on this platform's log; outages end otherwise."""
    own = (exercise.persona.persona.name, exercise.world.platform.name)
    last = {
        row.fingerprint: row
        for row in rows
        if (row.persona, row.data.get("platform") or own[1]) == own and row.probe != WORD
    }
    return list(last.values())


async def _looked_at(exercise: Exercise, row: FindingRow, probe: Probe) -> RetestVerdict:
    for _ in range(LOOKS):
        seen = await attempt(exercise.session, probe, proof=True)
        if shows(row, probe, seen, exercise.facts):
            return "shown"
        if seen.state in ("inconclusive", "not_applicable"):
            return "unreached"
    return "clean"


def _after(before: Recurrence, verdict: RetestVerdict, at: str, run: str) -> Recurrence:
    if verdict == "shown":
        return before.shown(at, run)
    return before.clean(at, run) if verdict == "clean" else before.unreached(at)
