"""Doubles of the ports of a proposal, in memory; they pass the conformance suite of the real ones."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from fleet.errors import FixError
from fleet.findings.repro import ReproCall
from fleet.fix.model import (
    CheckedPatch,
    CommandEnd,
    FixAttempt,
    FixTask,
    GateReport,
    Published,
    RegressionTest,
    StepResult,
    TrackerHit,
)
from fleet.fix.parts import ProposalTexts
from fleet.fix.ports import (
    Ask,
    FixBudget,
    Fixer,
    PublisherPort,
    TrackerPort,
    TreeCommand,
    TreeJailPort,
    TreePort,
    Trees,
    by_hand,
)
from fleet.runs.proof.item_questions import ItemQuestion

BASE = "b" * 40


@dataclass
class MemoryPublisher:
    """A PublisherPort in memory: what persons see of it is in `branches`, `pushes` and `opened` count acts.

    `before` is called with the name of each act that is about to happen, `after` once it has.
    """

    branches: dict[str, Published] = field(default_factory=dict)
    bodies: dict[str, tuple[str, str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    answers: dict[int, Sequence[StepResult]] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)
    pushes: int = 0
    opened: int = 0
    before: Callable[[str], None] = lambda act: None
    after: Callable[[str], None] = lambda act: None

    ask: Ask = by_hand

    async def find(self, task: FixTask) -> Published | None:
        return self.branches.get(task.branch)

    async def push(self, task: FixTask, patch: CheckedPatch, message: str) -> Published:
        await self.ask()
        self.before("push")
        if task.branch in self.foreign:
            raise FixError(f"branch {task.branch} is not ours")
        head = hashlib.sha1(
            b"\0".join((patch.base.encode(), patch.text, patch.test.text.encode()))
        ).hexdigest()
        known = self.branches.get(task.branch)
        if known is None or known.head != head:
            self.pushes += 1
            self.branches[task.branch] = Published(task.branch, task.branch, head, "pushed")
        self.after("push")
        return self.branches[task.branch]

    async def open(self, task: FixTask, title: str, body: str) -> Published:
        await self.ask()
        self.before("open")
        known = self.branches.get(task.branch)
        if known is None:
            raise FixError(f"there is no branch {task.branch}")
        if known.state == "pushed":
            self.opened += 1
            known = replace(known, ref=f"https://example.org/pull/{self.opened}", state="open")
            self.branches[task.branch], self.bodies[task.branch] = known, (title, body)
        self.after("open")
        return known

    async def close(self, task: FixTask, why: str) -> Published | None:
        await self.ask()
        self.before("close")
        known = self.branches.get(task.branch)
        if known is None or known.state in ("merged", "closed"):
            return known
        self.branches[task.branch] = replace(known, state="closed")
        self.reasons[task.branch] = why
        return self.branches[task.branch]

    async def answer(self, task: FixTask, comment: int, steps: Sequence[StepResult]) -> str:
        self.answers.setdefault(comment, steps)
        return f"{self.branches[task.branch].ref}#{comment}"

    def turn(self, branch: str, state: Literal["merged", "closed"]) -> None:
        """What a person does with a draft."""
        self.branches[branch] = replace(self.branches[branch], state=state)


@dataclass
class MemoryTracker:
    """A TrackerPort that knows these hits."""

    hits: Sequence[TrackerHit] = ()

    async def search(self, task: FixTask) -> Sequence[TrackerHit]:
        return self.hits


@dataclass
class MemoryTree:
    """A TreePort over a plain folder; its diff is what a test has put into `patch`."""

    path: Path
    base: str = BASE
    patch: bytes = b""

    async def put(self, path: str, text: bytes) -> None:
        (self.path / path).parent.mkdir(parents=True, exist_ok=True)
        (self.path / path).write_bytes(text)

    async def diff(self, *, without: Sequence[str] = ()) -> bytes:
        return self.patch

    async def apply(self, patch: bytes) -> None:
        self.patch = patch

    async def restore(self) -> None:
        self.patch = b""


@dataclass
class MemoryTrees:
    """Trees that are plain folders beneath `folder`, with these recent commits."""

    folder: Path
    recent: Sequence[TrackerHit] = ()

    @asynccontextmanager
    async def open(self, task: FixTask) -> AsyncIterator[TreePort]:
        path = self.folder / "tree"
        path.mkdir(parents=True, exist_ok=True)
        yield MemoryTree(path)

    async def commits(self, task: FixTask, words: Sequence[str]) -> Sequence[TrackerHit]:
        return self.recent


@dataclass
class MemoryTreeJails:
    """A TreeJailPort in which every command exits 0 and every call answers with an empty result."""

    commands: list[Sequence[str]] = field(default_factory=list)

    async def run(self, tree: Path, command: TreeCommand) -> CommandEnd:
        self.commands.append(command.argv)
        return CommandEnd(0, "exited", b"", b"", 0.0)

    async def ask(
        self, tree: Path, task: FixTask, calls: Sequence[ReproCall], *, elsewhere: bool = False
    ) -> Sequence[Mapping[str, Any]]:
        return [{} for _ in calls]


class MemoryFixer:
    """A Fixer that changes nothing."""

    name = "none"

    async def fix(
        self, task: FixTask, tree: TreePort, jails: TreeJailPort, failed: Sequence[StepResult]
    ) -> FixAttempt:
        return FixAttempt("nothing was changed")


def patch_of(task: FixTask) -> CheckedPatch:
    """A patch of one line and its test."""
    test = RegressionTest(f"tests/test_{task.item.fingerprint}.py", "def test() -> None: ...\n", "seen")
    return CheckedPatch(BASE, b"--- a\n+++ b\n", test, ("src/a.py",), 1, 1)


@dataclass
class MemoryParts:
    """FixParts in memory. `steps` are what the gate reports; if all passed, so does the patch."""

    publisher_: MemoryPublisher = field(default_factory=MemoryPublisher)
    tracker_: MemoryTracker = field(default_factory=MemoryTracker)
    recent: Sequence[TrackerHit] = ()
    steps: Sequence[StepResult] = ()
    fails: Exception | None = None
    jails_: MemoryTreeJails = field(default_factory=MemoryTreeJails)

    def publisher(self, task: FixTask, ask: Ask) -> PublisherPort:
        self.publisher_.ask = ask
        return self.publisher_

    def tracker(self, task: FixTask) -> TrackerPort:
        return self.tracker_

    def trees(self, task: FixTask, folder: Path) -> Trees:
        return MemoryTrees(folder, self.recent)

    @asynccontextmanager
    async def jails(self, task: FixTask, folder: Path) -> AsyncIterator[TreeJailPort]:
        yield self.jails_

    def fixer(self, task: FixTask, budget: FixBudget) -> Fixer:
        return MemoryFixer()

    def texts(self, task: FixTask, report: GateReport, patch: CheckedPatch) -> ProposalTexts:
        title = f"qa-fleet: {task.item.title}"
        return ProposalTexts(title, f"posted by {task.sender} at {task.posted}", title)

    async def gate(
        self,
        task: FixTask,
        *,
        trees: Trees,
        jails: TreeJailPort,
        fixer: Fixer,
        note: Callable[[StepResult], None],
        question: ItemQuestion | None = None,
    ) -> GateReport:
        async with trees.open(task) as tree:
            for step in self.steps:
                await jails.run(tree.path, TreeCommand(("true",), deadline_s=1.0))
                note(step)
            if self.fails is not None:
                raise self.fails
        passed = all(step.passed for step in self.steps)
        return GateReport(tuple(self.steps), patch_of(task) if passed else None, 1)
