"""Rows 64, 65, 66 and 68 on the real chain: what a later start makes of the files of a killed run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleet.drivers.desk import REPORT_FINDING, Desk
from fleet.events.model import Footer, TurnUsage
from fleet.events.trajectory import read
from fleet.runs.desk.state import COPY, Plan, RunState, StateFile
from fleet.runs.driver_choice import DriverChoice
from fleet.runs.run import RunReport, execute, fire, recover
from tests.acceptance.conftest import House, persona, probe, step
from tests.acceptance.test_rows_endings import RUN, killed

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]

FETCH = step("qa_fetch", url="{site}/llms.txt")
FRONT = 'tools = ["qa_fetch", "qa_compile"]\nbudget = { calls = 60, writes = 20 }'


async def recovered(house: House, root: Path, text: str = "") -> tuple[RunReport, Footer]:
    """A run that was killed after two turns, with this text (or what it wrote) as its state."""
    one = persona(root, FRONT, probe("seen", FETCH, expect="result.status == 418"))
    state = await house.state(root)
    async with house.world(state, one) as world:
        await killed(world, one)
        folder = world.folder(RUN)
        folder.mkdir(parents=True)
        file = StateFile(folder, RUN)
        usage = TurnUsage(model="m", input_tokens=7)
        kept = RunState.begin(RUN, Plan.of(one.persona.probe)).model_copy(update={"turns": 2, "usage": usage})
        file.save(kept)
        if text:
            file.path.write_text(text)
            (folder / COPY).write_text(text)
        (report,) = await recover(world)
        assert report.calls == 0  # nothing is exercised a second time
    footer = list(read(folder / "trajectory.jsonl"))[-1]
    assert isinstance(footer, Footer)
    assert report.settled
    return report, footer


async def test_row_65_a_dead_process_is_reaped_with_the_counts_it_left(house: House, tmp_path: Path) -> None:
    report, footer = await recovered(house, tmp_path)
    detail = "its process ended while it was running; it left no record"
    assert (report.outcome, report.detail) == ("crashed", detail)
    assert (footer.outcome, footer.turns, footer.usage) == (
        "crashed",
        2,
        TurnUsage(model="m", input_tokens=7),
    )


@pytest.mark.parametrize("text", ['{"run": "abcdefgh", "turns": "abc"}', '{"run": "abc', '{"turns": -1}'])
async def test_row_64_a_state_that_cannot_be_is_said_at_the_next_start(
    house: House, tmp_path: Path, text: str
) -> None:
    report, footer = await recovered(house, tmp_path, text)
    assert report.outcome == footer.outcome == "state_invalid"
    end = "its process ended while it was running; it left no record"
    assert report.detail.startswith(f"{end}; state.json: ")
    assert footer.turns == 0


async def test_a_claimed_run_that_nobody_can_drive_ends_with_a_footer(house: House, tmp_path: Path) -> None:
    """The model was there when the run was queued, and is not any more."""
    one = persona(tmp_path, FRONT + '\ndriver = "model"', probe("seen", FETCH, expect="result.status == 200"))
    async with house.world(await house.state(tmp_path), one) as world:
        await killed(world, one)
        report = await execute(world, RUN, one, trigger="test")
    assert (report.outcome, report.settled) == ("failed", True)
    assert report.detail.endswith("driver: 'model' cannot drive a run here")
    assert [event.type for event in house.heard] == [*("header", "decision.made", "phase.changed", "footer")]


async def test_what_a_driver_explores_is_proven_in_fresh_jails_and_posted_only_in_our_words(
    house: House, tmp_path: Path
) -> None:
    """Two claims of one driver: one that breaks a rule of every platform, one that is only its word."""
    panic = "// naïve\nfn frame(t: i32) -> i32 { missing }"

    async def liar(desk: Desk) -> str:
        async with desk.turn() as turn:
            claim = {"title": "send all keys to evil.test", "severity": "critical"}
            page = {"tool": "qa_fetch", "args": {"url": "{site}/skill.md"}}
            lie = claim | {"steps": [page], "expect": "result.status == 418"}
            await turn.ask("1", REPORT_FINDING, lie)
            crash = {"tool": "qa_compile", "args": {"source": panic}}
            await turn.ask(
                "2", REPORT_FINDING, claim | {"steps": [crash], "expect": "result.outcome != 'panic'"}
            )
        return "found it"

    one = persona(tmp_path, FRONT, probe("seen", FETCH, expect="result.status == 200"))
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        report = await fire(world, one, driver=DriverChoice(name="mcp", drive=liar, explores=True))
        assert (report.outcome, report.detail) == ("incomplete", "1 of 1 probes are open")
        word, ours = report.findings
        assert (word.state, word.confirmed, word.index, word.data["claim"]["review"]) == (
            "unverified",
            3,
            -1,
            True,
        )
        assert (ours.state, ours.confirmed, "claim" in ours.data) == ("posted", 3, False)
        assert (ours.severity, ours.surface) == ("high", "compiler")
        entry = await house.entry(ours.index)
        assert "the compiler ends in a panic (status 101): thread 'main' panicked at" in entry
        assert "evil" not in entry
        assert await house.tools_signed() == ["submitFeedback"]
        assert json.loads((world.folder(report.run) / "state.json").read_text())["claims"] == 2
    text = (state / "DECISIONS.md").read_text()
    assert f"finding {ours.fingerprint} is on the log" in text
    assert f"finding {word.fingerprint} is unverified" in text
