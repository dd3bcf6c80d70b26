"""`fleet runs list|show|cancel`: what ran, what runs, and the end of one that should not go on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from fleet.cli.journal import known_journal
from fleet.cli.shell import DryRun, Json, make_app, note, put, run, state, table, who
from fleet.errors import UsageError
from fleet.events.trajectory import read
from fleet.store.journal import Journal
from fleet.text import clean

app = make_app(group=True)
Run = Annotated[str, typer.Argument(help="Id of a run, as `fleet runs list` shows it.")]


@app.callback()
def _group() -> None:
    """Runs: list, show, cancel."""


@app.command("list")
def list_runs(
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many, newest first.")] = 20,
    as_json: Json = False,
) -> None:
    """The latest runs, newest first."""
    rows = run(lambda: _list(limit))
    columns = ("run_id", "persona", "state", "outcome", "trigger", "created", "ended", "detail")
    put(
        rows,
        as_json=as_json,
        text=lambda: table(columns, ([row[c] for c in columns] for row in rows), empty="no runs yet"),
    )


@app.command()
def show(run_id: Run, as_json: Json = False) -> None:
    """One run: its row, findings, spending, what it made, and its events."""
    data = run(lambda: _show(run_id))
    put(data, as_json=as_json, text=lambda: _print(data))


@app.command()
def cancel(
    run_id: Run,
    reason: Annotated[str, typer.Option(help="Why; recorded with its outcome.")] = "",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """End a run: its exercise stops within a second, its clean-up still runs."""
    data = run(lambda: _cancel(run_id, reason, dry_run))
    words = "would be cancelled" if dry_run else "will be cancelled"
    put(data, as_json=as_json, text=lambda: print(f"run {data['run']} ({data['state']}) {words}"))


async def _list(limit: int) -> list[dict[str, Any]]:
    async with await _journal() as journal:
        return [asdict(row) for row in await journal.runs(limit)]


async def _show(run_id: str) -> dict[str, Any]:
    async with await _journal() as journal:
        row = await journal.run(run_id)
        return {
            "run": asdict(row),
            "findings": [asdict(finding) for finding in await journal.findings(run_id)],
            "spent": await journal.spent(run_id),
            "effects": [
                {"kind": effect.kind, "ref": effect.ref, "state": effect.state}
                for effect in await journal.effects(run_id)
            ],
            "events": [event.model_dump() for event in read(_trajectory(row.run_id))],
        }


async def _cancel(run_id: str, reason: str, dry_run: bool) -> dict[str, Any]:
    async with await _journal() as journal:
        row = await journal.run(run_id)
        if row.state in ("ended", "settling"):
            raise UsageError(f"run {run_id} is {row.state}: there is nothing to cancel")
        if not dry_run:
            await journal.ask_cancel(run_id, f"cancelled by {who()}" + (f": {reason}" if reason else ""))
        return {"run": row.run_id, "state": row.state, "asked": not dry_run}


async def _journal() -> Journal:
    journal = await known_journal(state())
    if journal is None:
        raise UsageError("no journal yet", remedy="fleet run PERSONA, or fleet up")
    return journal


def _trajectory(run_id: str) -> Any:
    return state() / "runs" / run_id / "trajectory.jsonl"


def _print(data: dict[str, Any]) -> None:
    row = data["run"]
    print(
        clean(
            f"{row['run_id']}  {row['persona']}  {row['state']}  {row['outcome']}  {row['detail']}".rstrip()
        )
    )
    print(clean(f"trigger {row['trigger']}  key {row['key']}"))
    print("spent " + (", ".join(f"{amount} {unit}" for unit, amount in data["spent"].items()) or "nothing"))
    columns = ("fingerprint", "state", "severity", "surface", "title")
    table(columns, ([one[c] for c in columns] for one in data["findings"]), empty="no findings")
    table(("kind", "ref", "state"), (list(one.values()) for one in data["effects"]), empty="no effects")
    note(f"{len(data['events'])} events: {_trajectory(row['run_id'])}")
