"""A task and its checked patch, as publishers and the texts of a proposal get them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fleet.config.propose import GitHubSection, ProposeSection, RegressionSection, RepositorySection
from fleet.config.propose import TreeCompilerSection as Compiler
from fleet.findings.repro import ReproCall
from fleet.fix.model import CheckedPatch, FixTask, GateReport, GateStep, RegressionTest, StepResult
from fleet.triage.items.worklist import WorklistItem

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
TITLE = "the compiler panics on an empty enum"
CALLS = (ReproCall("qa_compile", {"source": "enum E{}"}),)
TEST = RegressionTest(f"tests/test_{FINGERPRINT}.py", "def test_it():\n    assert True\n", "QA-1")


def github(api: str = "https://api.github.com", **more: Any) -> GitHubSection:
    return GitHubSection(repository="acme/widget", api=api, **more)


def repository(**more: Any) -> RepositorySection:
    return RepositorySection(
        url=more.pop("url", "https://github.com/acme/widget.git"),
        surfaces=("compiler",),
        test=("make", "test"),
        paths=("src/**",),
        regression=RegressionSection(
            path="tests/test_{item}.py", template="pytest-compiler", command=("pytest",)
        ),
        compiler=Compiler(command=("./cc",)),
        **more,
    )


def item(**more: Any) -> WorklistItem:
    made = WorklistItem(
        rank=1,
        fingerprint=FINGERPRINT,
        severity="high",
        surface="compiler",
        title=TITLE,
        count=3,
        verified=True,
        repro='qa_compile(source="enum E{}")',
        evidence="e" * 64,
        score=9.5,
        why="severity high",
        first_seen="2026-11-01T10:00:00Z",
        last_seen="2026-11-20T10:00:00Z",
        senders=("0x" + "ab" * 20,),
        trusted=True,
        proof="verified",
        state="confirmed",
        entry=17,
        epoch=1,
    )
    return replace(made, **more)


def task(
    *, on: RepositorySection | None = None, calls: tuple[ReproCall, ...] = CALLS, **more: Any
) -> FixTask:
    return FixTask(
        item=item(**more),
        calls=calls,
        name="widget",
        repository=on or repository(),
        limits=ProposeSection(),
        run="r-1",
        branch=f"qa-fleet/{FINGERPRINT}",
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
