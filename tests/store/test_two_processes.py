"""Two daemons on one journal: every tick is one run, every claim is won once, no budget is exceeded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fleet.store.journal import Journal
from tests.doubles.journal import new_run
from tests.store.conftest import Places
from tests.store.rival import FINGERPRINTS, LIMIT, SPENDS, TICKS

pytestmark = pytest.mark.anyio
RIVAL = Path(__file__).with_name("rival.py")


def _rivals(place: str) -> list[dict[str, Any]]:
    children = [
        subprocess.Popen(
            [sys.executable, str(RIVAL), place, me],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(RIVAL.parents[2])},
        )
        for me in ("one", "two")
    ]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        return [json.loads(child.communicate(timeout=90)[0]) for child in children]
    finally:
        for child in children:
            child.kill()
            child.communicate()


async def test_two_processes_share_one_journal(places: Places) -> None:
    place = str(places())
    async with await Journal.open(place) as journal:
        for run_id in ("shared", "one", "two"):
            await journal.trigger(new_run(run_id, "q"))
        rivals = _rivals(place)
        rows = {row.key: row for row in await journal.runs(limit=9999)}
        spent = await journal.spent("shared")
        posting = await journal.findings(states=["posting"])

    triggered = Counter(n for rival in rivals for n in rival["triggered"])
    assert triggered == dict.fromkeys(range(TICKS), 1)
    assert {row.run_id for row in rows.values()} >= {
        f"{n}-{me}" for me, rival in zip(("one", "two"), rivals, strict=True) for n in rival["triggered"]
    }
    assert len(rows) == TICKS + 3

    claims = Counter(run_id for rival in rivals for run_id in rival["claimed"])
    assert set(claims.values()) == {1}
    assert set(claims) == {row.run_id for row in rows.values() if row.state == "running"}

    assert sum(rival["spent"] for rival in rivals) == spent["calls"] == LIMIT < 2 * SPENDS
    assert Counter(n for rival in rivals for n in rival["posting"]) == dict.fromkeys(range(FINGERPRINTS), 1)
    assert len(posting) == FINGERPRINTS
