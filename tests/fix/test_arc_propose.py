"""The rung `propose` as a user meets it: found, posted, ranked, refused, permitted, proposed, merged, back.

Minutes: `make fix` (QA_FIX_FULL=1). `make test` has the refusals (tests/cli/test_propose_command.py), the
life of a proposal (test_propose.py) and the gate on the same repository (test_gate.py).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from anyio import to_thread

from fleet.clock import SystemClock
from fleet.fix.model import GateStep
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from tests.fix.arc import PANIC, ProposeArc, propose_arc
from tests.fix.git_http import serve_git
from tests.fix.github_server import REPOSITORY, TOKEN, GitHubServer, served
from tests.fix.repositories import git

LONG = bool(os.environ.get("QA_FIX_FULL"))
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.devnet,
    pytest.mark.jail,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not LONG, reason="set QA_FIX_FULL=1: minutes (make fix)"),
]
TITLE = "the compiler ends in a panic (status 101): thread 'main' panicked at slice_str:48"


def changed(arc: ProposeArc, branch: str) -> list[str]:
    """The files that a branch of the remote changes."""
    return git(arc.bare, "diff", "--name-only", f"main...{branch}").split()


async def test_an_item_becomes_a_draft_of_its_failing_test(tmp_path: Path) -> None:
    async with propose_arc(tmp_path) as arc:
        arc.write(fixer="none")
        arc.find()
        write_dial(arc.at.state, Rung.PROPOSE, "a test", "test", SystemClock())
        arc.allow(arc.item)
        made = arc.does("propose", arc.item)
        branch = f"qa-fleet/{arc.item}"
        assert (made["persona"], made["outcome"], made["detail"]) == ("qa-fix", "done", f"open: {branch}")
        assert changed(arc, branch) == [f"tests/test_qa_{arc.item}.py"]
        request = (arc.at.state / "proposals" / "devnet" / branch / "request.txt").read_text()
        assert TITLE in request
        (entry,) = [one for one in await arc.log() if one.title == f"proposed: {TITLE}"]
        assert branch in entry.body


async def test_the_whole_arc(tmp_path: Path) -> None:
    """None of it is done by hand but what a person does: dial, token, merge, deployment."""
    async with propose_arc(tmp_path) as arc:
        arc.find()
        is_refused(arc)
        branch = f"qa-fleet/{arc.item}"
        made = arc.does("propose", arc.item)
        assert made["detail"] == f"open: {branch}"
        is_proposed(arc, branch)
        arc.merge(branch)
        arc.deploy()
        assert "1 clean" in arc.does("run", "qa-retest")["detail"]
        said = arc.does("run", "qa-triage")["detail"]
        assert said == f"0 items; proposal {made['run']} of {arc.item}: merged {branch}"
        assert arc.listed() == []
        (item,) = arc.closed()
        assert (item["fingerprint"], item["state"]) == (arc.item, "verified-fixed")
        assert (item["proposal"]["state"], item["proposal"]["ref"]) == ("merged", branch)
        assert arc.does("propose", "list") == []
        assert [one["state"] for one in arc.does("propose", "list", "--all")] == ["merged"]
        comes_back(arc)
        assert [f"{one.severity} {one.title}" for one in await arc.log()] == [
            f"high {TITLE}",
            "meta worklist changed: 1 open, 1 proven",
            f"info proposed: {TITLE}",
            f"info verified-fixed: {TITLE}",
            "meta worklist changed: 0 open, 0 proven",
            f"high {TITLE}",
            "meta worklist changed: 1 open, 1 proven",
        ]


def is_refused(arc: ProposeArc) -> None:
    """Each precondition in turn, by exit status and remedy; at the end none refuses."""
    refused(arc, "dial", f"{Rung.PROPOSE}")
    arc.turn("propose")
    refused(arc, "token", f"umask 022 && echo allow > {arc.at.config}/allow-git/{arc.item}")
    arc.allow(arc.item)
    assert arc.fleet("stop").code == 0
    refused(arc, "stop", "fleet resume")
    assert arc.fleet("resume").code == 0
    arc.write(surfaces=["ux"])
    refused(arc, "repository", "add [repositories.NAME] to fleet.toml")
    arc.write()
    plan = arc.does("propose", arc.item, "--dry-run")
    assert (plan["rule"], plan["repository"], plan["base"], plan["fixer"]) == (
        "",
        "devnet",
        "main",
        "command",
    )
    assert {one["why"] for one in plan["rules"]} == {""}
    assert arc.does("propose", "list", "--all") == []
    assert not arc.head(f"qa-fleet/{arc.item}")
    assert not (arc.at.state / "proposals").exists()


def refused(arc: ProposeArc, rule: str, remedy: str) -> None:
    said = arc.fleet("propose", arc.item)
    assert said.code == 5, said
    assert said.err.startswith(f"fleet: {rule}: "), said.err
    assert remedy in said.err


def is_proposed(arc: ProposeArc, branch: str) -> None:
    """The branch, the request, the commands that show it, and the list."""
    assert changed(arc, branch) == [PANIC.file, f"tests/test_qa_{arc.item}.py"]
    (row,) = arc.does("propose", "list")
    assert (row["item"], row["state"], row["head"]) == (arc.item, "open", arc.head(branch))
    shown = arc.fleet("propose", "show", arc.item)
    assert shown.code == 0
    request = (arc.at.state / "proposals" / "devnet" / branch / "request.txt").read_text()
    evidence = arc.listed()[0]["evidence"]
    for text in (shown.out, request):
        assert f"sha256:{evidence}" in text
        assert "[redacted" not in text
        assert all(f"| {step} |" in text for step in GateStep)
    refused(arc, "slots", "fleet propose list")
    arc.does("run", "qa-triage")
    (item,) = arc.listed()
    assert (item["state"], item["proposal"]["state"], item["proposal"]["ref"]) == ("proposed", "open", branch)
    assert branch in arc.fleet("items", "show", arc.item).out + arc.fleet("items", "show", arc.item).out


def comes_back(arc: ProposeArc) -> None:
    """Broken again: a regression, which the repository's own tests show by now."""
    arc.seed()
    arc.deploy()
    arc.does("run", "qa-fuzz", "--probe", "compiler-panic", code=1)
    arc.does("run", "qa-triage")
    (item,) = arc.listed()
    assert (item["fingerprint"], item["state"], item["regression"]) == (arc.item, "regression", True)
    said = arc.does("run", "qa-fix")["detail"]
    assert said.startswith("held at test-fails: its own tests fail before any change"), said


async def test_a_draft_on_github(tmp_path: Path) -> None:
    """The persona takes the best item; by git on http and the REST API. Withdrawn by a person at the end."""
    async with propose_arc(tmp_path) as arc:
        with serve_git(tmp_path, token=TOKEN) as http:
            async with served(GitHubServer(bare=arc.bare)) as server:
                key = arc.at.state / "keys" / "github.devnet"
                key.write_text(TOKEN)
                key.chmod(0o600)
                github = {"repository": REPOSITORY, "api": server.url}
                arc.write(github=github, url=f"{http.url}/remote.git", reviewers=["alice"])
                await to_thread.run_sync(lambda: on_github(arc, server))


def on_github(arc: ProposeArc, server: GitHubServer) -> None:
    arc.find()
    said = arc.does("run", "qa-fix", code=5)["detail"]
    assert said.startswith("dial: a proposal needs propose; the dial says observe")
    arc.turn("propose")
    said = arc.does("run", "qa-fix", code=5)["detail"]
    assert said == f"token: of 1 open items none may be fixed; {arc.item}: allow-git: missing"
    arc.allow(arc.item)
    made = arc.does("run", "qa-fix")
    (pull,) = server.pulls.values()
    assert made["detail"] == f"open: {pull['html_url']}"
    assert (pull["draft"], pull["state"], pull["base"]["ref"]) == (True, "open", "main")
    assert [one["name"] for one in pull["labels"]] == ["qa-fleet"]
    assert [one["login"] for one in pull["requested_reviewers"]] == ["alice"]
    assert all(f"| {step} |" in pull["body"] for step in GateStep)
    assert "[redacted" not in pull["body"]
    assert changed(arc, f"qa-fleet/{arc.item}") == [PANIC.file, f"tests/test_qa_{arc.item}.py"]
    arc.does("propose", "withdraw", arc.item, "--reason", "fixed by hand")
    assert pull["state"] == "closed"
    assert not arc.head(f"qa-fleet/{arc.item}")
    assert (server.wrong, server.outside) == ([], [])
    assert TOKEN not in json.dumps([pull["body"], server.comments])
