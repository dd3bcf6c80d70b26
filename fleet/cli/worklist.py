"""`fleet worklist`: what to fix first, and why."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from fleet.app.journal import known_journal
from fleet.cli.console import Json, make_app, note, put, run, state, table
from fleet.cli.outages import line_of, open_outages
from fleet.config import read_text
from fleet.text import clean
from fleet.triage.unproven import unproven

app = make_app()

COLUMNS = ("#", "severity", "surface", "finding", "count", "state", "score", "fingerprint")


@app.command()
def worklist(as_json: Json = False) -> None:
    """Show the ranked worklist of the last triage, open outages, and findings not proven yet."""
    path = state() / "worklist.json"
    data: dict[str, Any] = {"items": []}
    if path.exists():
        data = json.loads(read_text(path, limit=64 << 20))
    else:
        note("no worklist yet; `fleet run qa-triage` writes one")
    data["outages"], data["unproven"] = run(_known)
    put(data, as_json=as_json, text=lambda: _print(data, written=path.exists()))


async def _known() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the journal adds to the log: open outages, and grave findings not proven yet."""
    if (known := await known_journal(state())) is None:
        return [], []
    async with known as journal:
        left = unproven(await journal.findings())
        return await open_outages(journal), [asdict(one) for one in left]


def _print(data: dict[str, Any], *, written: bool) -> None:
    for outage in data["outages"]:
        print(f"outage    {line_of(outage)}")
    for one in data["unproven"]:
        words = f"{one['severity']}  {one['title']}  ({one['fingerprint']}, run {one['run']}: {one['why']})"
        print(clean(f"unproven  {words}"))
    if written:
        show(data["items"])


def show(items: list[dict[str, object]]) -> None:
    """The list as a table."""
    keys = ("rank", "severity", "surface", "title", "count", "state", "score", "fingerprint")
    table(COLUMNS, ([item[key] for key in keys] for item in items), empty="nothing to do")
