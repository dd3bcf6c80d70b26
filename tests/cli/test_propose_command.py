"""`fleet propose` and `fleet propose` over a list on disk: each refusal with its status and its remedy."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner, Result

from fleet.chain.keys import create_key
from fleet.cli import proposals, propose
from fleet.clock import SystemClock
from fleet.errors import ConfigError, Refused, UsageError
from fleet.fix.permission.allow_git import FOLDER
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.gate.stop import stop
from fleet.store.journal import Journal
from fleet.store.rows import UNLIKE, ProposalRow, ProposalState
from fleet.triage.outputs.document import LogPosition, WorklistHeader
from fleet.triage.outputs.files import save
from tests.fix.tasks import FP, item

PROFILE = """
name = "p"
[chain]
rpc = "http://127.0.0.1:1"
id = 1
diamond = "0x1111111111111111111111111111111111111111"
"""
FLEET = """
platform = "p"
[repositories.sample]
url = "/nowhere"
surfaces = ["compiler"]
test = ["true"]
paths = ["src/**"]
regression = { path = "tests/test_{item}.py", template = "pytest-compiler", command = ["true"] }
compiler = { command = ["true"] }
"""
HEADER = WorklistHeader(platform="p", as_of=LogPosition(0, 1, "2026-11-21T22:51:10Z"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fleet at `propose`, with a proven item, a repository and a token: nothing refuses."""
    state, config = tmp_path / "state", tmp_path / "config"
    for path in (state, state / "keys", config, config / "platforms"):
        path.mkdir(mode=0o700)
    create_key(state / "keys" / "identity")
    (config / "platforms" / "p.toml").write_text(PROFILE)
    (config / "fleet.toml").write_text(FLEET)
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(config))
    save(state, (item(),), HEADER)
    write_dial(state, Rung.PROPOSE, "a test", "t", SystemClock())
    (config / FOLDER).mkdir(mode=0o755)
    token(tmp_path).write_text("allow\n")
    token(tmp_path).chmod(0o644)
    return tmp_path


def token(place: Path) -> Path:
    return place / "config" / FOLDER / FP


def call(*words: str, app: Any = propose.app) -> Result:
    return CliRunner().invoke(app, list(words))


def unproven(place: Path) -> None:
    save(place / "state", (replace(item(), proof="unverified", confirmed=False),), HEADER)


def dismissed(place: Path) -> None:
    save(place / "state", (item(rank=0, state="dismissed"),), HEADER)


def of_a_stranger(place: Path) -> None:
    save(place / "state", (item(trusted=False),), HEADER)


def unreadable(place: Path) -> None:
    save(place / "state", (item(repro=""),), HEADER)


def of_a_chain(place: Path) -> None:
    save(place / "state", (item(repro='qa_chain(function="totalNames")'),), HEADER)


def without_repository(place: Path) -> None:
    (place / "config" / "fleet.toml").write_text('platform = "p"\n')


def begun(place: Path) -> None:
    """An open proposal of the item in the journal."""
    row = ProposalRow(proposal_id="r1", platform="p", item=FP, repository="sample", branch=f"qa-fleet/{FP}")

    async def write() -> None:
        async with await Journal.open(place / "state" / "fleet.db", keeper="") as journal:
            assert await journal.begin_proposal(row, per_item=1, most=3) == ""

    anyio.run(write)


CASES: dict[str, tuple[Callable[[Path], object], str]] = {
    "stop": (lambda place: stop(place / "state", "t", "a test", SystemClock()), "fleet resume"),
    "dial": (
        lambda place: write_dial(place / "state", Rung.EXERCISE, "a test", "t", SystemClock()),
        'fleet dial propose --reason "…"',
    ),
    "item": (of_a_stranger, f"fleet items show {FP}"),
    "held": (dismissed, f"fleet items reopen {FP}"),
    "proof": (unproven, f"fleet items show {FP}"),
    "repro": (unreadable, f"fleet items show {FP}"),
    "repository": (without_repository, "add [repositories.NAME] to fleet.toml"),
    "build": (of_a_chain, f"fleet items fixed {FP}"),
    "slots": (begun, "fleet propose list"),
    "token": (lambda place: token(place).unlink(), f"echo allow > {{place}}/config/{FOLDER}/{FP}"),
}


@pytest.mark.parametrize("rule", CASES)
def test_a_refusal_says_what_a_person_can_do(place: Path, rule: str) -> None:
    breaks, remedy = CASES[rule]
    breaks(place)
    said = call(FP)
    assert isinstance(said.exception, Refused), said.output
    assert (said.exception.rule, said.exception.exit_code) == (rule, 5)
    assert remedy.format(place=place) in said.exception.remedy
    plan = call(FP, "--dry-run", "--json")
    assert (plan.exit_code, json.loads(plan.stdout)["rule"]) == (5, rule)


def test_a_dry_run_does_nothing(place: Path) -> None:
    before = written(place)
    said = call(FP[:6], "--dry-run", "--json")
    assert said.exit_code == 0, said.output
    plan = json.loads(said.stdout)
    assert (plan["rule"], plan["item"], plan["branch"]) == ("", FP, f"qa-fleet/{FP}")
    assert (plan["repository"], plan["base"], plan["fixer"]) == ("sample", "main", "none")
    assert call(FP, "--dry-run").stdout.splitlines()[-1].startswith("would search the tracker")
    assert written(place) == before


def test_what_is_another_defect_is_recorded_and_only_when_a_proposal_is_made(place: Path) -> None:
    url = "https://example.org/issues/7"
    words = (FP, "--not-a-duplicate-of", url, "--not-a-duplicate-of", "5" * 40)
    assert call(*words, "--dry-run").exit_code == 0
    assert kept(place) == {}
    assert isinstance(call(*words).exception, ConfigError)  # this home has no key that signs
    assert list(kept(place)) == [url, "5" * 40]
    assert isinstance(call(FP, "--not-a-duplicate-of", "issue seven").exception, UsageError)


def kept(place: Path) -> Any:
    async def read() -> str | None:
        async with await Journal.open(place / "state" / "fleet.db", keeper="") as journal:
            return await journal.get(f"{UNLIKE}p.{FP}")

    return json.loads(anyio.run(read) or "{}")


def written(place: Path) -> set[str]:
    """The files of the fleet but for its journal, which a reader makes."""
    return {str(one) for one in place.rglob("*") if not one.name.startswith("fleet.db")}


def test_an_item_that_is_not_there_is_a_usage_error(place: Path) -> None:
    error = call("ffffffffffff").exception
    assert isinstance(error, UsageError)
    assert error.remedy == "fleet items"


def test_proposals_are_listed_shown_and_withdrawn(place: Path) -> None:
    assert json.loads(call("list", "--json", app=proposals.app).stdout) == []
    begun(place)
    (row,) = json.loads(call("list", "--json", app=proposals.app).stdout)
    assert (row["proposal_id"], row["item"], row["state"]) == ("r1", FP, "begun")
    assert f"qa-fleet/{FP}" in call("show", FP[:8], app=proposals.app).stdout
    words = ("withdraw", "r1", "--reason", "by hand")
    assert "would be withdrawn" in call(*words, "--dry-run", app=proposals.app).stdout
    assert "is withdrawn" in call(*words, app=proposals.app).stdout
    assert call("list", app=proposals.app).stderr.strip() == "no open proposals"
    (row,) = json.loads(call("list", "--all", "--json", app=proposals.app).stdout)
    assert (row["state"], row["why"].startswith("by hand (")) == ("withdrawn", True)
    again = call(*words, app=proposals.app).exception
    assert isinstance(again, UsageError)
    assert "is withdrawn" in str(again)


def test_show_has_the_steps_the_neighbour_that_failed_and_the_patch(place: Path) -> None:
    begun(place)
    evidence = place / "state" / "runs" / "r1" / "evidence"
    evidence.mkdir(parents=True)
    rows = [
        {"calls": "qa_fetch(url=1)", "base": "shown", "patched": "clean", "words": ""},
        {"calls": "qa_fetch(url=2)", "base": "shown", "patched": "shown", "words": "it answers 500"},
    ]
    control = {"calls": "qa_fetch(url=3)", "base": {"status": 200}, "patched": {"status": 404}}
    failed = {"neighbours": rows, "controls": [control]}
    steps = [
        {"step": "own-tests", "passed": True, "words": "its own tests pass", "evidence": {}},
        {"step": "variants", "passed": False, "words": "neighbours are not clean", "evidence": failed},
    ]
    (evidence / "proposal.json").write_text(json.dumps({"steps": steps}))
    (evidence / "proposal.patch").write_text("--- a/src/a.py\n+++ b/src/a.py\n+x = 1\x1b[2J\n")
    said = call("show", FP, app=proposals.app).stdout
    assert "own-tests: passed: its own tests pass" in said
    assert "variants: failed: neighbours are not clean" in said
    assert "neighbour qa_fetch(url=2): shown on the base, shown with the patch: it answers 500" in said
    assert "url=1" not in said
    assert "control qa_fetch(url=3): {'status': 200} on the base, {'status': 404} with the patch" in said
    assert "+x = 1" in said
    assert "\x1b" not in said
    shown = json.loads(call("show", FP, "--json", app=proposals.app).stdout)
    assert [one["step"] for one in shown["gate"]] == ["own-tests", "variants"]
    assert shown["patch"].startswith("--- a/src/a.py")


def test_only_an_open_draft_has_comments_to_answer(place: Path) -> None:
    begun(place)
    words = ("answer", FP, "--comment", "31")
    error = call(*words, app=proposals.app).exception
    assert isinstance(error, UsageError)
    assert "is begun" in str(error)
    moved(place, "checked", "pushing", "opening", "open")
    assert "comment 31 on  would be answered" in call(*words, "--dry-run", app=proposals.app).stdout
    token(place).unlink()
    refused = call(*words, app=proposals.app).exception
    assert isinstance(refused, Refused)
    assert refused.rule == "token"


def moved(place: Path, *states: ProposalState) -> None:
    async def write() -> None:
        async with await Journal.open(place / "state" / "fleet.db", keeper="") as journal:
            for one in states:
                await journal.move_proposal("r1", one)

    anyio.run(write)


@pytest.mark.parametrize(
    ("outcome", "proposal", "code"),
    [
        ("done", {"state": "open"}, 0),
        ("done", None, 0),  # the tracker has it already
        ("done", {"state": "held"}, 6),
        ("refused", {"state": "held"}, 5),  # a fence closed, not a step of the gate
        ("stopped", {"state": "begun"}, 5),
    ],
)
def test_a_fix_that_was_held_has_its_own_exit_code(
    outcome: str, proposal: dict[str, str] | None, code: int
) -> None:
    data = {"outcome": outcome, "detail": "", "proposal": proposal}
    assert propose.propose_code(data) == code


@pytest.mark.anyio
async def test_the_proposal_of_a_run_is_found_by_its_run(place: Path) -> None:
    row = ProposalRow(proposal_id="r1", platform="p", item=FP, repository="sample", branch="b")
    async with await Journal.open(place / "state" / "fleet.db", keeper="") as journal:
        await journal.begin_proposal(row, per_item=1, most=3)
        assert await propose.proposal_of(journal, "p", "r1") == {"state": "begun", "ref": "", "why": ""}
        assert await propose.proposal_of(journal, "p", "r2") is None


@pytest.mark.parametrize("ident", ["", "zz"])
def test_a_proposal_that_is_not_there_is_a_usage_error(place: Path, ident: str) -> None:
    error = call("show", ident, app=proposals.app).exception
    assert isinstance(error, UsageError)
    assert error.remedy == "fleet propose list"
