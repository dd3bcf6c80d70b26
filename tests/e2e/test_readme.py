"""Every command of the README works as it is written there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from fleet.config import ROOT
from tests.e2e.conftest import command

pytestmark = [pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(300)]

README = (ROOT / "README.md").read_text("utf-8")


def commands() -> list[str]:
    """The command lines of its code blocks, without their comments."""
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith((".venv/bin/fleet ", "make "))]


def test_make_targets_exist() -> None:
    for line in commands():
        if line.startswith("make "):
            done = subprocess.run(
                ["make", "-n", *shlex.split(line)[1:]], cwd=ROOT, capture_output=True, text=True
            )
            assert done.returncode == 0, (line, done.stderr)


@pytest.mark.timeout(600)
def test_the_commands_work_in_their_order_after_the_demo(tmp_path: Path) -> None:
    """In a state directory in which nothing was run before, as in a fresh clone."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    fleet = command(state)
    lines = [line for line in commands() if line.startswith(".venv/bin/fleet ")]
    assert len(lines) >= 20
    assert commands()[0] == "make demo"
    demo = fleet("demo")
    assert demo.code == 0, demo.err
    printed_lines_work(state, demo.out)
    last = ".venv/bin/fleet devnet down"
    try:
        for line in [line for line in lines if line != last]:
            words = shlex.split(line)[1:]
            if "FP" in words:
                opened = [word for word in words if word == "--demo"]
                found = fleet(*opened, "findings", "list", "--json").data
                words[words.index("FP")] = found[0]["fingerprint"]
            said = fleet(*words)
            assert "no platform named" not in said.err, (line, said.err)
            finds = words[:2] in (["run", "qa-fuzz"], ["fuzz", "devnet"]) and "--dry-run" not in words
            expected = 1 if finds else 0
            assert said.code == expected, (line, said.err)
    finally:
        assert fleet(*shlex.split(last)[1:]).code == 0


def printed_lines_work(state: Path, said: str) -> None:
    """The last lines of the demo, run by a shell as they are printed."""
    lines = [line for line in said.splitlines() if " --demo " in line]
    assert [line.partition(" --demo ")[2].split()[0] for line in lines] == [
        "worklist",
        "findings",
        "runs",
        "devnet",
        "run",
        "devnet",
    ]
    environment = {"PATH": os.environ["PATH"], "HOME": str(state), "STATE_DIRECTORY": str(state)}
    shown = ""
    for line in lines:
        done = subprocess.run(
            ["sh", "-c", line], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
        )
        expected = (0, 1) if " run " in line else (0,)  # the seeded defects are there
        assert done.returncode in expected, (line, done.stderr)
        assert "no item" not in done.stderr + done.stdout
        shown += done.stdout
    assert "Traceback" not in shown


def test_it_is_true_about_the_rungs_and_exit_codes() -> None:
    for word in ("observe", "exercise", "propose", "75 try again", "5 refused"):
        assert word in README
