"""docs/write-a-probe.md, run as written: from an empty file to a first proven finding on a fresh devnet."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fleet.cli.personas.personas import SCAFFOLD
from fleet.files import ROOT
from tests.e2e.conftest import LONG, Fleet, Said, command

pytestmark = [pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(600)]

PAGE = (ROOT / "docs/write-a-probe.md").read_text("utf-8")
LINES = [line for block in re.findall(r"^```\n(.*?)^```", PAGE, re.M | re.S) for line in block.splitlines()]
WRONG = re.findall(r"^\| `(.+?)` \| (.+?) \|$", PAGE, re.M)
PROBE = SCAFFOLD.format(name="qa-mine").partition("[[probe]]\n")[2].partition("+++")[0]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of this checkout, since a new persona is written into its folder."""
    for name in ("fleet", "sandbox", "personas", "config"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")  # the local chain
    return tmp_path


@pytest.fixture
def fleet(checkout: Path) -> Iterator[Fleet]:
    state = checkout / "state"
    state.mkdir(mode=0o700)
    run = partial(command(state), cwd=checkout)
    yield run
    assert run("devnet", "down").code == 0


def wrong_probe(index: int) -> str:
    """A probe with one of the page's wrong expectations."""
    text = PROBE.replace("accessible-page", f"p{index}").replace("{site}/", f"{{site}}/{index}")
    return "[[probe]]\n" * (index > 0) + re.sub(
        r"^expect = .*$", lambda _: f"expect = '{WRONG[index][0]}'", text, flags=re.M
    )


def said(fleet: Fleet, line: str) -> Said:
    """What a line of the page answers."""
    words = shlex.split(line)
    assert words[0] == "fleet"
    return fleet(*words[1:])


@LONG
def test_the_page_leads_to_a_proven_finding(fleet: Fleet, checkout: Path) -> None:
    assert len(LINES) == 8
    *begin, healthy, again, found, filed = LINES
    for line in begin:
        assert said(fleet, line).code == 0, line
    tried = said(fleet, healthy)
    assert tried.code == 0, tried.err
    assert "result.status == 200  ->  true" in tried.out
    assert "nothing was posted" in tried.out

    file = checkout / "personas/qa-mine.md"
    good = file.read_text("utf-8")
    assert len(WRONG) == 19
    wrong_file = good.replace(PROBE, "\n".join(map(wrong_probe, range(len(WRONG)))) + "\n")
    file.write_text(wrong_file.replace("calls = 40", "calls = 400"), "utf-8")
    refused = fleet("personas", "check", str(file), "--json")
    errors = refused.data["errors"]
    assert (refused.code, len(errors)) == (3, len(WRONG))
    for index, error in enumerate(errors):
        assert error["key"] == f"probe[{index}].expect"
        line = file.read_text("utf-8").splitlines()[error["line"] - 1]
        assert WRONG[index][0] in line
        assert line.startswith("expect = ")
        assert 10 < error["column"] <= len(line)
        assert error["reason"].startswith(WRONG[index][1])
        assert error["remedy"]

    broken = good.replace("{site}/", "{target:settings}")
    file.write_text(broken, "utf-8")
    assert said(fleet, again).code == 0
    before = fleet("items", "log", "list", "--json").data
    shown = said(fleet, found)
    assert shown.code == 1, shown.err
    assert "size(result.a11y) == 0  ->  false" in shown.out
    assert fleet("items", "log", "list", "--json").data == before
    proven = said(fleet, filed + " --json")
    assert proven.code == 1, proven.err
    (finding,) = proven.data["findings"]
    assert (finding["state"], finding["confirmed"], finding["persona"]) == ("posted", 3, "qa-mine")

    undecided = re.sub(r"^expect = .*$", "expect = 'dyn(result).nothing == 1'", good, flags=re.M)
    file.write_text(undecided, "utf-8")
    wrong = fleet("run", "qa-mine")
    assert wrong.code == 3
    assert "undecided  accessible-page: the expectation cannot be decided: no such member" in wrong.out
    assert "1 probe undecided" in wrong.err
    assert "no findings" not in wrong.out + wrong.err
    (row,) = fleet("status", "--json").data["undecided"]
    assert (row["persona"], row["probe"]) == ("qa-mine", "accessible-page")
    listed = {one["name"]: one for one in fleet("personas", "list", "--json").data}
    assert listed["qa-mine"]["last"].endswith("1 undecided")
