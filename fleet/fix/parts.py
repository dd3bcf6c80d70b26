"""What a proposal is made with: the ports of one task, and the world that it happens in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fleet.config import FleetConfig
from fleet.config.propose import RepositorySection
from fleet.events.model import Event
from fleet.findings.redact import Redactor
from fleet.fix.model import CheckedPatch, FixTask, GateReport, StepResult
from fleet.fix.ports import Ask, FixBudget, Fixer, PublisherPort, TrackerPort, TreeJailPort, Trees
from fleet.gate.budget import Ledger
from fleet.runs.proof.item_questions import ItemQuestion
from fleet.triage.triage_pass import TriageWorld

WORK = "fix"
"""Folder of a run in which its work trees are, and whatever else a proposal needs on disk."""


@dataclass(frozen=True, slots=True)
class ProposalTexts:
    """What a publisher is given besides the patch."""

    title: str
    body: str
    message: str


class RunEvents(Protocol):
    """The event stream of a run."""

    def emit(self, event: Event, /) -> Any: ...  # noqa: ANN401  a port: its result is not used


class FixRun(Protocol):
    """The open run that proposes: its id, what pays, and where its events go."""

    @property
    def run(self) -> str: ...
    @property
    def persona(self) -> str: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def stream(self) -> RunEvents: ...


class FixParts(Protocol):
    """Makes the ports of one task. Only a publisher and a tracker hold a token."""

    def publisher(self, task: FixTask, ask: Ask) -> PublisherPort:
        """`ask` is asked right before each act that changes a server."""

    def tracker(self, task: FixTask) -> TrackerPort: ...
    def trees(self, task: FixTask, folder: Path) -> Trees:
        """Work trees beneath `folder`, which is removed at the end however the run ends."""

    def jails(self, task: FixTask, folder: Path) -> AbstractAsyncContextManager[TreeJailPort]: ...
    def fixer(self, task: FixTask, budget: FixBudget) -> Fixer: ...
    def texts(self, task: FixTask, report: GateReport, patch: CheckedPatch) -> ProposalTexts: ...
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
        """All steps in order, over all rounds; `note` gets each step as it ends. `question` is how the
        platform's own re-runs ask for the item, where that is known."""


class RunOwners(Protocol):
    """Whether this process still owns a run."""

    async def mine(self, run: str, /) -> bool: ...


class FixWorld(TriageWorld, Protocol):
    """The part of a fleet's context that proposals need, besides what triage needs."""

    @property
    def source(self) -> RunOwners: ...
    @property
    def redactor(self) -> Redactor: ...
    @property
    def item(self) -> str: ...
    def folder(self, run: str) -> Path: ...


def repository_for(config: FleetConfig, surface: str) -> tuple[str, RepositorySection] | None:
    """The first configured repository that fixes items of this surface, by name."""
    return next(
        ((name, one) for name, one in sorted(config.repositories.items()) if surface in one.surfaces), None
    )
