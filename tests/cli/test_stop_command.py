"""`fleet stop` and `fleet resume`: who, when and why, in DECISIONS.md and in the journal; and status."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from typer.testing import CliRunner

from fleet.cli.console import who
from fleet.cli.operate import resume, status, stop
from fleet.clock import SystemClock
from fleet.errors import Refused
from fleet.events.daemon_events import Feed, FlightsEnded
from fleet.gate.stop import fence_failed, stopped
from fleet.runs.call.halt import HALTS
from fleet.store.journal import Journal


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    return tmp_path


def halts(state: Path) -> list[tuple[str, str, str]]:
    async def read() -> dict[str, str]:
        async with await Journal.open(state / "fleet.db") as journal:
            return await journal.facts(HALTS)

    rows = [json.loads(text) for text in anyio.run(read).values()]
    return [(row["act"], row["who"], row["why"]) for row in rows]


def test_both_are_on_record_with_who_and_why(state: Path) -> None:
    halts(state)  # a journal is there
    assert CliRunner().invoke(stop.app, ["--reason", "the pager"]).exit_code == 0
    assert CliRunner().invoke(stop.app, ["--reason", "again"]).exit_code == 0  # it is stopped already
    assert CliRunner().invoke(resume.app, ["--reason", "it was a drill"]).exit_code == 0
    assert halts(state) == [("stop", who(), "the pager"), ("resume", who(), "it was a drill")]
    said = (state / "DECISIONS.md").read_text()
    assert said.index(f"{who()} stops the fleet") < said.index(f"{who()} lets the fleet go on")
    assert "Why:      the pager" in said
    assert "Why:      it was a drill" in said
    assert "stay stopped, or go on: STOP is set: the pager" in said


def test_without_a_journal_the_stop_is_set_and_the_resume_done(state: Path) -> None:
    (state / "fleet.db").mkdir()  # what cannot be opened
    stopping = CliRunner().invoke(stop.app, ["--reason", "x"])
    assert stopped(state)
    assert (stopping.exit_code, "does not have this stop" in stopping.stderr) == (0, True)
    resuming = CliRunner().invoke(resume.app, [])
    assert (resuming.exit_code, stopped(state)) == (0, None)
    assert "does not have this resume" in resuming.stderr


def test_after_a_failed_fence_a_person_says_what_was_checked(state: Path) -> None:
    halts(state)
    fence_failed(state, "jail", "its self-check, unix sockets: saw open", SystemClock())
    refused = CliRunner().invoke(resume.app, [])
    assert isinstance(refused.exception, Refused)
    assert "every line of `fleet check machine`" in str(refused.exception)
    assert (stopped(state) is not None, halts(state)) == (True, [])
    assert CliRunner().invoke(resume.app, ["--reason", "a new kernel, doctor is green"]).exit_code == 0
    assert stopped(state) is None
    assert halts(state) == [("resume", who(), "a new kernel, doctor is green")]


def test_status_says_what_failed_what_to_check_and_when_all_had_ended(state: Path) -> None:
    fence_failed(state, "egress record", "runs/x cannot be written", SystemClock())
    feed = Feed(state / "events.jsonl", clock=SystemClock())
    feed.publish(FlightsEnded(runs=2, seconds=0.72))
    feed.close()
    data = json.loads(CliRunner().invoke(status.app, ["--json"]).stdout)
    assert data["ended_after_s"] == 0.72
    (line,) = [one for one in data["wrong"] if one.startswith("STOP")]
    assert "runs/x cannot be written" in line
    assert "can be written by the fleet's user alone" in line
    assert "all in flight ended after 0.7 s" in " ".join(CliRunner().invoke(status.app, []).stdout.split())
