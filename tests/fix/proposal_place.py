"""Where a proposal is made in a test: a real remote, a task, and a publisher."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fleet.fix.model import CheckedPatch, FixTask
from fleet.fix.ports import by_hand
from fleet.fix.publish.git_remote import GitRemotePublisher
from fleet.fix.repository.git import Git
from fleet.fix.repository.trees import GitTrees
from tests.fix.repositories import BRANCH, FIXED, Remote, checked, make_remote, task


@dataclass(frozen=True, kw_only=True)
class ProposalPlace:
    """A remote, a task on it, and the state directory of the fleet that proposes."""

    remote: Remote
    task: FixTask
    state: Path

    def publisher(self, state: str = "state") -> GitRemotePublisher:
        return GitRemotePublisher(Git(), self.state.parent / state, ask=by_hand)

    async def patch(self, text: str = FIXED) -> CheckedPatch:
        async with GitTrees(Git(), self.state).open(self.task) as tree:
            await tree.put("src/double.py", text.encode())
            return checked(self.task, await tree.diff(), tree.base)

    @property
    def folder(self) -> Path:
        return self.state / "proposals" / "sample" / BRANCH


def near_place(folder: Path) -> ProposalPlace:
    """One by file:// below a folder."""
    remote = make_remote(folder)
    return ProposalPlace(remote=remote, task=task(remote.url), state=folder / "state")
