"""`fleet runs pause`, `questions` and `answer`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import anyio

from fleet.store.journal import Journal
from fleet.store.rows import NewRun
from tests.cli_process import run_fleet


def fleet(state: Path, *words: str, ok: int = 0) -> subprocess.CompletedProcess[str]:
    done = run_fleet(*words, env={**os.environ, "STATE_DIRECTORY": str(state)})
    assert done.returncode == ok, done.stderr
    return done


def test_a_run_is_paused_listed_and_answered_once(tmp_path: Path) -> None:
    async def running() -> None:
        run = NewRun(
            run_id="live0001", persona="qa-ux", key="k", platform="example", trigger="t", rung="", budget={}
        )
        async with await Journal.open(tmp_path / "fleet.db") as journal:
            await journal.trigger(run)
            await journal.claim("live0001", pid=1, pid_start=1)

    anyio.run(running)
    assert json.loads(fleet(tmp_path, "runs", "questions", "--json").stdout) == []
    paused = json.loads(fleet(tmp_path, "runs", "pause", "live0001", "--reason", "odd", "--json").stdout)
    [asked] = json.loads(fleet(tmp_path, "runs", "questions", "--json").stdout)
    assert (asked["ident"], asked["run"], asked["state"]) == (paused["question"], "live0001", "open")
    status = json.loads(fleet(tmp_path, "status", "--json").stdout)
    assert [one["ident"] for one in status["questions"]] == [paused["question"]]
    assert f"fleet runs answer {paused['question']} approve|deny" in " ".join(status["wrong"])
    answer = ("runs", "answer", paused["question"], "deny", "--reason", "stop it")
    assert fleet(tmp_path, *answer).stdout == f"question {paused['question']}: denied\n"
    again = fleet(tmp_path, *answer, ok=2)
    assert "no open question" in again.stderr
    assert json.loads(fleet(tmp_path, "runs", "questions", "--json").stdout) == []
    [said] = json.loads(fleet(tmp_path, "runs", "questions", "--all", "--json").stdout)
    assert [(one["approve"], one["why"]) for one in said["answers"]] == [(False, "stop it")]
