"""`fleet fuzz` as a user runs it: a real jail, a real compiler, a state directory, an exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fleet.clock import SystemClock
from fleet.findings.repro import parse_repro
from fleet.gate.stop import stop
from tests.e2e.conftest import Fleet, command

pytestmark = [pytest.mark.jail, pytest.mark.timeout(900 if "FUZZ_OWN_SECONDS" in os.environ else 480)]
KEYS = {"signature", "class", "title", "repro", "size", "confirmed", "tries"}
PLANTED = {"panic", "missing-entry", "crash"}
"""Classes of the seeded defects that a short search finds; `make fuzz-own` goes on to the other two."""
WHOLE = PLANTED | {"invalid-output", "hang"}
FULL = "FUZZ_OWN_SECONDS" in os.environ
CRASHING = """#!/bin/sh
input=$(cat)
case "$input" in *"("*")"*) kill -SEGV $$ ;; "") echo "error: empty" >&2; exit 1 ;; esac
printf %s "$input"
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    return command(state)


def own(tmp_path: Path, sample: str = "hello") -> Path:
    """A target of the test's own: a program that crashes on a pair of brackets."""
    root = tmp_path / "tc"
    root.mkdir()
    (root / "cc").write_text(CRASHING)
    (root / "cc").chmod(0o755)
    target = tmp_path / "own.toml"
    target.write_text(
        'name = "own"\n[compiler]\nroot = "tc"\ncommand = ["/opt/tc/cc"]\noutput = "text"\n'
        f'sample = "{sample}"\n'
    )
    return target


def test_it_finds_the_planted_defects_and_confirms_each_in_fresh_jails(fleet: Fleet) -> None:
    planted, times = (WHOLE, 10) if FULL else (PLANTED, 12)
    for _ in range(times):  # on a busy machine one search does not reach everything: the next goes on
        said = fleet("fuzz", "devnet", "--minutes", "0.3" if FULL else "0.15", "--seed", "1", "--json")
        data = said.data
        small = all(one["size"] < 100 or one["class"] == "invalid-output" for one in data["defects"])
        if (small or not FULL) and {one["class"] for one in data["defects"]} >= planted:
            break
    assert said.code == 1, said.err
    assert data["target"] == "devnet"
    assert data["executions"] >= data["accepted"] > 0
    assert {frozenset(one) for one in data["defects"]} == {frozenset(KEYS)}
    assert {one["class"] for one in data["defects"]} >= planted
    assert {one["confirmed"] for one in data["defects"]} == {3}
    assert len({one["signature"] for one in data["defects"]}) == len(data["defects"])
    for one in data["defects"]:
        assert parse_repro(one["repro"])[0].tool == "qa_compile"
    assert small or not FULL  # takes several searches to shrink
    assert "executions, " in said.err


def test_it_finds_nothing_where_nothing_is_wrong(fleet: Fleet) -> None:
    said = fleet("fuzz", "devnet-clean", "--minutes", "0.1", "--seed", "1", "--json")
    assert (said.code, said.data["defects"], said.data["unshown"]) == (0, [], 0), said.err


@pytest.mark.skipif("FUZZ_OWN_SECONDS" not in os.environ, reason="four searches: make fuzz-own")
def test_it_remembers_what_it_learned_and_begins_anew_when_asked(fleet: Fleet, tmp_path: Path) -> None:
    target, kept = str(own(tmp_path)), tmp_path / "kept"
    kept.mkdir()
    words = ("fuzz", target, "--minutes", "0.1", "--state", str(kept), "--json")
    before = 0
    for more in ((), (), ("--fresh",)):
        said = fleet(*words, *more)
        assert said.code == 1, said.err
        (one,) = said.data["defects"]
        assert (one["class"], one["confirmed"], one["tries"]) == ("crash", 3, 3)
        state = json.loads((kept / "fuzz" / "own" / "campaign.json").read_text())
        assert state["rounds"] == said.data["rounds"] + (0 if more else before)
        before = state["rounds"]
    assert not list((kept / "fuzz" / "own" / "jails").iterdir())


INTERFERES = {
    "kill -9 $PPID": "killed the process that started it (SIGKILL)",
    "kill -9 -1": "killed the process that started it (SIGKILL)",
    "kill -STOP $PPID": "stopped the process that started it",
    "prlimit --pid $PPID --nofile=3:3": "changed RLIMIT_NOFILE of the process that started it",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("act", INTERFERES)
def test_a_program_that_interferes_with_what_runs_it_is_a_defect(
    fleet: Fleet, tmp_path: Path, act: str
) -> None:
    target = own(tmp_path)
    (tmp_path / "tc" / "cc").write_text(CRASHING.replace("kill -SEGV $$", act))
    said = fleet("fuzz", str(target), "--minutes", "0.1", "--by-clock", "--json")
    assert said.code == 1, said.err
    (one,) = said.data["defects"]
    assert (one["class"], one["confirmed"], one["tries"]) == ("interference", 3, 3)
    assert INTERFERES[act] in one["title"]
    assert said.data["lost"] > 0


def test_executions_without_a_result_are_no_clean_end(fleet: Fleet, tmp_path: Path) -> None:
    """It interferes only late in a round, whatever the input: no single call shows it."""
    target = own(tmp_path)
    (tmp_path / "tc" / "cc").write_text("#!/bin/sh\n[ $$ -gt 300 ] && kill -9 $PPID\ncat\n")
    said = fleet("fuzz", str(target), "--minutes", "0.1", "--by-clock", "--json")
    assert (said.code, said.data["defects"]) == (4, []), said.err
    assert said.data["lost"] > 0
    assert f"own: not a clean end: {said.data['lost']} executions without a result" in said.err


def test_a_dry_run_shows_the_plan_and_does_nothing(fleet: Fleet, tmp_path: Path) -> None:
    said = fleet("fuzz", str(own(tmp_path)), "--minutes", "3", "--dry-run", "--json")
    assert (said.code, said.data["target"], said.data["minutes"]) == (0, "own", 3.0)
    assert not (tmp_path / "state" / "fuzz").exists()


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("nope",), 2, "no target named 'nope'; known: asc, "),
        (("devnet", "--minutes", "0"), 2, "Invalid value for '--minutes'"),
        (("localharness",), 3, "it names no compiler"),
    ],
)
def test_what_cannot_be_done_is_said(fleet: Fleet, words: tuple[str, ...], code: int, error: str) -> None:
    said = fleet("fuzz", *words)
    assert said.code == code, said.err
    assert error in said.err


def test_a_sample_that_does_not_compile_is_refused_with_why(fleet: Fleet, tmp_path: Path) -> None:
    said = fleet("fuzz", str(own(tmp_path, sample="f()")))
    assert said.code == 3
    assert "own: its compiler does not work: [compiler] sample was expected to be accepted: crash" in said.err


def test_stop_is_respected(fleet: Fleet, tmp_path: Path) -> None:
    stop(tmp_path / "state", "a test", "enough", SystemClock())
    said = fleet("fuzz", "devnet-clean")
    assert (said.code, "everything is paused" in said.err) == (5, True)


def test_ctrl_c_ends_the_jails_and_prints_what_was_found(tmp_path: Path) -> None:
    target, state = own(tmp_path), tmp_path / "state"
    words = [sys.executable, "-m", "fleet.cli", "fuzz", str(target), "--minutes", "0.2", "--json"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "STATE_DIRECTORY": str(state)}
    with subprocess.Popen(words, env=environment, stdout=-1, stderr=-1, text=True) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        said = process.stderr.readline()  # one round has ended
        process.send_signal(signal.SIGINT)
        data: dict[str, Any] = json.loads(process.stdout.read())
        assert "executions" in said + process.stderr.read()
    assert process.returncode == 130
    assert data["executions"] > 0
    assert not list((state / "fuzz" / "own" / "jails").iterdir())
