"""`fleet findings show`: one finding, what was done, what was seen."""

from __future__ import annotations

import socket
from dataclasses import asdict
from typing import Annotated, Any

import typer

from fleet.cli.journal import known_journal
from fleet.cli.shell import Json, make_app, put, run, state, table
from fleet.errors import FleetError, UsageError
from fleet.findings.evidence import load
from fleet.store.rows import FindingRow
from fleet.text import clean

app = make_app(group=True)


@app.callback()
def _group() -> None:
    """Findings and their evidence."""


@app.command("list")
def list_findings(as_json: Json = False) -> None:
    """Every finding of every run on this machine."""
    rows = run(_all)
    columns = ("fingerprint", "state", "severity", "surface", "confirmed", "run_id", "title")
    data = [asdict(row) for row in rows]
    put(data, as_json=as_json, text=lambda: table(columns, ([row[c] for c in columns] for row in data)))


@app.command()
def show(
    fingerprint: Annotated[str, typer.Argument(help="12 hex digits, or the start of them.")],
    as_json: Json = False,
) -> None:
    """One finding and its evidence, checked against its hash."""
    matches = [row for row in run(_all) if fingerprint and row.fingerprint.startswith(fingerprint.lower())]
    if not matches:
        raise UsageError(f"no finding {fingerprint!r} here", remedy="fleet findings list")
    row = matches[-1]
    here = (state() / "runs" / row.run_id).exists()
    elsewhere = "" if here else run(lambda: _elsewhere(row))
    data = asdict(row) | {"evidence_bundle": _evidence(row) if here else None, "evidence_on": elsewhere}
    put(data, as_json=as_json, text=lambda: _print(row, data["evidence_bundle"], elsewhere))


async def _all() -> list[FindingRow]:
    journal = await known_journal(state())
    if journal is None:
        return []
    async with journal:
        return await journal.findings()


async def _elsewhere(row: FindingRow) -> str:
    """The daemon whose host has the evidence of a run that has no folder here, "" when it was one of ours."""
    if not row.evidence:
        return ""
    journal = await known_journal(state())
    if journal is None:
        return ""
    async with journal:
        daemon = (await journal.run(row.run_id)).daemon
    return "" if daemon.rpartition("-")[0] == socket.gethostname() else daemon


def _evidence(row: FindingRow) -> dict[str, Any] | None:
    if not row.evidence:
        return None
    try:
        return load(state() / "runs" / row.run_id / "evidence", row.evidence)
    except UsageError as error:
        raise FleetError(str(error), remedy=error.remedy) from None


def _print(row: FindingRow, bundle: dict[str, Any] | None, elsewhere: str) -> None:
    where = f"log entry {row.index}, transaction {row.tx}" if row.index >= 0 else "not on the log"
    print(f"{row.severity}  {row.surface}  {clean(row.title)}")
    print(f"{row.fingerprint}  {row.state} {row.confirmed}/{row.tries}  by {row.persona} in run {row.run_id}")
    print(f"{where}\nrepro: {row.repro}")
    if elsewhere:
        print(f"evidence sha256:{row.evidence} is on the host of the daemon {elsewhere}")
    elif row.evidence and bundle is None:
        print(f"evidence sha256:{row.evidence} went with the folder of its run (keep.days, keep.megabytes)")
    if bundle is None:
        return
    print(f"expected: {clean(bundle['expectation'])}\nevidence sha256:{row.evidence}")
    for step in bundle["steps"]:
        print(f"  {step['tool']} {clean(str(step['args']), limit=500)}")
        print(f"    -> {clean(str(step['result']), limit=1500)}")
