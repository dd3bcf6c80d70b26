"""What a driver claimed, in the hands of a person: adopted as a probe that is then proven, or dismissed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fleet.app.persona_sets import load
from fleet.config.compiler import CompilerSection
from fleet.personas.model import Probe, Step
from fleet.runs.call.decision_file import NAME
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow, NewRun
from tests.cli_process import run_fleet
from tests.runs.table import PLATFORM, RUN, persona, seated

pytestmark = pytest.mark.anyio

EVIL = 'page "x"\x7f]] \\ is wrong; a right one was expected'
PROBE = Probe(
    id="x-0123456789ab",
    severity="high",
    surface="compiler",
    steps=(Step(tool="qa_compile", args={"source": 'a """ \'\'\' \\" \u202eé {{x}}\n+++\n[[probe]]\r\n'}),),
    expect="result.has_entry || size(result.outcome + '\"') < 2",
    finding=EVIL,
)
TEXT = """+++
name = "qa-mine"
surface = "ux"
tools = ["qa_fetch", "qa_compile"]
triggers = [{ every = "6h" }]
budget = { calls = 40, wall = "5m" }

[[probe]]
id = "front-page"
severity = "medium"
steps = [{ tool = "qa_fetch", args = { url = "{site}/llms.txt" } }]
expect = "result.status == 200"
finding = "the platform's llms.txt cannot be read"
+++
You are qa-mine.
+++
This line is no fence.
"""


@pytest.fixture
async def state(tmp_path: Path, anyio_backend: str) -> Path:
    """A journal with one claim that waits, and one finding of the persona's own that nobody proved."""
    state = tmp_path / "state"
    state.mkdir()
    async with await Journal.open(state / "fleet.db") as journal:
        await journal.trigger(
            NewRun(
                run_id="r1", persona="qa-mine", key="r1", platform="d", trigger="t", rung="observe", budget={}
            )
        )
        await journal.finish("r1", "done")
        data = {"claim": {"title": EVIL, "review": True, "probe": PROBE.model_dump(mode="json")}}
        for name, more in (("0123456789ab", data), ("ffff456789ab", {})):
            row = FindingRow(
                run_id="r1",
                fingerprint=name,
                state="unverified",
                persona="qa-mine",
                title=EVIL,
                severity="high",
                confirmed=3,
                tries=3,
                data=more,
            )
            await journal.add_finding(row)
    (tmp_path / "qa-mine.md").write_text(TEXT)
    return state


def fleet(state: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_fleet(
        *("items", *words),
        timeout=60,
        env={"PATH": os.environ["PATH"], "HOME": str(state), "STATE_DIRECTORY": str(state)},
    )


def adopt(state: Path, *words: str, name: str = "0123") -> subprocess.CompletedProcess[str]:
    return fleet(state, "adopt", name, "--into", str(state.parent / "qa-mine.md"), *words)


async def test_an_adopted_claim_is_a_probe_of_the_persona(state: Path) -> None:
    path = state.parent / "qa-mine.md"
    path.chmod(0o640)
    planned = json.loads(adopt(state, "--dry-run", "--json").stdout)
    assert (planned["written"], path.read_text()) == (False, TEXT)
    said = adopt(state, "--reason", "I saw it myself")
    assert said.returncode == 0, said.stderr
    assert "\x7f" not in said.stdout
    assert "\u202e" not in said.stdout
    loaded = load(path)
    assert loaded.persona.probe[-1] == PROBE
    assert [probe.id for probe in loaded.persona.probe] == ["front-page", "x-0123456789ab"]
    assert loaded.body == "You are qa-mine.\n+++\nThis line is no fence.\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(one.name for one in path.parent.iterdir()) == ["qa-mine.md", "state"]
    record = (state / NAME).read_text()
    assert record.startswith("## D1 - claim 0123456789ab adopted (turn 0, ")
    assert "as probe x-0123456789ab of qa-mine.md" in record
    assert "Why:      I saw it myself" in record
    assert "Reversal: remove [[probe]] x-0123456789ab from qa-mine.md" in record


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
async def test_the_file_stays_whose_it_was_and_its_line_ends_what_they_were(state: Path) -> None:
    path = state.parent / "qa-mine.md"
    path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    path.chmod(0o640)
    os.chown(path, 0, 64_999)
    assert adopt(state).returncode == 0
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (0, 64_999, 0o640)
    text = path.read_bytes().decode()
    head, _, body = text.partition('[[probe]]\nid = "x-')
    assert head == TEXT.partition("+++\nYou")[0].replace("\n", "\r\n") + "\n"
    assert body.endswith("+++\r\nYou are qa-mine.\r\n+++\r\nThis line is no fence.\r\n")
    assert load(path).persona.probe[-1] == PROBE


async def test_an_adopted_probe_is_proven_like_any_other(state: Path, tmp_path: Path) -> None:
    adopt(state)
    probe = load(state.parent / "qa-mine.md").persona.probe[-1]

    async def answer(_tool: str, _args: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "outcome": "accepted", "valid": True, "has_entry": False}

    one = PLATFORM.model_copy(update={"compiler": CompilerSection(command=("cc",))})
    async with seated(tmp_path, persona(probe, tools=["qa_compile"]), answer=answer, platform=one) as table:
        assert await table.drive() == ""
        await table.drive.runner.prove_raised()
        (row,) = await table.world.journal.findings(RUN)
        assert (row.state, row.confirmed, row.tries, row.surface) == ("confirmed", 3, 3, "compiler")
        assert row.title.endswith(" is wrong: the compiler: accepted, no entry point")
        assert "is wrong; a right one was expected" in row.envelope


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("tools = ", "limit = 3\ntools = ", "unknown key"),
        ('"qa_fetch", "qa_compile"', '"qa_fetch"', "not granted"),
        ("front-page", "x-0123456789ab", "x-0123456789ab"),
        ("+++\nYou", "++\nYou", "qa-mine.md"),
    ],
)
async def test_a_file_that_would_not_be_valid_stays_as_it_is(
    state: Path, old: str, new: str, words: str
) -> None:
    path = state.parent / "qa-mine.md"
    path.write_text(TEXT.replace(old, new, 1))
    said = adopt(state)
    assert said.returncode == 3, said.stderr
    assert words in said.stderr
    assert path.read_text() == TEXT.replace(old, new, 1)
    assert not (state / NAME).exists()
    assert sorted(one.name for one in path.parent.iterdir()) == ["qa-mine.md", "state"]


async def test_what_waits_for_nobody_is_not_adopted(state: Path) -> None:
    said = adopt(state, name="ffff")
    assert said.returncode == 2
    assert "is unverified: it needs no decision" in said.stderr
    said = fleet(state, "adopt", "0123", "--into", str(state / "nowhere.md"))
    assert (said.returncode, "nowhere.md" in said.stderr) == (3, True), said.stderr
    assert "no persona 'qa-mine'" in fleet(state, "adopt", "0123").stderr  # its file is not in personas/
    assert not (state / NAME).exists()


async def test_who_dismisses_an_adopted_claim_is_told_that_its_probe_remains(state: Path) -> None:
    path = state.parent / "qa-mine.md"
    assert adopt(state).returncode == 0
    said = fleet(state, "dismiss", "0123", "--reason", "no", "--dry-run")
    assert f"its probe x-0123456789ab is still in {path}" in said.stderr
    path.write_text(TEXT)
    assert "remains" not in fleet(state, "dismiss", "0123", "--reason", "no").stderr


async def test_a_dismissed_claim_waits_no_longer(state: Path) -> None:
    assert "would be dismissed" in fleet(state, "dismiss", "0123", "--reason", "no", "--dry-run").stdout
    said = fleet(state, "dismiss", "0123", "--reason", "418 is for teapots", "--json")
    told = {"fingerprint": "0123456789ab", "run": "r1", "dismissed": True, "probe_in": ""}
    assert json.loads(said.stdout) == told
    async with await Journal.open(state / "fleet.db") as journal:
        states = {row.fingerprint: row.state for row in await journal.findings("r1")}
    assert states == {"0123456789ab": "dropped", "ffff456789ab": "unverified"}
    assert "418 is for teapots" in (state / NAME).read_text()
    again = fleet(state, "dismiss", "0123", "--reason", "no")
    assert (again.returncode, "is dropped: it needs no decision" in again.stderr) == (2, True)


async def test_a_finding_without_a_claim_is_dismissed_as_an_item(state: Path) -> None:
    assert fleet(state, "dismiss", "0123").returncode == 2  # a reason is required
    refused = fleet(state, "dismiss", "0123", "--reason", "no", "--publish")
    assert (refused.returncode, "a driver's claim is not on the log" in refused.stderr) == (2, True)
    said = json.loads(fleet(state, "dismiss", "ffff", "--reason", "known", "--for", "ever", "--json").stdout)
    assert (said["item"], said["until"], said["new"]) == ("ffff456789ab", "", True)
    async with await Journal.open(state / "fleet.db") as journal:
        (row,) = await journal.decisions(said["platform"])
        assert {one.state for one in await journal.findings("r1")} == {"unverified"}
    assert (row.kind, row.reason, row.name) == ("dismiss", "known", said["name"])


async def test_a_null_is_said_to_be_more_than_a_persona_file_can_hold(state: Path) -> None:
    probe = PROBE.model_copy(update={"steps": (Step(tool="qa_fetch", args={"url": "{site}", "x": None}),)})
    async with await Journal.open(state / "fleet.db") as journal:
        data = {"claim": {"review": True, "probe": probe.model_dump(mode="json")}}
        await journal.set_finding("r1", "0123456789ab", data=data)
    said = adopt(state)
    assert (said.returncode, "contain a null" in said.stderr) == (2, True)
