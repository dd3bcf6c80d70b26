"""`fleet worklist`: what to fix first, and why."""

from __future__ import annotations

import json

from fleet.cli.shell import Json, make_app, note, put, state, table
from fleet.config import read_text

app = make_app()

COLUMNS = ("#", "severity", "surface", "finding", "count", "state", "score", "fingerprint")


@app.command()
def worklist(as_json: Json = False) -> None:
    """The ranked worklist, as triage wrote it last."""
    path = state() / "worklist.json"
    if not path.exists():
        note("no worklist yet; `fleet run qa-triage` writes one")
        put({"items": []}, as_json=as_json, text=lambda: None)
        return
    data = json.loads(read_text(path, limit=64 << 20))
    put(data, as_json=as_json, text=lambda: show(data["items"]))


def show(items: list[dict[str, object]]) -> None:
    """The list as a table."""
    keys = ("rank", "severity", "surface", "title", "count", "state", "score", "fingerprint")
    table(COLUMNS, ([item[key] for key in keys] for item in items), empty="nothing to do")
