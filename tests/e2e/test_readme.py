"""`fleet demo` finds what was seeded, and every command of the README works as it is written there.

One demo serves both: it is the longest command, and the rest of the README is run in what it leaves.
"""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from fleet.cli.demo import print_summary
from fleet.files import ROOT
from tests.e2e.conftest import Said, command, processes_of, signed

pytestmark = [pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(600)]

README = (ROOT / "README.md").read_text("utf-8")
FLEET = (".venv/bin/fleet ", "fleet ")
LOOKS = ("look", "init")
"""Run whole, on other servers, by test_look.py."""


def commands() -> list[str]:
    """The command lines of its code blocks, without comments; in a block with prompts, what follows one.

    The demo's last lines are output, and commands as well.
    """
    found = list[str]()
    for block in re.findall(r"^```[a-z]*\n(.*?)^```", README, re.MULTILINE | re.DOTALL):
        lines = [line.partition("#")[0].strip() for line in block.splitlines()]
        prompts = any(line.startswith("$ ") for line in lines)
        kept = [line for line in lines if not prompts or line.startswith("$ ") or " --demo " in line]
        found += [line.removeprefix("$ ") for line in kept]
    return [line for line in found if line.startswith((*FLEET, "make "))]


def test_make_targets_exist() -> None:
    for line in commands():
        if line.startswith("make "):
            done = subprocess.run(
                ["make", "-n", *shlex.split(line)[1:]], cwd=ROOT, capture_output=True, text=True
            )
            assert done.returncode == 0, (line, done.stderr)


def test_its_picture_is_there_and_small() -> None:
    picture = (ROOT / "docs" / "worklist.png").read_bytes()
    assert "(docs/worklist.png)" in README
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 150_000


def test_it_is_true_about_the_rungs_and_exit_codes() -> None:
    for word in ("observe", "exercise", "propose", "75 try again", "5 refused"):
        assert word in README


@pytest.fixture(scope="module")
def demo(shared: Path) -> Said:
    """A demo, in a state directory in which nothing was run before, as in a fresh clone."""
    assert commands()[0] == "make demo"
    return command(shared)("demo", "--json", timeout=550)


def runs_that_saw(state: Path) -> dict[str, int]:
    """By fingerprint: an item counts the runs that saw it, though one entry stands on the log."""
    statement = (
        "select fingerprint, count(distinct run_id) from findings where state in ('posted', 'repeated')"
    )
    with closing(sqlite3.connect(state / "demo" / "fleet.db")) as journal:
        return dict(journal.execute(f"{statement} group by fingerprint"))


def test_the_demo_finds_posts_and_ranks_every_seeded_defect_once(demo: Said, shared: Path) -> None:
    assert demo.code == 0, demo.err
    got = demo.data
    assert got["defects_seeded"] == got["defects_found"] == got["findings_posted"] == 21
    assert (got["missed"], got["false_findings"]) == ([], 0)
    assert (got["items"], got["doubles"]) == (21, {})
    assert got["log_entries"] == 22  # each finding once, and one summary of the top three
    assert got["names_minted"] >= 4
    assert (got["names_leaked"], got["jails_left"]) == (0, 0)
    assert [item["rank"] for item in got["worklist"]] == list(range(1, 22))
    assert {item["fingerprint"]: item["count"] for item in got["worklist"]} == runs_that_saw(shared)
    assert all(item["confirmed"] and item["why"] and item["repro"] for item in got["worklist"])
    assert (got["worklist"][0]["severity"], got["worklist"][0]["surface"]) == ("critical", "security")
    assert got["seconds"] > 0
    assert "dial raised to exercise, for this devnet only" in demo.err
    assert processes_of(shared) == []
    assert list((shared / "demo" / "runs").glob("*/keys")) == []
    assert signed(shared) == {"submitFeedback", "register", "setMetadata", "claimDaily", "releaseName", ""}


def test_the_commands_work_in_their_order_after_the_demo(
    demo: Said, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """First what the demo prints at its end, which the README shows, then all else, each command once."""
    first = demo.data["worklist"][0]["fingerprint"]
    print_summary(demo.data, shared / "demo")
    printed = [line for line in capsys.readouterr().out.splitlines() if " --demo " in line]
    asked = [line.partition("#")[0].partition(" --demo ")[2].split() for line in printed]
    lines = [shlex.split(line)[1:] for line in commands() if line.startswith(FLEET)]
    shown = [[first if word == "FP" else word for word in line] for line in lines]
    assert asked == [line[1:] for line in shown if line[0] == "--demo"]
    *asked, down = asked
    try:
        for line in printed[:-1]:
            in_a_shell(line, shared)
        fleet = command(shared / "demo")  # where a devnet is up by now
        others = [line for line in shown if line[0] != "--demo" and line not in (*asked, down)]
        for words in [list(line) for line in dict.fromkeys(map(tuple, others))]:
            if words[0] == "--state":
                words[1] = str(shared / "demo")  # in place of a look's
            said = fleet(*words, *(("--dry-run",) if words[0] in LOOKS else ()))
            assert "no platform named" not in said.err, (words, said.err)
            finds = words[:2] == ["fuzz", "devnet"] and "--dry-run" not in words
            assert said.code == (1 if finds else 0), (words, said.err)
    finally:
        in_a_shell(printed[-1], shared)
    assert len(shown) >= 30


def in_a_shell(line: str, state: Path) -> None:
    """As it is printed, from the folder of the checkout."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(state), "STATE_DIRECTORY": str(state)}
    done = subprocess.run(
        ["sh", "-c", line], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    expected = (0, 1) if " run " in line else (0,)  # the seeded defects are there
    assert done.returncode in expected, (line, done.stderr)
    for text in (done.stdout, done.stderr):
        assert "Traceback" not in text
        assert "no item" not in text
