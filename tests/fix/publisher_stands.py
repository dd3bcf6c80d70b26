"""A publisher of each kind with what persons do around it: what the conformance suite is run on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from fleet.fix.model import CheckedPatch, FixTask
from fleet.fix.ports import PublisherPort, by_hand
from fleet.fix.publish.git_remote import GitRemotePublisher
from fleet.fix.publish.github import GitHubPublisher
from fleet.fix.publish.github_api import GitHubApi
from fleet.fix.publish.token import TokenFile
from fleet.fix.repository.git import Git, GitToken
from tests.doubles.fix import MemoryPublisher
from tests.fix.git_http import serve_git
from tests.fix.github_server import TOKEN, GitHubServer, served
from tests.fix.published_task import github
from tests.fix.repositories import FIXED, SOURCE, Remote, checked, git, make_remote, task

DIFF = (
    "diff --git a/src/double.py b/src/double.py\nindex {old}..{new} 100644\n--- a/src/double.py\n"
    "+++ b/src/double.py\n@@ -1,2 +1,2 @@\n def double(number):\n-    return number + number + 1\n"
    "+    return number + number\n"
)


class PublisherStand(Protocol):
    """A publisher, its task and patch, and persons."""

    @property
    def publisher(self) -> PublisherPort: ...
    @property
    def task(self) -> FixTask: ...
    @property
    def patch(self) -> CheckedPatch: ...
    def again(self) -> PublisherPort:
        """The publisher of a process that was started anew."""

    def heads(self) -> set[str]:
        """The commits of the task's branch: none or one."""

    def requests(self) -> int:
        """How many requests were ever opened."""

    def taken(self) -> str:
        """A person makes the branch first, or adds to it: its commit."""

    def merge(self) -> None: ...


@dataclass
class MemoryStand:
    """The double that is shipped."""

    publisher: Any
    task: FixTask
    patch: CheckedPatch

    def again(self) -> PublisherPort:
        publisher: PublisherPort = self.publisher
        return publisher

    def heads(self) -> set[str]:
        return {one.head for one in self.publisher.branches.values() if one.state != "closed"}

    def requests(self) -> int:
        return int(self.publisher.opened)

    def taken(self) -> str:
        self.publisher.foreign.add(self.task.branch)
        return ""

    def merge(self) -> None:
        self.publisher.turn(self.task.branch, "merged")


@dataclass
class GitStand:
    """A bare repository, by file or by HTTP; with a server, GitHub's requests beside it."""

    folder: Path
    remote: Remote
    task: FixTask
    patch: CheckedPatch
    server: GitHubServer | None = None

    @property
    def publisher(self) -> PublisherPort:
        return self.again()

    def again(self) -> PublisherPort:
        url = self.task.repository.url
        token = GitToken(url, TOKEN) if url.startswith("http") else None
        branches = GitRemotePublisher(Git(), self.folder / "state", token=lambda _: token, ask=by_hand)
        section = self.task.repository.github
        if section is None:
            return branches
        path = self.folder / "token"
        path.write_text(TOKEN)
        path.chmod(0o600)
        return GitHubPublisher(section, GitHubApi(section, TokenFile(path), ask=by_hand), branches)

    def heads(self) -> set[str]:
        return {head for head in [self.remote.head(self.task.branch)] if head}

    def requests(self) -> int:
        if self.server is not None:
            return len(self.server.pulls)
        return len(list((self.folder / "state").rglob("request.txt")))

    def taken(self) -> str:
        if not self.heads():
            git(self.remote.clone, "push", "--quiet", "origin", f"main:{self.task.branch}")
        return self.remote.commit({"src/other.py": "OTHER = 2\n"}, branch=self.task.branch)

    def merge(self) -> None:
        clone = self.remote.clone
        git(clone, "fetch", "--quiet", "origin")
        git(clone, "merge", "--quiet", "--ff-only", f"origin/{self.task.branch}")
        git(clone, "push", "--quiet", "origin", "HEAD:main")
        if self.server is not None:
            for pull in self.server.pulls.values():
                pull |= {"state": "closed", "merged_at": "2026-11-23T10:00:00Z"}


@asynccontextmanager
async def stand(kind: str, folder: Path) -> AsyncIterator[PublisherStand]:
    """One of KINDS."""
    if kind == "memory":
        of = task("/nowhere")
        yield MemoryStand(MemoryPublisher(), of, checked(of, fixing(), "b" * 40))
        return
    remote = make_remote(folder)
    with serve_git(folder, token=TOKEN) if "http" in kind else nullcontext() as http:
        of = task(remote.url if http is None else f"{http.url}/remote.git")
        made = GitStand(folder, remote, of, checked(of, fixing(), remote.head("main")))
        if "github" not in kind:
            yield made
            return
        async with served(GitHubServer(bare=remote.bare)) as server:
            repository = of.repository.model_copy(update={"github": github(server.url)})
            made.task, made.server = replace(of, repository=repository), server
            yield made


def fixing() -> bytes:
    """The diff of a true fix."""
    return _diff(SOURCE, FIXED)


def _diff(old: str, new: str) -> bytes:
    def blob(text: str) -> str:
        return hashlib.sha1(f"blob {len(text)}\0{text}".encode()).hexdigest()

    return DIFF.format(old=blob(old), new=blob(new)).encode()


FULL = bool(os.environ.get("QA_FIX_FULL"))
KINDS = ("memory", "git file", "github", *(("git http", "github http") if FULL else ()))
"""The double that is shipped, and what is pushed by file; in the long form by HTTP as well."""
