"""The branch of a proposal on its remote, made by plumbing and pushed by lease: what every publisher shares.

A branch is `qa-fleet/<fingerprint>`, one commit for the regression test and one for the fix, on the base
that the gate has tested. Its commits depend on nothing but base, patch and message, so a push that is
repeated after a crash is the same push. There is nothing here that changes another branch.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from fleet.errors import FixError
from fleet.files import disk_errors, write_atomic
from fleet.fix.model import CheckedPatch, FixTask, RegressionTest
from fleet.fix.ports import Ask, unasked
from fleet.fix.repository.git import IDENTITY, Git, GitPlace, GitToken
from fleet.fix.repository.mirror import RepositoryMirror
from fleet.text import clean, line

_BRANCH = re.compile(r"qa-fleet/[A-Za-z0-9][A-Za-z0-9_-]{0,99}\Z")
_OID = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_RUN = "QA-Fleet-Run: "
_TRAILER = re.compile(rf"^{_RUN}(\S+)$", re.MULTILINE)
_PLAIN = frozenset({("100644", "100644"), ("100755", "100755"), ("000000", "100644"), ("100644", "000000")})
"""Modes before and after: text that is changed, added or removed."""


class ProposalBranch:
    """The branch of one task. `state` is the fleet's state directory; `token` is sent to the remote only;
    `ask` comes right before each push."""

    def __init__(
        self, git: Git, state: Path, task: FixTask, *, token: GitToken | None = None, ask: Ask = unasked
    ) -> None:
        if not _BRANCH.match(task.branch) or task.branch == task.repository.branch:
            raise FixError(f"{line(task.branch, 80)}: not the name of a branch of ours")
        self._git, self._task, self._token, self._ask = git, task, token, ask
        self.mirror = RepositoryMirror(git, state, task.name, task.repository)
        self.folder = state / "proposals" / task.name / task.branch
        """What is kept of this branch."""

    async def head(self) -> str:
        """The commit of the branch on the remote, "" without one."""
        ref = f"refs/heads/{self._task.branch}"
        words = ("ls-remote", "--quiet", "--symref", self.mirror.url, "HEAD", ref)
        listed = (await self._git.run(*words, token=self._token)).decode("utf-8", "replace")
        rows = [row.partition("\t") for row in listed.splitlines()]
        if (f"ref: {ref}", "\t", "HEAD") in rows:
            raise FixError(f"{self._task.branch} is the default branch of {self.mirror.url}")
        return next((oid for oid, _, name in rows if name == ref and _OID.match(oid)), "")

    def ours_once(self) -> str:
        """The commit that we last meant to push, "" without one; it is recorded before the push."""
        try:
            found = (self.folder / "head").read_text(encoding="ascii").strip()
        except (FileNotFoundError, UnicodeDecodeError):
            return ""
        return found if _OID.match(found) else ""

    async def merged(self, head: str) -> bool:
        """Whether the base branch contains a commit of the branch."""
        base = await self.mirror.fetch(self._token)
        return await self.mirror.contains(head, base)

    async def conflicts(self, head: str) -> bool:
        """Whether what the branch changes does not fit the base branch as it was last fetched."""
        if not await self.mirror.has(head):
            await self.mirror.fetch_commit(self._task.branch, self._token)
        base = await self.mirror.base()
        words: tuple[str, ...] = ("merge-base", base, head)
        fork = (await self._git.run(*words, place=self.mirror.place, fine=(0, 1))).decode().strip()
        if fork in ("", base) or not self.folder.is_dir():
            return False
        words = ("diff-tree", "-r", "--patch", "--binary", "--full-index", "--no-renames", fork, head)
        patch = await self._git.run(*words, place=self.mirror.place)
        with tempfile.TemporaryDirectory(prefix="index-", dir=self.folder) as folder:
            place = GitPlace(repository=self.mirror.folder, index=Path(folder) / "index")
            await self._git.run("read-tree", base, place=place)
            try:
                quiet = ("apply", "--cached", "--check", "--whitespace=nowarn", "-")
                await self._git.run(*quiet, place=place, stdin=patch)
            except FixError:
                return True
        return False

    async def ours(self, head: str) -> bool:
        """Whether a commit was made by this task: by our record, or, for a peer, by identity and run."""
        if head == self.ours_once():
            return True
        if not await self.mirror.has(head):
            await self.mirror.fetch_commit(self._task.branch, self._token)
        if not await self.mirror.has(head):  # it has moved meanwhile
            return False
        shown = await self.mirror.ask("log", "-1", "--no-color", "--format=%cn <%ce>%n%B", head)
        committer, _, message = shown.partition("\n")
        runs = _TRAILER.findall(message)
        return committer == IDENTITY and runs[-1:] == [self._task.run]

    async def push(self, patch: CheckedPatch, message: str) -> str:
        """Make the branch hold exactly base, test and patch; returns its head.

        FixError: the base is not on the branch any more, the patch does not fit it, or the branch holds
        what is not ours.
        """
        base = await self.mirror.fetch(self._token)
        if not await self.mirror.contains(patch.base, base):
            raise FixError(
                f"{self._task.repository.branch} of {self._task.name} no longer contains {patch.base[:12]}",
                remedy="the branch was rewritten: propose again from its present state",
            )
        head = await self._commits(patch, message)
        there = await self.head()
        if there == head:
            self._record(head)
            return head
        if there and not await self.ours(there):
            raise FixError(
                f"{self._task.branch} of {self._task.name} holds commits of others",
                remedy="look at the branch; rename or delete it there, then propose again",
            )
        before = self.ours_once()
        self._record(head)
        try:
            await self._move(head, there)
        except FixError:
            now = await self.head()
            if now == head:  # a peer's same push, or one whose answer was lost
                return head
            if not now or now != before:
                raise
            await self._move(head, now)  # what a killed process of ours had pushed has arrived only now
        return head

    async def delete(self, head: str) -> None:
        """Delete the branch, if the remote still has it at `head`."""
        await self._move("", head)

    async def _move(self, head: str, there: str) -> None:
        """Move the branch from `there` ("" without one) to `head` ("": delete it); the remote compares."""
        ref = f"refs/heads/{self._task.branch}"
        lease = f"--force-with-lease={ref}:{there}"
        words = ("push", "--quiet", "--no-verify", "--no-follow-tags", "--no-signed", lease)
        place = self.mirror.place
        await self._ask()
        await self._git.run(*words, self.mirror.url, f"{head}:{ref}", place=place, token=self._token)

    def _record(self, head: str) -> None:
        with disk_errors(self.folder):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic(self.folder / "head", head.encode())

    async def _commits(self, patch: CheckedPatch, message: str) -> str:
        """Make the commits in the mirror; no reference, tree or other index is touched."""
        dated = (await self.mirror.ask("show", "--no-patch", "--format=%ct", patch.base)).strip() + " +0000"
        with disk_errors(self.folder):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            scratch = tempfile.TemporaryDirectory(prefix="index-", dir=self.folder)
        with scratch as folder:
            place = GitPlace(repository=self.mirror.folder, index=Path(folder) / "index")
            await self._git.run("read-tree", patch.base, place=place)
            await self._add(place, patch.test)
            alone = f"Add a regression test for {self._task.item.fingerprint}\n"
            words = alone if patch.fixes else message
            head = await self._commit(place, patch.base, words, dated)
            if patch.fixes:
                quiet = ("apply", "--cached", "--whitespace=nowarn", "-")
                await self._git.run(*quiet, place=place, stdin=patch.text)
                head = await self._commit(place, head, message, dated)
            await self._compare(patch, head)
        return head

    async def _add(self, place: GitPlace, test: RegressionTest) -> None:
        path = os.fsencode(test.path)
        listed = await self._git.run("ls-files", "--stage", "-z", place=place)
        if any(row.partition(b"\t")[2] == path for row in listed.split(b"\0")):
            raise FixError(f"{line(test.path, 120)}: the file of the regression test exists already")
        words = ("hash-object", "-w", "--no-filters", "--stdin")
        oid = (await self._git.run(*words, place=place, stdin=test.text.encode())).strip()
        row = b"100644 %s\t%s\0" % (oid, path)
        await self._git.run("update-index", "-z", "--index-info", place=place, stdin=row)

    async def _commit(self, place: GitPlace, parent: str, message: str, dated: str) -> str:
        tree = (await self._git.run("write-tree", place=place)).decode().strip()
        words = clean(message, 20_000, newlines=True).strip() + f"\n\n{_RUN}{self._task.run}\n"
        dates = {"GIT_AUTHOR_DATE": dated, "GIT_COMMITTER_DATE": dated}
        made = ("commit-tree", "-p", parent, tree)
        return (await self._git.run(*made, place=place, stdin=words.encode(), extra=dates)).decode().strip()

    async def _compare(self, patch: CheckedPatch, head: str) -> None:
        """Compare what git has made with what was checked: another list of files was never checked."""
        words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", patch.base, head)
        rows = (await self._git.run(*words, place=self.mirror.place)).split(b"\0")[:-1]
        found: set[str] = set()
        for about, path in zip(rows[::2], rows[1::2], strict=True):
            old, new, *_ = about.decode("ascii").lstrip(":").split()
            if (old, new) not in _PLAIN:
                raise FixError(f"{line(os.fsdecode(path), 120)}: git makes of it what was not checked")
            found.add(os.fsdecode(path))
        if found != {*patch.files, patch.test.path}:
            raise FixError("the commits change other files than the patch that was checked")
