"""docs/operate.md: its commands exist with these options; each metric and exit code has its line."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet import errors
from fleet.app.status_words import wrong
from fleet.cli.propose import HELD
from fleet.config import EVENTS
from fleet.files import ROOT
from tests.command_tree import command_of

PAGE = (ROOT / "docs/operate.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```\n", PAGE, re.M | re.S)
LINES = [line for block in BLOCKS if not block[0] for line in block[1].splitlines()]
SPOKEN = sorted(set(re.findall(r"`fleet ([a-z]+(?: [a-z]+){0,2})[^`]*`", PAGE)))


def test_the_page_has_commands() -> None:
    assert len(LINES) > 25


@pytest.mark.parametrize("line", LINES)
def test_each_command_and_option_exists(line: str) -> None:
    first, *words = shlex.split(line)
    assert first == "fleet"
    found, rest = command_of(words)
    options = {name: one for one in found.params for name in one.opts if name.startswith("-")}
    taken = []
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            taken.append(word)
        elif not options[word].is_flag:
            rest.pop(0)
    arguments = [one for one in found.params if one.param_type_name == "argument"]
    assert sum(one.required for one in arguments) <= len(taken) <= len(arguments)


@pytest.mark.parametrize("words", SPOKEN)
def test_each_command_in_a_sentence_exists(words: str) -> None:
    command_of(words.split())


def test_each_metric_has_a_line() -> None:
    source = (ROOT / "fleet/service/exposition.py").read_text("utf-8")
    rows = re.findall(r"^\| (`[^|]*) \|", PAGE, re.M)
    documented = {name for row in rows for name in re.findall(r"`(fleet_[a-z_]+)`", row)}
    assert set(re.findall(r'"(fleet_[a-z_]+)"', source)) - documented == set()


def test_each_exit_code_has_a_line() -> None:
    def codes(kind: type[errors.FleetError]) -> Iterator[int]:
        yield kind.exit_code
        for one in kind.__subclasses__():
            yield from codes(one)

    documented = set(map(int, re.findall(r"^\| (\d+) \|", PAGE, re.M)))
    assert {0, HELD, 130, 143, *codes(errors.FleetError)} == documented
    manual = json.loads((ROOT / "fleet/cli/manual.json").read_text("utf-8"))["exit"]
    assert documented == set(map(int, manual))


def test_each_event_of_a_notification_has_a_line_that_says_what_to_do() -> None:
    table = PAGE.partition("## Notifications")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]+) \| ([^|]+) \|$", table, re.M)
    listed = [name for row in rows for name in re.findall(r"`([a-z-]+)`", row[0])]
    assert listed == sorted(EVENTS, key=listed.index)
    assert all(said.strip() and done.strip() for _, said, done in rows)


def test_each_red_line_of_status_has_a_line() -> None:
    broken = {
        "persona": "p",
        "probe": "q",
        "reason": "r",
        "run": "1",
        "outcome": "crashed",
        "ended": "2026-11-21",
    }
    data = {
        "stop": "x",
        "dial": {"fault": "x"},
        "fence": "x",
        "degraded": "x",
        "daemon": 0,
        "at": "2026-11-21T12:00:00Z",
        "questions": [
            {"run": "r", "until": "2026-11-28T15:00:00Z", "trigger": "scope", "what": "x", "ident": "i"}
        ],
        "lost": [{"why": "x", "at": "", "runs": []}],
        "proving": [
            {"why": "x", "at": "2026-11-20", "title": "t", "fingerprint": "f", "run": "1"},
        ],
        "outages": [{"severity": "high", "platform": "p", "title": "t"}],
        "missing": [{"platform": "p", "count": 2, "since": "2026-11-21", "fate": ""}],
        "personas": {"refused": [broken], "failing": [broken | {"detail": "d"}]},
        "undecided": [broken],
        "unexplored": [broken],
        "models": [broken],
        "left_today": {"": {"calls": 0}},
        "log": {"entries": None, "read": 0, "behind": True},
    }
    begins = [line.partition(":")[0] for line in wrong(data)]
    table = PAGE.partition("## Red lines")[2].partition("\n## ")[0]
    assert begins == re.findall(r"^\| `([^`]+)` \|", table, re.M)


def test_clean_says_what_it_leaves(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in (".venv", ".venv-3.12", "node_modules", ".qa-fleet/keys", ".targets/solc"):
        (tmp_path / name).mkdir(parents=True)
    done = subprocess.run(
        ["make", "clean"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert done.stderr.splitlines() == [
        "clean: left .qa-fleet (a fleet's state, with its keys); rm -r .qa-fleet removes it",
        "clean: left .targets (fetched compilers); rm -r .targets removes it",
    ]
    assert sorted(one.name for one in tmp_path.iterdir()) == [".qa-fleet", ".targets", "Makefile"]


def test_the_contributors_page_names_targets_and_files_that_exist() -> None:
    page, makefile = ((ROOT / name).read_text("utf-8") for name in ("CONTRIBUTING.md", "Makefile"))
    for target in re.findall(r"`make ([a-z-]+)`", page):
        assert re.search(rf"^{target}:", makefile, re.M), target
    for path in re.findall(r"`((?:fleet|sandbox|tests|docs|personas)/[a-z_/.]*)`", page):
        assert (ROOT / path).exists(), path
