"""A column of a run is written once: in its row, and in the step that adds it to older journals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from fleet.store.journal import Journal
from tests.doubles.journal import new_run
from tests.store.conftest import Places

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
CHANGES = {
    "store/rows.py": {'    due: str = ""\n': '    due: str = ""\n    mood: str = "calm"\n'},
    "store/sql/migrations.py": {
        "    10: _heads,\n": "    10: _heads,\n    11: lambda one: _add(one, RUNS.c.mood),\n",
    },
}
"""By file of the copy: the lines that are replaced."""
WRITE = """
import asyncio, json, sys
from dataclasses import asdict
from fleet.store.dispatch.source import Embedded, Owner
from fleet.store.journal import Journal
from fleet.store.rows import NewRun

async def main():
    async with await Journal.open(sys.argv[1]) as journal:
        run = dict(persona="p", platform="d", trigger="t", rung="", budget={})
        await journal.trigger(NewRun(run_id="new", key="new", mood="wild", priority=1, **run))
        await journal.trigger_all([NewRun(run_id="usual", key="usual", **run)])
        claimed = await Embedded(journal, "d", Owner(1, 1)).take({"p": 3}, ())
        rows = {row.run_id: row.mood for row in await journal.runs()}
        print(json.dumps([rows, claimed.mood, await journal.faults()]))

asyncio.run(main())
"""


async def test_a_new_column_of_a_run_is_two_files(places: Places, tmp_path: Path) -> None:
    fleet = tmp_path / "house" / "fleet"
    shutil.copytree(ROOT / "fleet", fleet, ignore=shutil.ignore_patterns("__pycache__"))
    assert len(CHANGES) <= 2
    for name, lines in CHANGES.items():
        text = (fleet / name).read_text("utf-8")
        for old, new in lines.items():
            assert text.count(old) == 1, name
            text = text.replace(old, new)
        (fleet / name).write_text(text, "utf-8")
    place = places()
    async with await Journal.open(place) as journal:
        run = new_run("old", "q", rung="")
        await journal.trigger(run)
    for there in (place, places()):  # one that is older than the column, and a new one
        done = await anyio.run_process(
            [sys.executable, "-c", WRITE, str(there)],
            cwd=fleet.parent,
            stdin=subprocess.DEVNULL,
            check=False,
            env=dict(os.environ) | {"PYTHONPATH": str(fleet.parent)},
        )
        assert done.returncode == 0, done.stderr.decode()
        older = {"old": "calm"} if there == place else {}
        assert json.loads(done.stdout) == [older | {"new": "wild", "usual": "calm"}, "wild", []]
