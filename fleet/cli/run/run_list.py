"""The table of runs: what each found, how much it looked at and what it cost."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fleet.app.journal import known_journal
from fleet.cli.console import fields_of, note, table
from fleet.runs.desk.coverage import coverage
from fleet.runs.desk.exit_codes import FOUND
from fleet.store.rows import RunRow
from fleet.store.tables.units import USD, number
from fleet.text import clean

PIPED = ("run", "persona", "state", "outcome", "trigger", "created", "ended", "detail")
NARROW = 13
"""Characters of a persona's name on a terminal."""


async def read(folder: Path, limit: int) -> list[dict[str, Any]]:
    """The latest runs, newest first: the row, `findings`, `unproven`, `looked`, `applicable`, `spent`,
    `routine`.

    `findings` counts the proven ones, `unproven` those that are flaky, or not proven yet.

    The two counts of probes are None for a run without a plan here: it only read the log, ran on another
    host, or was pruned.
    """
    if (known := await known_journal(folder)) is None:
        return []
    async with known as journal:
        found = []
        for row in await journal.runs(limit):
            states = [one.state for one in await journal.findings(row.run_id)]
            seen = sum(one in FOUND for one in states)
            unproven = sum(one not in FOUND and one != "dropped" for one in states)
            looked, applicable = _coverage(folder, row)
            figures = {"findings": seen, "unproven": unproven, "looked": looked, "applicable": applicable}
            spent = await journal.spent(row.run_id)
            routine = row.state == "ended" and row.outcome == "done" and not (seen or unproven)
            found.append({**fields_of(row), **figures, "spent": spent, "routine": routine})
        return found


def _coverage(folder: Path, row: RunRow) -> tuple[int | None, int | None]:
    groups = coverage(folder / "runs" / row.run_id, row.run_id, row.outcome)
    others = ("not_applicable", "unexplored", "left")
    applicable = sum(len(rows) for group, rows in groups.items() if group not in others)
    return (len(groups["looked"]), applicable) if any(groups.values()) else (None, None)


def show(rows: Sequence[dict[str, Any]], *, everything: bool) -> None:
    """A row of one line each on a terminal; in a pipe all columns, with the times and reasons whole."""
    shown = [row for row in rows if everything or not row["routine"]]
    if sys.stdout.isatty():
        heads = ("run", "persona", "created", "found", "looked", "calls", "usd", "outcome")
        table(heads, [_short(row) for row in shown], empty=_empty(rows), one_line="outcome")
    else:
        cells = [[*(row[name] for name in (*PIPED, "findings", "unproven")), *_cost(row)] for row in shown]
        table((*PIPED, "findings", "unproven", "looked", "calls", "usd"), cells, empty=_empty(rows))
    if len(shown) < len(rows):
        note(f"{len(rows) - len(shown)} routine runs are not shown: --all")


def show_left_out(coverage: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """A line for each probe, or other part of a platform, that a run did not look at, and why."""
    for word in ("undecided", "not_applicable", "refused", "could_not", "unexplored"):
        for row in coverage.get(word, ()):
            print(clean(f"  {word.replace('_', ' ')}  {row['probe']}: {row['reason']}", 300))
    for row in coverage.get("left", ()):
        print(clean(f"  left  {row['part']}: {row['reason']}", 500))


def _empty(rows: Sequence[dict[str, Any]]) -> str:
    return "nothing found, nothing wrong" if rows else "no runs yet"


def _short(row: dict[str, Any]) -> list[object]:
    at = row["created"][5:16].replace("T", " ")
    outcome = row["outcome"] or row["state"]
    detail = f": {row['detail']}" if row["detail"] else ""
    found = f"{row['findings']}+{row['unproven']}" if row["unproven"] else row["findings"]
    return [row["run"], clean(row["persona"], NARROW), at, found, *_cost(row), f"{outcome}{detail}"]


def _cost(row: dict[str, Any]) -> list[object]:
    """Coverage, calls and money."""
    looked = "-" if row["looked"] is None else f"{row['looked']}/{row['applicable']}"
    usd = row["spent"].get(USD)
    return [looked, row["spent"].get("calls", 0), number(USD, usd) if usd else "-"]
