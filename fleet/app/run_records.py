"""Runs as data for the commands and the pages: the latest ones, one with all its records, its requests."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fleet.app.journal import known_journal
from fleet.broker.egress_read import OUT_OF_SCOPE, by_host, read_egress, refused
from fleet.errors import UsageError
from fleet.events.model import Footer, GateDenied, TurnEnded
from fleet.events.recorded import Recording, UnknownRecord
from fleet.runs.call.sealed import TRAJECTORY
from fleet.runs.desk.coverage import NOT_PROBES, coverage
from fleet.runs.desk.exit_codes import FOUND
from fleet.store.journal import Journal
from fleet.store.rows import fields_of


async def latest(folder: Path, limit: int) -> list[dict[str, Any]]:
    """The latest runs, newest first: the row, `findings`, `unproven`, `looked`, `applicable`, `spent`,
    `routine`.

    `findings` counts the proven ones, `unproven` those that are flaky, or not proven yet.

    The two counts of probes are None for a run without a plan here: it only read the log, ran on another
    host, or was pruned.
    """
    if (known := await known_journal(folder)) is None:
        return []
    async with known as journal:
        found, rows = [], await journal.runs(limit)
        names = [row.run_id for row in rows]
        by_run, spent = await journal.states_of(names), await journal.spent_by(names)
        for row in rows:
            states = by_run[row.run_id]
            seen = sum(count for state, count in states.items() if state in FOUND)
            unproven = states.total() - seen - states["dropped"]
            groups = coverage(folder / "runs" / row.run_id, row.run_id, row.outcome)
            others = ("not_applicable", *NOT_PROBES)
            applicable = sum(len(rows) for group, rows in groups.items() if group not in others)
            known_plan = any(groups.values())
            figures = {
                "findings": seen,
                "unproven": unproven,
                "looked": len(groups["looked"]) if known_plan else None,
                "applicable": applicable if known_plan else None,
            }
            routine = row.state == "ended" and row.outcome == "done" and not (seen or unproven)
            found.append({**fields_of(row), **figures, "spent": spent[row.run_id], "routine": routine})
        return found


async def recorded(folder: Path, journal: Journal, run_id: str) -> dict[str, Any]:
    """One run: its row, findings, spending, effects, coverage, egress by host, and events; UsageError for an
    unknown one."""
    row = await journal.run(run_id)
    recording = Recording(folder / "runs" / row.run_id / TRAJECTORY)
    events = list(recording)
    return {
        "run": fields_of(row),
        "findings": [fields_of(finding) for finding in await journal.findings(run_id)],
        "spent": await journal.spent(run_id),
        "coverage": coverage(folder / "runs" / row.run_id, row.run_id, row.outcome),
        "egress": {host: of.model_dump() for host, of in by_host(folder / "runs" / row.run_id).items()},
        "effects": [
            {"kind": effect.kind, "ref": effect.ref, "state": effect.state}
            for effect in await journal.effects(run_id)
        ],
        "events": [asdict(one) if isinstance(one, UnknownRecord) else one.model_dump() for one in events],
        "turns": sum(isinstance(one, TurnEnded) for one in events),
        "refusals": dict(Counter(one.rule for one in events if isinstance(one, GateDenied))),
        "usage": next(
            (one.usage.model_dump() for one in events if isinstance(one, Footer) and one.usage), None
        ),
        "unknown": recording.unknown,
        "too_long": recording.too_long,
        "torn": recording.torn,
        "closed": any(isinstance(one, Footer) for one in events),
    }


def asked_by(state: Path, run: str, *, only_refused: bool) -> dict[str, Any]:
    """The requests of a run's jails as the broker recorded them, or with "" those of the service itself, and
    sums; UsageError without a folder."""
    folder = state / "runs" / run if run else state
    if not folder.is_dir():
        raise UsageError(
            f"no records of run {run} here: it ran on another host, or was pruned", remedy="fleet runs list"
        )
    rows = list(read_egress(folder))
    rules = Counter(row["rule"] for row in rows if refused(row["rule"]))
    return {
        "run": run,
        "requests": len(rows),
        "refused": dict(rules),
        **({"out_of_scope": sum(rules[rule] for rule in OUT_OF_SCOPE)} if run else {}),
        "hosts": {host: sums.model_dump() for host, sums in by_host(folder).items()},
        "rows": [row for row in rows if not only_refused or refused(row["rule"])],
    }
