"""What the morning page takes from the journal."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from fleet.cli.console import fields_of
from fleet.cli.outages import open_outages
from fleet.findings.outage import FACTS, read_book
from fleet.gate.budget import Unit, left_today
from fleet.runs.desk.exit_codes import LEFT, MODEL_ENDED, UNDECIDED, UNEXPLORED
from fleet.service.crew import CrewMember
from fleet.service.health_platform import platform_reach
from fleet.store.journal import Journal
from fleet.store.rows import MISSING, RunRow
from fleet.store.tables.units import FLEET
from fleet.triage.items.unproven import proving

WELL = frozenset(
    {
        "done",
        "cancelled",
        "stopped",
        "awaiting_human",
        "refused",
        "iteration_budget",
        "budget_exhausted",
        "budget_exceeded",
        "max_continuations",
    }
)
"""Outcomes after which nothing is broken: the work was done, a person ended it, or a limit did."""
COSTS: tuple[Unit, ...] = ("calls", "writes", "usd_micro")
NO_COST = {unit: {"spent": 0, "limit": None} for unit in COSTS}
EMPTY: Mapping[str, Any] = {
    "waiting": {},
    "left_today": {},
    "today": {FLEET: NO_COST},
    "runs": [],
    "outcomes": {},
    "skips": [],
    "findings": {},
    "outages": [],
    "missing": [],
    "undecided": [],
    "unexplored": [],
    "left": [],
    "proving": [],
    "models": [],
    "failing": [],
}
"""The same fields without a journal."""


async def read(
    journal: Journal,
    platform: str,
    since: str,
    days: Mapping[str, Mapping[Unit, int]],
    crew: Collection[CrewMember],
) -> dict[str, Any]:
    """The fields of EMPTY, and `reachable`."""
    findings: dict[str, int] = {}
    rows = await journal.findings()
    for finding in rows:
        findings[finding.state] = findings.get(finding.state, 0) + 1
    last = await journal.last_ended(platform)
    names, readers = {one.name for one in crew}, {one.name for one in crew if not one.looks}
    book = read_book(await journal.get(FACTS + platform))
    return {
        "reachable": asdict(platform_reach(book, [row for row in last if row.persona not in readers])),
        "waiting": await journal.waiting(platform),
        "left_today": await left_today(journal, days),
        "today": _costs(await journal.spent_today(), days),
        "runs": [fields_of(row) for row in await journal.runs(limit=10)],
        "outcomes": await journal.outcomes(since),
        "skips": [asdict(row) for row in await journal.skips(limit=5)],
        "findings": findings,
        "outages": await open_outages(journal),
        "missing": await missing_entries(journal),
        "undecided": [one for one in await undecided_probes(journal) if one["persona"] in names],
        "unexplored": [one for one in await _last_runs(journal, UNEXPLORED) if one["persona"] in names],
        "left": [one for one in await _last_runs(journal, LEFT) if one["persona"] in names],
        "proving": [asdict(one) for one in proving(rows, (), datetime.now(UTC))],
        "models": [one for one in await _last_runs(journal, MODEL_ENDED) if one["persona"] in names],
        "failing": [
            _failed(row)
            for row in last
            if row.outcome not in WELL and (row.persona in names or row.ended >= since)
        ],
    }


async def missing_entries(journal: Journal) -> list[dict[str, Any]]:
    """Posted entries that the chain has dropped and that are not back, by platform."""
    facts = await journal.facts(MISSING)
    return [
        {"platform": key.removeprefix(MISSING), **json.loads(text)} for key, text in facts.items() if text
    ]


async def undecided_probes(journal: Journal) -> list[dict[str, str]]:
    """Probes whose expectation could not be decided in their persona's last run, by platform and persona."""
    return await _last_runs(journal, UNDECIDED)


async def _last_runs(journal: Journal, prefix: str) -> list[dict[str, str]]:
    """What the last run of each persona kept under a prefix, by platform and persona."""
    found = []
    for key, value in (await journal.facts(prefix)).items():
        platform, _, persona = key.removeprefix(prefix).rpartition(":")
        found += [{"platform": platform, "persona": persona, **row} for row in json.loads(value)]
    return found


def _failed(row: RunRow) -> dict[str, str]:
    return {
        "persona": row.persona,
        "run": row.run_id,
        "outcome": row.outcome,
        "ended": row.ended,
        "detail": row.detail,
    }


def _costs(
    spent: Mapping[str, Mapping[str, int]], days: Mapping[str, Mapping[Unit, int]]
) -> dict[str, dict[str, dict[str, int | None]]]:
    """By owner ("" is the fleet) and unit: what was spent today, and the day's limit if there is one."""
    return {
        owner: {
            unit: {"spent": spent.get(owner, {}).get(unit, 0), "limit": days.get(owner, {}).get(unit)}
            for unit in COSTS
        }
        for owner in sorted(spent.keys() | days.keys())
    }
