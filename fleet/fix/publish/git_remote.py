"""Proposals on a plain git remote: a branch there, and the request as text here, for a person to send on.

`state`/proposals/<repository>/<branch>/ then holds `request.txt` (what `git request-pull` says, and the
body) and the patches of `git format-patch`. An open request is one whose `request.txt` is there.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from fleet.errors import FixError
from fleet.files import disk_errors, write_atomic
from fleet.fix.model import CheckedPatch, FixTask, Published, StepResult
from fleet.fix.ports import Ask, unasked
from fleet.fix.publish.proposal_branch import ProposalBranch
from fleet.fix.repository.git import Git
from fleet.fix.repository.trees import TokenOf, no_token
from fleet.text import clean, line

_REQUEST, _CLOSED = "request.txt", "closed.txt"


class GitRemotePublisher:
    """See PublisherPort. A proposal's `ref` is its branch; merged is what the base branch contains."""

    def __init__(self, git: Git, state: Path, *, token: TokenOf = no_token, ask: Ask = unasked) -> None:
        """`state` is the fleet's state directory; `ask` comes before each push and each request."""
        self._git, self._state, self._token, self._ask = git, state, token, ask

    async def find(self, task: FixTask) -> Published | None:
        branch = self._branch(task)
        head = await branch.head()
        if not head:
            before = branch.ours_once()
            gone = before and await branch.merged(before)
            return Published(task.branch, task.branch, before, "merged") if gone else None
        return await self._published(branch, task, head)

    async def push(self, task: FixTask, patch: CheckedPatch, message: str) -> Published:
        branch = self._branch(task)
        head = await branch.push(patch, message)
        (branch.folder / _CLOSED).unlink(missing_ok=True)
        return await self._published(branch, task, head)

    async def open(self, task: FixTask, title: str, body: str) -> Published:
        branch = self._branch(task)
        head = await branch.head()
        if not head:
            raise FixError(f"{task.branch} is not on the remote", remedy="push it first")
        found = await self._published(branch, task, head)
        if found.state != "pushed":
            return found
        if not await branch.ours(head):
            raise FixError(f"{task.branch} holds commits of others", remedy="look at the branch there")
        await self._ask()
        # patches first, the request last: a request that is there is complete
        words = f"{line(title)}\n\n{clean(body, 60_000, newlines=True)}\n"
        mirror = branch.mirror
        base = (await mirror.ask("merge-base", await mirror.base(), head)).strip()
        drafts = branch.folder / "patches"
        with disk_errors(drafts):
            shutil.rmtree(drafts, ignore_errors=True)
            drafts.mkdir(mode=0o700, parents=True)  # a peer that settles has pushed nothing itself
        where = ("--output-directory", str(drafts), "--no-color", "--no-signature", "--no-renames")
        await mirror.ask("format-patch", "--quiet", *where, "--full-index", "--binary", f"{base}..{head}")
        ask = ("request-pull", base, mirror.url, f"{head}:refs/heads/{task.branch}")
        asked = await self._git.run(*ask, place=mirror.place, token=self._token(task))
        with disk_errors(branch.folder):
            for old in branch.folder.glob("[0-9]*.patch"):
                old.unlink()
            for patch in sorted(drafts.iterdir()):
                patch.rename(branch.folder / patch.name)
            drafts.rmdir()
            write_atomic(branch.folder / _REQUEST, words.encode() + b"\n" + asked)
        return Published(task.branch, task.branch, head, "open")

    async def close(self, task: FixTask, why: str) -> Published | None:
        branch = self._branch(task)
        head = await branch.head()
        if not head and not (branch.folder / _REQUEST).exists():
            return None
        found = await self._published(branch, task, head or branch.ours_once())
        if found.state == "merged":
            return found
        await self._ask()
        if branch.folder.is_dir():
            with disk_errors(branch.folder):
                write_atomic(branch.folder / _CLOSED, f"{line(why, 2_000)}\n".encode())
                (branch.folder / _REQUEST).unlink(missing_ok=True)
        if head and await branch.ours(head):
            await branch.delete(head)
        return Published(task.branch, task.branch, found.head, "closed")

    async def answer(self, task: FixTask, comment: int, steps: Sequence[StepResult]) -> str:  # noqa: ARG002  the port has it
        """FixError: there are no comments on a plain remote."""
        raise FixError(
            f"{task.name} is a plain git remote: it has no comments", remedy="answer where it was asked"
        )

    def _branch(self, task: FixTask) -> ProposalBranch:
        return ProposalBranch(self._git, self._state, task, token=self._token(task), ask=self._ask)

    async def _published(self, branch: ProposalBranch, task: FixTask, head: str) -> Published:
        state: Literal["pushed", "open", "merged", "closed"] = "pushed"
        if await branch.merged(head):
            state = "merged"
        elif (branch.folder / _CLOSED).exists():
            state = "closed"
        elif (branch.folder / _REQUEST).exists():
            state = "open"
        ours = state == "merged" or await branch.ours(head)
        conflicts = state in ("pushed", "open") and ours and await branch.conflicts(head)
        return Published(task.branch, task.branch, head, state, ours, conflicts)
