"""`fleet worklist`: what to fix first, and why."""

from __future__ import annotations

import json
from typing import Any

from fleet.cli.journal import known_journal
from fleet.cli.outages import line_of, open_outages
from fleet.cli.shell import Json, make_app, note, put, run, state, table
from fleet.config import read_text

app = make_app()

COLUMNS = ("#", "severity", "surface", "finding", "count", "state", "score", "fingerprint")


@app.command()
def worklist(as_json: Json = False) -> None:
    """The ranked worklist, as triage wrote it last, and the outages that are open now."""
    path = state() / "worklist.json"
    data: dict[str, Any] = {"items": []}
    if path.exists():
        data = json.loads(read_text(path, limit=64 << 20))
    else:
        note("no worklist yet; `fleet run qa-triage` writes one")
    data["outages"] = run(_outages)
    put(data, as_json=as_json, text=lambda: _print(data, written=path.exists()))


async def _outages() -> list[dict[str, Any]]:
    if (known := await known_journal(state())) is None:
        return []
    async with known as journal:
        return await open_outages(journal)


def _print(data: dict[str, Any], *, written: bool) -> None:
    for outage in data["outages"]:
        print(f"outage    {line_of(outage)}")
    if written:
        show(data["items"])


def show(items: list[dict[str, object]]) -> None:
    """The list as a table."""
    keys = ("rank", "severity", "surface", "title", "count", "state", "score", "fingerprint")
    table(COLUMNS, ([item[key] for key in keys] for item in items), empty="nothing to do")
