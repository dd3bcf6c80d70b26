"""The last ended run of each persona, and outcomes since a moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.store.journal import Journal
from tests.doubles.journal import new_run
from tests.triggers.conftest import FakeClock


@pytest.mark.anyio
async def test_the_last_ended_run_of_each_persona_of_one_platform(place: Path | str) -> None:
    clock = FakeClock()
    async with await Journal.open(place, clock=clock) as journal:
        ends = [("qa-a", "done"), ("qa-a", "failed"), ("qa-b", "done"), ("qa-a", "done")]
        for number, (persona, outcome) in enumerate(ends):
            run = f"run{number}"
            platform = "other" if number == 3 else "p"
            await journal.trigger(new_run(run, persona, platform=platform))
            await journal.finish(run, outcome)
            clock.advance(60)
        await journal.trigger(new_run("open", "qa-b", key="k", platform="p"))
        assert [row.run_id for row in await journal.last_ended("p")] == ["run1", "run2"]
        assert [row.run_id for row in await journal.last_ended("p", "done")] == ["run0", "run2"]
        assert await journal.outcomes() == {"done": 3, "failed": 1}
        since = (await journal.run("run2")).ended
        assert await journal.outcomes(since) == {"done": 2}
