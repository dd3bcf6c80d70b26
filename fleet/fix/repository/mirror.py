"""A bare copy of one branch of a repository, in the state directory: what work trees are made from."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio

from fleet.config.propose import RepositorySection
from fleet.errors import FixError
from fleet.files import disk_errors, write_atomic
from fleet.fix.repository.git import Git, GitPlace, GitToken, remote_url

DEPTH = 200
"""Commits of the branch that are fetched."""
_TURNS, _TURN_S = 1800, 0.1
_ATTRIBUTES = b"* !text !eol -crlf -ident -filter !working-tree-encoding !diff -merge -export-subst\n"
"""Strongest of all attributes: what `.gitattributes` of the repository or a work tree says has no effect."""


class RepositoryMirror:
    """The mirror of one repository and branch. `fetch` is the only thing that changes its references."""

    def __init__(self, git: Git, state: Path, name: str, repository: RepositorySection) -> None:
        """`state` is the fleet's state directory, `name` the repository's in fleet.toml."""
        self._git, self._branch = git, repository.branch
        self.url = remote_url(repository.url)
        mark = hashlib.sha256(f"{self.url}\0{repository.branch}".encode()).hexdigest()[:12]
        self.folder = state / "repositories" / f"{name}-{mark}.git"
        self.place = GitPlace(repository=self.folder)
        self._ref = f"refs/fleet/{self._branch}"

    async def fetch(self, token: GitToken | None = None) -> str:
        """Fetch the branch; returns its commit. FixError when it cannot be had."""
        async with self._alone():
            await self._prepare()
            await self._git.run(
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                f"--depth={DEPTH}",
                self.url,
                f"+refs/heads/{self._branch}:{self._ref}",
                place=self.place,
                token=token,
            )
            return await self.base()

    async def base(self) -> str:
        """The branch's commit as it was last fetched."""
        return (await self.ask("rev-parse", "--verify", f"{self._ref}^{{commit}}")).strip()

    async def fetch_commit(self, branch: str, token: GitToken | None = None) -> None:
        """Have the commits of another branch too; no reference is kept to them."""
        async with self._alone():
            await self._prepare()
            source = f"refs/heads/{branch}"
            words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", f"--depth={DEPTH}")
            await self._git.run(*words, self.url, source, place=self.place, token=token)

    async def contains(self, commit: str, tip: str) -> bool:
        """Whether `commit` is `tip` or one of its ancestors, as far as they are fetched."""
        if not await self.has(commit):
            return False
        found = await self.ask("rev-list", "--count", f"--max-count={DEPTH}", commit, f"^{tip}")
        return found.strip() == "0"

    async def has(self, commit: str) -> bool:
        """Whether that commit is here."""
        found = await self._git.run(
            "rev-parse", "--quiet", "--verify", f"{commit}^{{commit}}", place=self.place, fine=(0, 1, 128)
        )
        return bool(found.strip())

    async def ask(self, *words: str) -> str:
        """What a command on the mirror prints, as text."""
        return (await self._git.run(*words, place=self.place)).decode("utf-8", "replace")

    async def _prepare(self) -> None:
        """Make the mirror, or clear what a killed git left in it; only the holder of the lock may."""
        if not (self.folder / "HEAD").is_file():
            await self._git.run("init", "--quiet", "--bare", "--template=", str(self.folder))
        else:
            await anyio.to_thread.run_sync(_unlock, self.folder)
        with disk_errors(self.folder):
            (self.folder / "info").mkdir(mode=0o700, exist_ok=True)
            write_atomic(self.folder / "info" / "attributes", _ATTRIBUTES, sync_name=False)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Hold the mirror's lock, also against another process; the kernel frees that of a killed one."""
        with disk_errors(self.folder):
            self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self.folder.with_suffix(".lock"), flags, 0o600)
        try:
            for _ in range(_TURNS):
                with suppress(BlockingIOError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                await anyio.sleep(_TURN_S)
            else:
                raise FixError(f"{self.url}: another run fetches it", remedy="propose again later")
            yield
        finally:
            os.close(descriptor)


def _unlock(folder: Path) -> None:
    for place in (folder, *(folder / "refs").rglob("*")):
        if place.is_dir():
            for lock in place.glob("*.lock"):
                lock.unlink(missing_ok=True)
