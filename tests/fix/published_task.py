"""A task and its checked patch, as publishers and the texts of a proposal get them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fleet.config.propose import GitHubSection, RepositorySection
from fleet.findings.repro import ReproCall
from fleet.fix.model import CheckedPatch, FixTask, GateReport, GateStep, Published, RegressionTest, StepResult
from fleet.fix.ports import by_hand
from fleet.fix.publish.body import commit_message, proposal_body, proposal_title
from fleet.fix.publish.github import GitHubPublisher
from fleet.fix.publish.github_api import GitHubApi
from fleet.fix.publish.token import TokenFile
from tests.fix import tasks
from tests.fix.branches import MemoryBranches
from tests.fix.tasks import CALLS

BASE = "b" * 40
FINGERPRINT = "00c0ffee1234"
DIFF = b"""diff --git a/src/lexer.py b/src/lexer.py
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
--- a/src/lexer.py
+++ b/src/lexer.py
@@ -1 +1 @@
-old
+new
"""
TEST = RegressionTest(f"tests/test_{FINGERPRINT}.py", "def test_it():\n    assert True\n", "QA-1")


def github(api: str = "https://api.github.com", **more: Any) -> GitHubSection:
    return GitHubSection(repository="acme/widget", api=api, **more)


def task(
    *, on: RepositorySection | None = None, calls: tuple[ReproCall, ...] = CALLS, **more: Any
) -> FixTask:
    return tasks.task(
        on or tasks.repository("https://github.com/acme/widget.git"),
        tasks.item(FINGERPRINT, entry=17, epoch=1, **more),
        calls=calls,
        name="widget",
        run="r-1",
        sender="0x" + "ab" * 20,
        posted="2026-11-20T10:05:00Z",
    )


def patch(text: bytes = DIFF, base: str = BASE) -> CheckedPatch:
    files = ("src/lexer.py",) if text else ()
    return CheckedPatch(base, text, TEST, files, len(files), len(files))


def report(checked: CheckedPatch | None = None, words: str = "exit 1: QA-1", **evidence: Any) -> GateReport:
    steps = tuple(StepResult(step, True, words, evidence) for step in GateStep)
    failed = StepResult(GateStep.OWN_TESTS, False, "2 of 40 failed", {"code": 1})
    return GateReport((*steps[:5], failed, *steps[2:]), checked or patch(), rounds=2)


BODY, TEXT = proposal_body(task(), report()), proposal_title(task(), report())
MESSAGE = commit_message(task(), report())


def made(of: FixTask, token: Path, branches: MemoryBranches) -> GitHubPublisher:
    section = of.repository.github
    assert section is not None
    return GitHubPublisher(section, GitHubApi(section, TokenFile(token), deadline_s=5, ask=by_hand), branches)


async def published(publisher: GitHubPublisher, of: FixTask) -> Published:
    await publisher.push(of, patch(), MESSAGE)
    return await publisher.open(of, TEXT, BODY)
