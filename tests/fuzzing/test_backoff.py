"""A run that met new behaviour keeps a continuous persona at its shortest pause, a restart included."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.store.journal import Journal
from tests.doubles.journal import new_run

pytestmark = pytest.mark.anyio


async def ended(journal: Journal, run: str, *, discovers: bool) -> None:
    await journal.trigger(new_run(run, "qa-a", platform="p", rung="", due=run))
    assert await journal.claim(run, pid=1, pid_start=1)
    if discovers:
        await journal.discover(run)
    await journal.finish(run, "done")


async def test_only_runs_without_anything_new_are_quiet(tmp_path: Path) -> None:
    async with await Journal.open(tmp_path / "fleet.db") as journal:
        for number, discovers in enumerate((False, True, False, False)):
            await ended(journal, f"r{number}", discovers=discovers)
        assert (await journal.rounds("qa-a")).quiet == 2
        await ended(journal, "r4", discovers=True)
    async with await Journal.open(tmp_path / "fleet.db") as journal:  # a restart
        rounds = await journal.rounds("qa-a")
        assert (rounds.ended, rounds.quiet) == (5, 0)
        assert [row.discovered for row in await journal.runs()] == [1, 0, 0, 1, 0]
