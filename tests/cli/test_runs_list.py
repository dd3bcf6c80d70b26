"""`fleet runs list`: what each run found, looked at and cost, without the routine ones, at 80 by 24."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import pytest
from typer.testing import CliRunner, Result

from fleet.cli.run.runs import app
from fleet.runs.desk.state import AccountTally, Plan, PlanItem, RunState, StateFile
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow, FindingState, NewRun
from tests.cli.test_worklist_command import screen
from tests.triggers.conftest import FakeClock

GOLDEN = Path(__file__).parent / "golden" / "runs-list.txt"
REACHED: dict[FindingState, tuple[FindingState, ...]] = {
    "raised": (),
    "flaky": ("flaky",),
    "unverified": ("unverified",),
    "confirmed": ("confirmed",),
    "posted": ("confirmed", "posting", "posted"),
    "dropped": ("dropped",),
}
ENDS = (
    ("qa-smoke", "done", ""),
    ("qa-with-a-long-name", "done", "12 probes"),
    (
        "qa-fuzz",
        "deadline_exceeded",
        "after 600 s\x1b[31m, \u202ewith more words than fit a line of a terminal",
    ),
    ("qa-ux", "done", "漢字漢字漢字漢字漢字漢字漢字漢字漢字"),
)


async def ended(state: Path) -> None:
    clock = FakeClock()
    async with await Journal.open(state / "fleet.db", clock=clock) as journal:
        for number, (persona, outcome, detail) in enumerate(ENDS * 3):
            run = f"aaaaaaa{number:x}"
            await journal.trigger(
                NewRun(
                    run_id=run,
                    persona=persona,
                    key=run,
                    platform="devnet",
                    trigger="t",
                    rung="observe",
                    budget={},
                )
            )
            await journal.claim(run, pid=1, pid_start=1)
            await journal.spend(run, "calls", 12 * number, 1000)
            if persona == "qa-ux":
                await journal.spend(run, "usd_micro", 20_000, 10**6)
                for mark, grade in (("a", "repeated"), ("b", "dropped")):
                    finding = FindingRow(run_id=run, fingerprint=mark * 12, title="t", persona=persona)
                    await journal.add_finding(finding)
                    await journal.set_finding(run, mark * 12, state=grade)
            await journal.finish(run, outcome, detail)
            clock.advance(3600)
    plan = [PlanItem("one", "healthy"), PlanItem("two", "inconclusive"), PlanItem("three", "not_applicable")]
    folder = state / "runs" / "aaaaaaab"
    folder.mkdir(parents=True)
    StateFile(folder, "aaaaaaab").save(RunState.begin("aaaaaaab", Plan(tuple(plan))))


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("STATE_DIRECTORY", str(path))
    return path


def listed(*words: str) -> Result:
    return CliRunner().invoke(app, ["list", *words])


def test_golden_at_80_by_24(state: Path) -> None:
    anyio.run(ended, state)
    text = screen(state, "runs", "list")
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()
    assert len(text.splitlines()) == 8  # a heading, six runs, and how many are not shown


def test_routine_runs_are_counted_and_shown_on_demand(state: Path) -> None:
    anyio.run(ended, state)
    few, every = listed(), listed("--all")
    assert [len(one.stdout.splitlines()) for one in (few, every)] == [7, 13]
    assert few.stderr == "6 routine runs are not shown: --all\n"
    assert every.stderr == ""
    heads, first = (line.split("\t") for line in few.stdout.splitlines()[:2])
    assert heads[-5:] == ["findings", "unproven", "looked", "calls", "usd"]
    assert first[-5:] == ["1", "0", "1/2", "132", "0.02"]
    assert few.stdout.splitlines()[2].split("\t")[-5:] == ["0", "0", "-", "120", "-"]
    rows = json.loads(listed("--json").stdout)
    assert [len(rows), sum(row["routine"] for row in rows)] == [12, 6]
    assert (rows[0]["findings"], rows[0]["looked"], rows[0]["applicable"]) == (1, 1, 2)
    assert rows[1]["looked"] is None


@pytest.mark.parametrize("grade", ["raised", "flaky", "unverified", "confirmed", "posted", "dropped"])
def test_what_a_run_saw_is_counted_proven_or_not(state: Path, grade: FindingState) -> None:
    async def found() -> None:
        async with await Journal.open(state / "fleet.db", clock=FakeClock()) as journal:
            await journal.trigger(
                NewRun(
                    run_id="run0",
                    persona="qa-ux",
                    key="k",
                    platform="devnet",
                    trigger="t",
                    rung="observe",
                    budget={},
                )
            )
            await journal.claim("run0", pid=1, pid_start=1)
            for mark in "abcde":
                name = mark * 12
                await journal.add_finding(FindingRow(run_id="run0", fingerprint=name, title="t"))
                for step in REACHED[grade]:
                    await journal.set_finding("run0", name, state=step)
            await journal.finish("run0", "done", "")

    anyio.run(found)
    (row,) = json.loads(listed("--json").stdout)
    proven, unproven = {"confirmed": (5, 0), "posted": (5, 0), "dropped": (0, 0)}.get(grade, (0, 5))
    assert (row["findings"], row["unproven"]) == (proven, unproven)
    assert row["routine"] == (grade == "dropped")
    text = screen(state, "runs", "list")
    shown = {"dropped": "nothing found, nothing wrong", "confirmed": " 5 ", "posted": " 5 "}
    assert shown.get(grade, " 0+5 ") in text


def test_an_empty_list_says_so_and_is_no_error(state: Path) -> None:
    said = listed()
    assert (said.exit_code, said.stdout, said.stderr) == (0, "", "no runs yet\n")
    assert listed("--json").stdout == "[]\n"


def test_show_says_what_a_run_left_out(state: Path) -> None:
    anyio.run(ended, state)
    folder = state / "runs" / "aaaaaaab"
    file = StateFile(folder, "aaaaaaab")
    tally = AccountTally(failed=2, why="the sign-up answers 422: solve the captcha")
    file.save(file.load().model_copy(update={"accounts": {"{site}/join": tally}}))
    shown = CliRunner().invoke(app, ["show", "aaaaaaab"]).stdout
    assert "  not applicable  three: \n" in shown
    assert (
        "  unexplored  accounts of {site}/join: no account could be made, because the sign-up answers 422:"
        " solve the captcha\n"
    ) in shown
    (row,) = [row for row in json.loads(listed("--json").stdout) if row["run"] == "aaaaaaab"]
    assert (row["looked"], row["applicable"]) == (1, 2)
