"""What earlier runs of a persona saw and did not prove: proven first, before anything new is asked.

An explorer knows its question as asked, so nothing else would bring such a candidate back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fleet.findings.proof import TRIES
from fleet.gate.budget import Budget
from fleet.runs.proof.candidates import NEW
from fleet.runs.proof.claims import kept
from fleet.runs.proof.grades import raised
from fleet.runs.proof.probe_runner import ProbeRunner
from fleet.runs.proof.rerun import cost, withheld
from fleet.severity import SEVERITIES, weight
from fleet.store.rows import FindingRow

MOST = 12
"""Candidates of earlier runs that a run proves at most."""
SHARE = 0.25
"""The share of calls, writes and time that their proofs may take; the gravest always has its turn."""


async def adopt(runner: ProbeRunner, budget: Budget) -> int:
    """Raise them again in this run, in the journal; how many."""
    world, run, own = runner.world, runner.run, runner.persona
    rows = await world.journal.unsettled(own.persona.name, TRIES)
    adopted = 0
    for row in chosen([one for one in rows if _may(runner, one)], budget):
        data = {**row.data, "persona_sha256": own.sha256, "left_by": row.run_id}
        data.pop("why", None)
        again = replace(row, run_id=run, state="raised", times=1, confirmed=0, tries=0, at="", data=data)
        await world.journal.add_finding(replace(again, evidence="", envelope="", tx="", index=-1))
        runner.stream.emit(raised(row))
        adopted += 1
    return adopted


def chosen(rows: Iterable[FindingRow], budget: Budget) -> list[FindingRow]:
    """The gravest first, then those that waited longest, as far as the share of the budget goes. Pure."""
    calls, writes = budget.calls * SHARE, budget.writes * SHARE
    found: list[FindingRow] = []
    for row in sorted(rows, key=lambda one: (-weight(one.severity), one.at, one.fingerprint))[:MOST]:
        probe = kept(row)
        asked, acted = cost(probe) if probe else (0, 0)
        if found and (asked > calls or acted > writes):
            continue
        found.append(row)
        calls, writes = calls - asked, writes - acted
    return found


def _may(runner: ProbeRunner, row: FindingRow) -> bool:
    """Whether this persona can ask for it now; a probe of its file, which every run asks, only unchanged."""
    probe = kept(row)
    here = runner.world.platform.name
    if probe is None or row.data.get("platform") != here or row.severity not in SEVERITIES:
        return False
    same = row.data.get("persona_sha256") == runner.persona.sha256
    return (same or probe.id.startswith(NEW)) and not withheld(runner, probe)
