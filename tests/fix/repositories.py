"""A real bare repository and a task on it, and a person who commits there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from fleet.config.propose import ProposeSection
from fleet.fix.model import CheckedPatch, FixTask, RegressionTest
from fleet.fix.ports import by_hand
from fleet.fix.publish.git_remote import GitRemotePublisher
from fleet.fix.repository.git import Git
from fleet.fix.repository.patch_rules import check_patch
from fleet.fix.repository.trees import GitTrees
from tests.fix import tasks
from tests.fix.tasks import FP

_PLACE = "@where the remote is@"
BRANCH = f"qa-fleet/{FP}"
SOURCE = "def double(number):\n    return number + number + 1\n"
FIXED = "def double(number):\n    return number + number\n"
TEST = RegressionTest(f"tests/qa/test_{FP}.py", "assert double(2) == 4, 'QA-MARKER-1'\n", "QA-MARKER-1")
FILES = {
    "src/double.py": SOURCE,
    "src/other.py": "OTHER = 1\n",
    "tests/test_double.py": "def test() -> None:\n    assert True\n",
    ".gitignore": "*.pyc\n__pycache__/\nbuild/\n",
    "README.md": "A sample.\n",
}


def git(folder: Path, *words: str, name: str = "A Person", email: str = "person@example.org") -> str:
    """A person's git; what it prints."""
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": email,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": email,
    }
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@dataclass(frozen=True)
class Remote:
    """A bare repository with the branch `main`, and a person's clone of it."""

    bare: Path
    clone: Path

    @property
    def url(self) -> str:
        return self.bare.as_uri()

    def commit(self, files: Mapping[str, str | None], message: str = "a change", branch: str = "main") -> str:
        """Commit files (None removes one) to a branch of the remote, as a person; returns the commit."""
        git(self.clone, "fetch", "--quiet", "origin")
        if branch != "main":
            git(self.clone, "checkout", "--quiet", "-B", branch, f"origin/{branch}")
        for name, text in files.items():
            path = self.clone / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        git(self.clone, "add", "--all", "--force")
        git(self.clone, "commit", "--quiet", "--allow-empty", "-m", message)
        git(self.clone, "push", "--quiet", "origin", f"HEAD:{branch}")
        return git(self.clone, "rev-parse", "HEAD")

    def head(self, branch: str) -> str:
        return git(self.bare, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")


def make_remote(folder: Path, files: Mapping[str, str | None] = FILES) -> Remote:
    """A remote `folder`/remote.git with one commit: a copy of one that git has made once."""
    for name, data in _made(tuple(files.items())):
        if data is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(data)
    remote = Remote(folder / "remote.git", folder / "clone")
    config = remote.clone / ".git" / "config"
    config.write_text(config.read_text().replace(_PLACE, str(remote.bare)))
    return remote


@cache
def _made(files: tuple[tuple[str, str | None], ...]) -> Sequence[tuple[str, bytes | None]]:
    """A bare repository with these files in one commit, and a clone: paths and contents (None: a folder)."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        bare, clone = folder / "remote.git", folder / "clone"
        git(folder, "init", "--quiet", "--bare", "--template=", "-b", "main", str(bare))
        git(bare, "config", "http.receivepack", "true")
        git(folder, "clone", "--quiet", str(bare), str(clone))
        git(clone, "checkout", "--quiet", "-B", "main")
        Remote(bare, clone).commit(dict(files), "the base")
        git(clone, "config", "remote.origin.url", _PLACE)
        made = sorted(folder.rglob("*"))
        return [
            (str(path.relative_to(folder)), path.read_bytes() if path.is_file() else None) for path in made
        ]


def task(
    url: str, *, run: str = "run-1", branch: str = BRANCH, limits: ProposeSection | None = None
) -> FixTask:
    """A task on the repository at a URL; a fix may change `src/**`."""
    on = tasks.repository(url, test_path="tests/qa/test_{item}.py")
    chosen = limits or ProposeSection()
    return tasks.task(on, calls=(), limits=chosen, run=run, branch=branch)


def checked(given: FixTask, text: bytes, base: str, test: RegressionTest = TEST) -> CheckedPatch:
    """The patch as the gate would pass it on."""
    return check_patch(text, base=base, test=test, repository=given.repository, limits=given.limits)


def of_run(given: FixTask, run: str) -> FixTask:
    """The same task in another run."""
    return replace(given, run=run)


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
