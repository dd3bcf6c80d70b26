"""Work trees by plain git, for tests of what works in them."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fleet.errors import FixError
from fleet.fix.model import FixTask, TrackerHit
from fleet.fix.ports import TreePort
from fleet.jail.rmtree import rmtree


class PlainTree:
    """Implements TreePort: git's own folder lies beside the tree."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.path, self._source = folder / "tree", source
        self._folder = folder
        self.path.mkdir(parents=True)
        self._git("clone", "-q", "--bare", "--shared", str(source), str(folder / "git"), bare=False)
        self.base = self._git("rev-parse", "main").decode().strip()
        self._git("read-tree", self.base)
        self._git("checkout-index", "-a", "-f")

    async def put(self, path: str, text: bytes) -> None:
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text)

    async def diff(self, *, without: Sequence[str] = ()) -> bytes:
        self._git("add", "-A")
        for path in without:
            self._git("rm", "-q", "--cached", "--ignore-unmatch", "--", path)
        return self._git("diff", "--cached", "--binary", "--full-index", "--no-renames", self.base)

    async def apply(self, patch: bytes) -> None:
        self._git("apply", "--whitespace=nowarn", stdin=patch)

    async def restore(self) -> None:
        self._git("read-tree", self.base)
        self._git("clean", "-q", "-ffdx")
        self._git("checkout-index", "-a", "-f")

    def _git(self, *words: str, bare: bool = True, stdin: bytes = b"") -> bytes:
        own = ["--git-dir", str(self._folder / "git"), "--work-tree", str(self.path)] if bare else []
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "-c", "core.fileMode=true", *own, *words],
            input=stdin,
            capture_output=True,
            cwd=self.path,
            env={"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null"},
            timeout=60,
        )
        if done.returncode:
            raise FixError(f"git {words[0]}: {done.stderr.decode()[:300]}")
        return done.stdout


class PlainTrees:
    """Implements Trees. `open_now` counts those that were not removed."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._numbers, self.open_now = folder, itertools.count(), 0

    @asynccontextmanager
    async def open(self, task: FixTask) -> AsyncIterator[TreePort]:
        name = f"tree-{next(self._numbers)}"
        self.open_now += 1
        try:
            yield PlainTree(self._folder / name, Path(task.repository.url))
        finally:
            rmtree(self._folder, name)
            self.open_now -= 1

    async def commits(self, task: FixTask, words: Sequence[str]) -> Sequence[TrackerHit]:
        return ()
