"""The types of a proposal: its task, its patch, the gate's steps and what they found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from fleet.config.propose import ProposeSection, RepositorySection
from fleet.findings.repro import ReproCall
from fleet.triage.items.worklist import WorklistItem


class GateStep(StrEnum):
    """The steps of the fix gate, strictly in this order."""

    REPRODUCE = "reproduce"  # the item shows on a build of the base
    TEST_FAILS = "test-fails"  # the regression test fails on the base, for the item's reason
    LIMITS = "limits"  # the patch keeps to its paths and sizes; checked again at the end
    TEST_PASSES = "test-passes"  # with the patch
    TEST_FAILS_AGAIN = "test-fails-again"  # with the patch reverted
    OWN_TESTS = "own-tests"  # the repository's own test command passes with the patch
    VARIANTS = "variants"  # the repro and its neighbours are clean, and a benign control still answers


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step: whether it passed, in words, and what was seen (JSON; redacted and cleaned by the writer)."""

    step: GateStep
    passed: bool
    words: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FixTask:
    """What is to be fixed, and where. `sender` and `posted` are who posted the item's entry, and when
    (ISO; "" for an item that is on no log)."""

    item: WorklistItem
    calls: tuple[ReproCall, ...]
    name: str  # of the repository in fleet.toml
    repository: RepositorySection
    limits: ProposeSection
    run: str
    branch: str  # of the proposal: qa-fleet/<fingerprint>
    sender: str = ""
    posted: str = ""


@dataclass(frozen=True, slots=True)
class RegressionTest:
    """A new file: where, its text, and the line that its failure must print."""

    path: str
    text: str
    marker: str


@dataclass(frozen=True, slots=True)
class CheckedPatch:
    """A patch that passed every limit: the only thing of a proposer that a publisher sees.

    `text` is `git diff --binary --full-index --no-renames` against `base` (a commit), the regression test not
    included; `test` is ours. `files` are the paths that it changes, `added` and `removed` lines. An empty
    patch is that of the fixer `none`: the proposal is then the failing test alone.
    """

    base: str
    text: bytes
    test: RegressionTest
    files: tuple[str, ...]
    added: int
    removed: int

    @property
    def fixes(self) -> bool:
        return bool(self.text)


@dataclass(frozen=True, slots=True)
class FixAttempt:
    """What a fixer says that it did: words for people, never believed."""

    words: str
    transcript: str = ""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command in a jail ended: its status, or "timeout", "flood", "signal N", "lost" in `how`."""

    code: int
    how: Literal["exited", "signaled", "timeout", "flood", "lost"]
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def passed(self) -> bool:
        return self.how == "exited" and self.code == 0


@dataclass(frozen=True, slots=True)
class GateReport:
    """All steps of one proposal, over all rounds; `patch` is None when the gate held."""

    steps: tuple[StepResult, ...]
    patch: CheckedPatch | None
    rounds: int = 0

    @property
    def held_at(self) -> StepResult | None:
        """The step that the last round failed at."""
        return None if self.patch is not None or not self.steps else self.steps[-1]


@dataclass(frozen=True, slots=True)
class Published:
    """A proposal as its publisher finds it. `ref` names it (URL of the pull request, or the branch), `head`
    is the commit of its branch, `ours` whether that was made by the task, `conflicts` whether its changes do
    not fit the base as it is now."""

    ref: str
    branch: str
    head: str
    state: Literal["pushed", "open", "merged", "closed"]
    ours: bool = True
    conflicts: bool = False


@dataclass(frozen=True, slots=True)
class TrackerHit:
    """An issue, a request or a recent commit about the same defect: to be linked, not repeated."""

    kind: Literal["issue", "pull-request", "commit"]
    ref: str
    title: str
    state: Literal["open", "closed", "merged"]
    why: str
