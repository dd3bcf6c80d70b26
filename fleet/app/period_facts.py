"""What the report of a period is made from: journal and worklist; nothing is asked of the platform."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyio import to_thread

from fleet import __version__
from fleet.app.journal import known_journal
from fleet.app.persona_sets import roster
from fleet.app.scope_audit import audit_scope
from fleet.clock import Clock, iso
from fleet.config import load_platform
from fleet.config.parts import not_configured
from fleet.errors import FleetError
from fleet.gate.dial import DIAL, read_dial
from fleet.runs.call.calibration import calibration, read_scored
from fleet.runs.call.halt import DIALS, HALTS
from fleet.runs.desk.exit_codes import LEFT, UNDECIDED, UNEXPLORED
from fleet.runs.outage.book import book_of
from fleet.runs.settlement.left import left_there
from fleet.store.journal import Journal
from fleet.store.rows import RunRow
from fleet.text import clean
from fleet.triage.outputs.document import WorklistDocument
from fleet.triage.outputs.files import written
from fleet.triage.outputs.period import FEWEST_CYCLES, PeriodFacts

MOST_LATEST = 1_000
"""Runs that coverage looks at."""
MOST_RUNS = 100_000
"""Of a period."""


async def period_facts(
    state: Path, platform: str, since: str, clock: Clock, cycles: int = FEWEST_CYCLES
) -> PeriodFacts:
    """What is known of a platform since a moment (ISO); without a journal only what the worklist says."""
    listed = written(state) or WorklistDocument()
    known: dict[str, Any] = {
        "platform": platform,
        "version": __version__,
        "since": since,
        "cycles": cycles,
        "until": iso(clock.now()),
        "items": (*listed.items, *listed.closed),
        "audit": {"drawn": listed.audit.drawn, "overturned": listed.audit.overturned},
        "tools": {name: one.persona.tools for name, one in roster()[0].items()},
    }
    untested, hosts, agreed = _of_profile(platform, state)
    if (opened := await known_journal(state)) is not None:
        async with opened as journal:
            known |= await _of_journal(journal, platform, since)
            folders = [state / "runs" / row.run_id for row in known["runs"]]
            known["decided"] = calibration((await to_thread.run_sync(read_scored, folders))[1])
            known["scope_audit"] = await _audited(state, journal, platform, known["runs"])
            untested += await _not_tested(journal, platform)
    return PeriodFacts(
        **known, untested=untested, scope=hosts, agreed=agreed, rung=read_dial(state / DIAL).rung
    )


async def _of_journal(journal: Journal, platform: str, since: str) -> dict[str, Any]:
    runs = [
        row
        for row in await journal.runs(MOST_RUNS)
        if row.platform == platform and (row.ended or row.created) >= since
    ]
    spent = Counter[str]()
    for row in runs:
        spent.update(await journal.spent(row.run_id))
    ours, findings = {row.run_id for row in runs}, await journal.findings()
    book = await book_of(journal, platform)
    outages = [
        {"since": one.since, "until": getattr(one, "until", ""), "targets": ", ".join(one.targets)}
        for one in (*book.ended, *([book.open] if book.open else ()))
        if getattr(one, "until", since) >= since
    ]
    return {
        "runs": runs,
        "findings": [row for row in findings if row.run_id in ours],
        "proofs": {
            name: row for row in sorted(findings, key=lambda row: row.at) if row.tries for name in row.names
        },
        "decisions": await journal.decisions(platform),
        "outages": outages,
        "interventions": await _interventions(journal, since),
        "spent": dict(spent),
        "left_behind": len(
            left_there([e for e in await journal.effects(None, ["page"]) if e.run_id in ours])
        ),
    }


async def _audited(state: Path, journal: Journal, platform: str, runs: Sequence[RunRow]) -> dict[str, Any]:
    """What left in these runs, against the profile; empty without one."""
    try:
        profile = load_platform(platform, state)[0]
        return await audit_scope(state, journal, profile, [row.run_id for row in runs])
    except FleetError:
        return {}


async def coverage_facts(
    state: Path, platform: str, since: str, document: WorklistDocument, tools: Mapping[str, Collection[str]]
) -> PeriodFacts:
    """Of `period_facts` what the coverage by kind is made from; quicker."""
    untested, runs = _of_profile(platform, state)[0], list[RunRow]()
    if (opened := await known_journal(state)) is not None:
        async with opened as journal:
            runs = [row for row in await journal.runs(MOST_LATEST) if row.platform == platform]
            untested += await _not_tested(journal, platform)
    return PeriodFacts(
        platform=platform,
        version=__version__,
        since=since,
        until="",
        items=(*document.items, *document.closed),
        tools=tools,
        runs=[row for row in runs if (row.ended or row.created) >= since],
        untested=untested,
    )


async def _interventions(journal: Journal, since: str) -> list[dict[str, str]]:
    """Stops, resumes and moves of the dial, oldest first."""
    rows = [json.loads(text) for key in (HALTS, DIALS) for text in (await journal.facts(key)).values()]
    found = [
        {"at": row["when"], "act": row["act"], "who": clean(row["who"], 120), "why": clean(row["why"], 300)}
        for row in rows
        if row["when"] >= since
    ]
    return sorted(found, key=lambda one: one["at"])


async def _not_tested(journal: Journal, platform: str) -> list[dict[str, str]]:
    """What the last run of each persona could not decide or explore, and what a limit left."""
    found = []
    for prefix in (UNDECIDED, UNEXPLORED, LEFT):
        for key, text in (await journal.facts(f"{prefix}{platform}:")).items():
            persona = key.rpartition(":")[2]
            for row in json.loads(text):
                part = row.get("probe") or row.get("part") or ""
                found.append(
                    {
                        "persona": persona,
                        "part": clean(f"{persona} {part}", 160),
                        "reason": clean(str(row["reason"]), 300),
                    }
                )
    return found


def _of_profile(platform: str, state: Path) -> tuple[list[dict[str, str]], list[str], tuple[str, str]]:
    """The parts that are not configured, with what each costs, the hosts in scope, and begin and end."""
    try:
        profile = load_platform(platform, state)[0]
    except FleetError as error:
        return [{"persona": "", "part": "profile", "reason": clean(str(error), 300)}], [], ("", "")
    missing = [{"persona": "", "part": name, "reason": why} for name, why in not_configured(profile).items()]
    web = profile.web
    hosts = filter(None, (web.site, web.face, web.proxy, *web.hosts, profile.chain.rpc))
    ends = (profile.schedule.begin, profile.schedule.end)
    begin, end = (iso(one) if one else "" for one in ends)
    return missing, [clean(one, 200) for one in hosts], (begin, end)
