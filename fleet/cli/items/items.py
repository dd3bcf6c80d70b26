"""`fleet items`: its commands by heading; show, verify, adopt. See worklist.py and decide.py for the rest."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.app.item_view import ItemView, found, viewed
from fleet.app.journal import from_journal
from fleet.cli.completion import fingerprints
from fleet.cli.console import DryRun, Json, columns, make_app, note, put, put_rows, run, state
from fleet.cli.items import decide, item_view, kinds, worklist
from fleet.config.files import demo_dir
from fleet.errors import FleetError, Refused, Unreachable, UsageError
from fleet.findings.evidence import load
from fleet.findings.recurrence import key_of, read_recurrence
from fleet.runs.proof.grades import graded
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow, fields_of
from fleet.text import clean

Name = Annotated[
    str,
    typer.Argument(
        help="Fingerprint of an item or a finding: 12 hex digits, or its first digits.",
        autocompletion=fingerprints,
    ),
]
Reason = Annotated[str, typer.Option(help="Reason, recorded in DECISIONS.md.")]


def findings(as_json: Json = False) -> None:
    """List every finding of every run on this machine."""
    rows = run(_all)
    columns = ("fingerprint", "state", "severity", "surface", "confirmed", "run", "title")
    data = [fields_of(row) for row in rows]
    put_rows(data, columns, as_json=as_json, empty="no findings yet")


def candidates(as_json: Json = False) -> None:
    """List what runs observed and did not file: the grade of its verification, and why it is not filed."""
    rows = [(row, graded(row)) for row in run(_all)]
    grades = [(row, one) for row, one in rows if one.why]
    data = [fields_of(row) | {"grade": one.grade, "rate": one.rate, "why": one.why} for row, one in grades]
    columns = ("fingerprint", "grade", "rate", "run", "title", "why")
    put_rows(data, columns, as_json=as_json, empty="everything is filed")


def show(
    fingerprint: Name,
    script: Annotated[
        bool, typer.Option("--script", help="Print only the script for bash that shows the defect.")
    ] = False,
    untrusted: Annotated[
        bool, typer.Option("--untrusted", help="Show a stranger's repro, which was never run.")
    ] = False,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Show every field of every answer, not just the deciding ones.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show one item: what is wrong and where, expected and observed, why it matters, how to reproduce and
    fix it, its proof, life, ranking and links."""
    item = item_view.listed(state(), fingerprint)
    rows = run(_all)
    names = {item.fingerprint, *item.names} if item else set()
    mine = [row for row in rows if not names.isdisjoint(row.names)]
    mine = mine or ([] if item else [_one(rows, fingerprint)])
    if item:  # what was merged into it does not give it its name
        mine.sort(key=lambda row: item.fingerprint in row.names)
    bundle = _evidence(mine[-1]) if mine and (state() / "runs" / mine[-1].run_id).exists() else None
    if item:
        view = run(lambda: viewed(state(), item, untrusted=untrusted))
    else:
        view = found(state(), mine[-1], bundle)
    if mine:
        view = _with_finding(view, mine[-1], rows, bundle)
    if script:
        if untrusted or (item and not item.trusted):
            raise Refused(
                f"item {fingerprint} is a stranger's: a script is not made of what a stranger wrote",
                rule="untrusted",
                remedy=f"read it: fleet items show {fingerprint} --untrusted",
            )
        if not view.page.script:
            raise UsageError(f"{fingerprint} has no repro", remedy=f"fleet items show {fingerprint}")
        print(view.page.script, end="")
        return
    lines = partial(item_view.lines_of, view, now=datetime.now(UTC), width=columns(), whole=evidence)
    put(view.data(), as_json=as_json, text=lambda: print("\n".join(lines())))


def _with_finding(
    view: ItemView, row: FindingRow, rows: list[FindingRow], bundle: dict[str, Any] | None
) -> ItemView:
    """The view with the finding that is shown, its entry on the log, its figures and its evidence."""
    here = (state() / "runs" / row.run_id).exists()
    same = (one for one in reversed(rows) if one.fingerprint == row.fingerprint and one.index >= 0)
    key = key_of(str(row.data.get("platform", "")), row.fingerprint)
    figures = run(lambda: from_journal(state(), lambda journal: journal.get(key), None))
    return replace(
        view,
        row=row,
        posted=next(same, row),
        bundle=bundle,
        elsewhere="" if here else run(lambda: from_journal(state(), partial(_elsewhere, row), "")),
        figures=read_recurrence(figures),
    )


def verify(fingerprint: Name, as_json: Json = False) -> None:
    """Run an item again now: shown, clean after three answers, or not reached. Posts nothing.

    Exits 0 when it is clean, 1 when it shows, 4 when it was not reached. The look counts like any other.
    """
    from fleet.cli.items.verify import looked_at  # loads all that a run needs

    item, look = looked_at(fingerprint)
    data = {"fingerprint": item.fingerprint, "title": item.title} | asdict(look)
    said = f"{look.verdict}  {item.fingerprint}  {item.title}{f': {look.why}' if look.why else ''}"
    put(data, as_json=as_json, text=lambda: print(clean(said)))
    if code := {"shown": FleetError.exit_code, "unreached": Unreachable.exit_code}.get(look.verdict):
        raise typer.Exit(code)


def adopt(
    fingerprint: Name,
    into: Annotated[
        Path | None, typer.Option(help="Persona file; default: of the persona that claimed it.")
    ] = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Turn a driver's claim into a probe of its persona; the next run proves it and posts it as worded.

    Only the persona file changes. Read its expectation first: a driver wrote it.
    """
    from fleet.app.persona_sets import one  # these load the tools, and the proof of a claim
    from fleet.cli.items import claims

    claim = claims.claim_of(_one(run(_all), fingerprint, waiting=True))
    path = into or one(claim.row.persona).path
    toml = claims.block(claim.probe)
    if not dry_run:
        claims.adopt(claim, path, state(), reason)
        known = claim.row.data | {"adopted": str(path.absolute())}  # a later dismissal warns that it is there

        async def remember(journal: Journal) -> None:
            await journal.set_finding(claim.row.run_id, claim.row.fingerprint, data=known)

        run(lambda: from_journal(state(), remember, None))
        note(f"wrote probe {claim.probe.id} into {path}; `fleet run {path.stem}` proves it")
    data = {"fingerprint": claim.row.fingerprint, "file": str(path), "written": not dry_run, "toml": toml}
    put(data, as_json=as_json, text=lambda: print("\n".join(clean(line, 2000) for line in toml.splitlines())))


app = make_app(
    group=True, default="list", lazy={"log": ("items.log", "Read, verify or copy the feedback log.", "Look")}
)
app.command("list", rich_help_panel="Look")(worklist.list_items)
PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Look": (show, worklist.digest, findings, candidates, kinds.kinds, decide.decisions),
    "Decide": decide.COMMANDS,
    "Prove and publish": (verify, adopt, decide.publish, worklist.rebuild),
}
for panel, commands in PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)


@app.callback()
def _group() -> None:
    """List what to fix first, which is also what `fleet items` alone does; show an item; decide about it."""


def _one(rows: list[FindingRow], fingerprint: str, *, waiting: bool = False) -> FindingRow:
    """The latest finding with this fingerprint, preferring one that awaits a decision."""
    matches = [row for row in rows if fingerprint and row.fingerprint.startswith(fingerprint.lower())]
    if not matches:
        what = f"no item or finding {clean(fingerprint, 40)!r} on this machine"
        remedy = "fleet items --state all, or fleet items findings"
        demo = "; an item of the demo: fleet --demo items show" * demo_dir(state()).is_dir()
        raise UsageError(what, remedy=remedy + demo)
    open_ = [row for row in matches if waiting and row.state == "unverified"]
    return (open_ or matches)[-1]


async def _all() -> list[FindingRow]:
    return await from_journal(state(), lambda journal: journal.findings(), [])


async def _elsewhere(row: FindingRow, journal: Journal) -> str:
    """The daemon whose host holds the evidence of a run without a folder here; "" for a local run."""
    daemon = (await journal.run(row.run_id)).daemon if row.evidence else ""
    return "" if daemon.rpartition("-")[0] == socket.gethostname() else daemon


def _evidence(row: FindingRow) -> dict[str, Any] | None:
    if not row.evidence:
        return None
    try:
        return load(state() / "runs" / row.run_id / "evidence", row.evidence)
    except UsageError as error:
        raise FleetError(str(error), remedy=error.remedy) from None
