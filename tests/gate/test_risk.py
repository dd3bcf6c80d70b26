"""Cumulative risk: points by impact and host, more when repeated, halved each half hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.drivers.session import RunOver
from fleet.gate.risk import HALVES_S, RISK, CumulativeRisk
from fleet.gate.stop import stopped
from tests.runs.table import persona, seated
from tests.runs.test_questions import asking, both, reply


def test_points_add_up_fade_and_weigh_more_where_more_hangs_on_it() -> None:
    risk = CumulativeRisk()
    assert risk.add("low", "production", "a", 0.0) == 0.0
    assert risk.add("medium", "non-production", "b", 0.0) == 1.0
    assert risk.add("medium", "non-production", "b", 0.0) == pytest.approx(2.1)  # the same again
    assert risk.add("high", "production", "c", 0.0) == pytest.approx(12.1)
    assert risk.add("critical", "critical", "d", 0.0) == pytest.approx(87.1)
    assert risk.now(HALVES_S) == pytest.approx(43.55)
    assert risk.now(2 * HALVES_S) == pytest.approx(21.775)
    assert risk.add("medium", "non-production", "b", HALVES_S) == pytest.approx(44.55)  # counted anew
    for _ in range(10_000):  # as a busy run has of one host in half an hour
        before = risk.now(HALVES_S)
        risk.add("medium", "non-production", "b", HALVES_S)
    assert risk.now(HALVES_S) - before == pytest.approx(2.0)  # at most
    again = CumulativeRisk.read("87.1 0.0")
    assert again.now(HALVES_S) == pytest.approx(43.55)
    assert CumulativeRisk.read(None).now(1.0) == 0.0
    risk.reset(9.0)
    assert (risk.now(10.0), risk.since) == (0.0, 9.0)


@pytest.mark.anyio
async def test_too_much_together_waits_for_a_person_and_more_sets_stop(tmp_path: Path) -> None:
    attack = {"url": "http://site/?q=<script>"}
    async with seated(tmp_path, persona(), platform=asking(risk=15)) as table:
        session = table.drive.runner.session
        for _ in range(2):
            assert (await session.call("qa_fetch", attack)).denied == ""
        assert table.said("question.asked") == []
        await both(lambda: session.call("qa_fetch", attack), lambda: reply(table, True))
        [asked] = table.said("question.asked")
        assert (asked.trigger, asked.what.partition(",")[0]) == ("risk", "cumulative risk of 17 points")
        assert table.said("tool.requested")[0].impact.endswith(", risk 5.0")
        assert (await session.call("qa_fetch", attack)).denied == ""
        assert len(table.said("question.asked")) == 1
        assert await table.world.journal.get(RISK + "paper") is not None
    async with seated(tmp_path / "2", persona(), platform=asking(risk_stops=4)) as table:
        with pytest.raises(RunOver, match="cumulative risk of 5 points, of 4 at most"):
            await table.drive.runner.session.call("qa_fetch", attack)
        assert stopped(table.world.state) is not None
