"""`fleet propose`: a fix of an item as a draft (propose.py); list, show, withdraw or answer for drafts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer
from anyio import to_thread

from fleet.app.journal import from_journal
from fleet.cli.console import DryRun, Json, make_app, put, run, state, table, who
from fleet.config import load_fleet
from fleet.errors import UsageError
from fleet.store.rows import OPEN_PROPOSALS, ProposalRow
from fleet.text import clean

Ident = Annotated[str, typer.Argument(metavar="ID", help="Proposal, or item, or the beginning of one.")]
Profile = Annotated[str | None, typer.Option(help="Profile; default: the configured one.")]
_COLUMNS = ("proposal", "item", "state", "repository", "where", "why", "updated")

FAILURES = 8
"""Neighbours that failed, and last lines of an output, that are shown."""

app = make_app(
    group=True,
    default="draft",
    default_takes=True,
    lazy={"draft": ("propose", "Propose a fix of one item as a draft pull request; a person merges it.")},
)


@app.callback()
def _group() -> None:
    """Propose a fix of an item: fleet propose ITEM; list, show, withdraw or answer for proposals."""


@app.command("list")
def list_proposals(
    every: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    platform: Profile = None,
    as_json: Json = False,
) -> None:
    """List open proposals, the oldest first."""
    name, states = platform or load_fleet().platform, () if every else OPEN_PROPOSALS
    none: list[ProposalRow] = []
    rows = run(lambda: from_journal(state(), lambda journal: journal.proposals(name, states=states), none))
    cells = (
        (one.proposal_id, one.item, one.state, one.repository, one.ref or one.branch, one.why, one.updated)
        for one in rows
    )
    put(
        [asdict(one) for one in rows],
        as_json=as_json,
        text=lambda: table(_COLUMNS, cells, empty="no open proposals"),
    )


@app.command("show")
def show_proposal(ident: Ident, platform: Profile = None, as_json: Json = False) -> None:
    """Show one proposal: where it is, what its gate saw, the neighbour that failed, its patch and text."""
    from fleet.app import proposals  # all that a fix needs
    from fleet.app.reading import reading_world

    async def read() -> tuple[ProposalRow, dict[str, Any]]:
        async with reading_world(state(), platform, ask=False) as world:
            row = await proposals.one_of(world, ident)
            return row, await to_thread.run_sync(proposals.evidence, world, row.proposal_id)

    row, kept = run(read)
    put(asdict(row) | kept, as_json=as_json, text=lambda: _show(row, kept))


@app.command("withdraw")
def withdraw_proposal(
    ident: Ident,
    reason: Annotated[str, typer.Option(help="Why; it is written into the closed draft.")],
    platform: Profile = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Close the draft and delete its branch. A merged one stays as it is."""
    if not reason.strip():
        raise UsageError("a withdrawal needs a reason", remedy='--reason "…"')
    from fleet.app import proposals  # all that a fix needs
    from fleet.app.reading import reading_world

    async def withdraw() -> ProposalRow:
        async with reading_world(state(), platform, ask=False) as world:
            row = await proposals.one_of(world, ident)
            if row.state not in OPEN_PROPOSALS:
                raise UsageError(
                    f"proposal {row.proposal_id} is {row.state}", remedy="fleet propose list --all"
                )
            why = f"{reason} ({who()})"
            return row if dry_run else await proposals.upkeep_of(world).withdraw(row, why)

    row = run(withdraw)
    verb = "would be withdrawn" if dry_run else "is withdrawn"
    put(asdict(row), as_json=as_json, text=lambda: print(f"proposal {row.proposal_id} {verb}"))


@app.command("answer")
def answer_comment(
    ident: Ident,
    comment: Annotated[int, typer.Option(min=1, help="Number of the comment, as its address ends.")],
    platform: Profile = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Answer a comment on an open draft with what the gate saw, once. Nothing else answers comments."""
    from fleet.app import proposals  # all that a fix needs
    from fleet.app.reading import reading_world

    async def answer() -> tuple[ProposalRow, str]:
        async with reading_world(state(), platform, ask=False) as world:
            row = await proposals.one_of(world, ident)
            if row.state != "open":
                raise UsageError(f"proposal {row.proposal_id} is {row.state}", remedy="fleet propose list")
            return row, "" if dry_run else await proposals.upkeep_of(world).answer(row, comment)

    row, where = run(answer)
    verb = "would be answered" if dry_run else f"is answered: {where}"
    data = {"proposal": row.proposal_id, "comment": comment, "answer": where}
    put(
        data, as_json=as_json, text=lambda: print(f"comment {comment} on {clean(row.ref)} {clean(verb, 300)}")
    )


def _show(row: ProposalRow, kept: dict[str, Any]) -> None:
    said: dict[str, Any] = {key: value for key, value in asdict(row).items() if value and key != "data"}
    for key, value in said.items():
        print(f"{key:<12} {clean(str(value), 300)}")
    for one in kept["gate"] or row.data.get("steps", ()):
        verdict = "passed" if one["passed"] else "failed"
        seen = ": ".join(filter(None, (str(one["step"]), verdict, str(one.get("words", "")))))
        print(f"{'step':<12} {clean(seen, 600)}")
        if not one["passed"]:
            _show_failure(one.get("evidence") or {})
    if patch := kept["patch"]:
        print()
        print(clean(patch, 70_000, newlines=True))
    if text := row.data.get("body"):
        print()
        print(clean(str(text), 70_000, newlines=True))


def _show_failure(evidence: dict[str, Any]) -> None:
    """Of a step that failed: the neighbours and controls that it failed at, and the end of its output."""
    rows = [one for one in evidence.get("neighbours", ()) if one["patched"] != "clean"]
    for one in rows[:FAILURES]:
        said = f"{one['calls']}: {one['base']} on the base, {one['patched']} with the patch: {one['words']}"
        print(f"{'':<12} neighbour {clean(said, 900)}")
    for one in evidence.get("controls", ()):
        if one["base"] != one["patched"] and not one.get("left_out"):
            said = f"{one['calls']}: {one['base']} on the base, {one['patched']} with the patch"
            print(f"{'':<12} control {clean(said, 600)}")
    for text in str(evidence.get("output", "")).splitlines()[-FAILURES:]:
        print(f"{'':<12} {clean(text, 200)}")
