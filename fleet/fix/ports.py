"""The ports of the rung `propose`. Two trust stages: a fixer sees untrusted text and changes a work
tree in jails; a publisher holds a token and sees only a patch that every check has passed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fleet.drivers.desk import Reserved
from fleet.errors import FixError
from fleet.findings.repro import ReproCall
from fleet.fix.model import CheckedPatch, CommandEnd, FixAttempt, FixTask, Published, StepResult, TrackerHit
from fleet.jail.model import Egress, Image, Jail

Ask = Callable[[], Awaitable[None]]
"""Asked right before each act that changes a server; raises when it is not permitted now."""


async def unasked() -> None:
    """Where no guard was given, nothing is permitted."""
    raise FixError("nothing permits this act: no guard was given")


async def by_hand() -> None:
    """A person takes back what is the fleet's own: that is permitted at any rung."""


MakeJail = Callable[[Image], Jail]
"""Makes the jails of one image, with the configured backend."""


class TreePort(Protocol):
    """A work tree without a repository in it: `.git` lies elsewhere, where no jail sees it."""

    @property
    def path(self) -> Path: ...
    @property
    def base(self) -> str:
        """The commit that it was made from."""

    async def put(self, path: str, text: bytes) -> None:
        """Write one file of ours beneath it, through no link."""

    async def diff(self, *, without: Sequence[str] = ()) -> bytes:
        """What differs from the base, new files included; `without` are paths that are left out."""

    async def apply(self, patch: bytes) -> None:
        """Apply a patch to the base; FixError when it does not fit."""

    async def restore(self) -> None:
        """Back to the base, nothing left over."""


class Trees(Protocol):
    """Makes work trees of one repository, each removed at the end however it ends."""

    def open(self, task: FixTask) -> AbstractAsyncContextManager[TreePort]: ...

    async def commits(self, task: FixTask, words: Sequence[str]) -> Sequence[TrackerHit]:
        """Recent commits of the branch whose message names one of these words."""


@dataclass(frozen=True, slots=True)
class TreeCommand:
    """What a jail runs in a work tree. With `keep` the tree gets its changes; `mounts` are read-only at
    /opt/<name>, with `bin` in PATH; `egress` is its only way out."""

    argv: Sequence[str]
    deadline_s: float
    keep: bool = False
    stdin: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, Path] = field(default_factory=dict)
    egress: Egress | None = None


class TreeJailPort(Protocol):
    """Jails over a work tree: `/box` is a copy of it, on a disk of the jail."""

    async def run(self, tree: Path, command: TreeCommand) -> CommandEnd:
        """PatchRefused `disk`: it has filled the disk of its jail; nothing of it is kept."""

    async def ask(
        self, tree: Path, task: FixTask, calls: Sequence[ReproCall], *, elsewhere: bool = False
    ) -> Sequence[Mapping[str, Any]]:
        """The results of these tool calls against the build in this tree: its compiler, its service.

        `elsewhere`: in a jail with other paths and names than those that a fixer has seen.
        """


class FixBudget(Protocol):
    """The run's ledger as a fixer sees it: checked before a model is asked, charged after."""

    def seconds(self) -> float:
        """Seconds that the run has left; RunOver when there are none, or STOP or the dial ends it."""

    async def reserve(self, tokens: int) -> Reserved:
        """Reserve the most that one answer may cost; RunOver when that is not covered."""


class Fixer(Protocol):
    """Changes a work tree so that the regression test passes. What it says is not believed."""

    @property
    def name(self) -> str: ...

    async def fix(
        self, task: FixTask, tree: TreePort, jails: TreeJailPort, failed: Sequence[StepResult]
    ) -> FixAttempt:
        """One attempt; `failed` are the steps that the earlier ones failed at. RunOver ends the run."""


class PublisherPort(Protocol):
    """Idempotent by branch. Has no way to merge."""

    async def find(self, task: FixTask) -> Published | None:
        """The proposal of this task's branch, whatever its state; None when there is no such branch."""

    async def push(self, task: FixTask, patch: CheckedPatch, message: str) -> Published:
        """Make the branch hold exactly base, test and patch; a branch of others is never overwritten."""

    async def open(self, task: FixTask, title: str, body: str) -> Published:
        """Open a draft for the pushed branch, or return the one that is open."""

    async def close(self, task: FixTask, why: str) -> Published | None:
        """Close our own draft, with a reason, and delete our branch if its head is ours; None without one."""

    async def answer(self, task: FixTask, comment: int, steps: Sequence[StepResult]) -> str:
        """Answer a comment on our open draft with what the gate saw, once; where the answer is."""


class TrackerPort(Protocol):
    """Where people speak of defects: searched before anything is proposed."""

    async def search(self, task: FixTask) -> Sequence[TrackerHit]:
        """Open and closed issues and pull requests that speak of this item, best first."""
