"""A platform whose compiler is built from a repository, that repository's bare remote, and a person who
permits, merges and deploys. Every act of the fleet is a process of `fleet`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from fleet.findings.reader import ParsedEntry, read
from fleet.fix.permission.allow_git import FOLDER
from tests.cli_process import run_fleet
from tests.fix import sample
from tests.fix.repositories import git
from tests.platforms.bare import bare
from tests.platforms.firing import Home, home
from tests.platforms.stand import Stand

PANIC = sample.DEFECTS[0]
FIXES = """import sys
from pathlib import Path

path = Path({file!r})
text = path.read_text()
assert text.count({broken!r}) == 1, sys.stdin.read()
path.write_text(text.replace({broken!r}, {sound!r}))
"""
COMPILER = {
    "command": ["{python}", "/opt/tc/rustlite"],
    "loader": ["{python}", "/opt/tc/rustlite", "--entry"],
    "language": "rustlite",
    "family": "rust",
    "tool_chain": "python",
    "entries": ["frame", "render"],
    "sample": "fn frame(t: i32) -> i32 { t + 1 }",
}


@dataclass(frozen=True, slots=True)
class Said:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@dataclass(slots=True)
class ProposeArc:
    """`clone` is the person's; `toolchain` is what the platform serves."""

    stand: Stand
    at: Home
    bare: Path
    clone: Path
    toolchain: Path
    fixer: Path
    item: str = ""

    def fleet(self, *words: str) -> Said:
        """A command of the fleet, as a user gives it."""
        done = run_fleet(*words, env=self.at.environment())
        return Said(done.returncode, done.stdout, done.stderr)

    def does(self, *words: str, code: int = 0) -> Any:
        """What it answers as JSON."""
        said = self.fleet(*words, "--json")
        assert said.code == code, (said.out[-3000:], said.err[-3000:])
        return said.data

    def turn(self, rung: str) -> None:
        self.does("dial", rung, "--reason", "a test of proposals")

    def allow(self, name: str) -> Path:
        """A person permits a push."""
        folder = self.at.config / FOLDER
        folder.mkdir(mode=0o755, exist_ok=True)
        path = folder / name
        path.write_text("allow\n")
        path.chmod(0o644)
        return path

    def write(self, fixer: str = "command", github: dict[str, Any] | None = None, **changes: Any) -> None:
        """The operator's fleet.toml."""
        section = sample.repository(sample.Sample(self.bare, (PANIC,), {}))
        repository = section.model_dump(mode="json", exclude_none=True, exclude_defaults=True) | {
            "url": self.bare.as_uri(),
            "surfaces": ["compiler"],
            "build": [["{python}", "-m", "compileall", "-q", "rustlite"]],
        }
        propose: dict[str, Any] = {"fixer": fixer, "rounds": 1}
        if fixer == "command":
            propose |= {"command": ["{python}", "/opt/fixer/fix.py"], "mounts": {"fixer": str(self.fixer)}}
        repository |= {"github": github} if github else {}
        told = {
            "platform": self.stand.name,
            "repositories": {"devnet": repository | changes},
            "propose": propose,
        }
        (self.at.config / "fleet.toml").write_text(tomli_w.dumps(told))

    def deploy(self) -> None:
        """The platform serves what is on the remote's branch now."""
        git(self.clone, "pull", "--quiet", "--ff-only", "origin", "main")
        shutil.rmtree(self.toolchain / "rustlite", ignore_errors=True)
        shutil.copytree(self.clone / "rustlite", self.toolchain / "rustlite")

    def seed(self) -> None:
        """A person breaks it again, without looking at the tests."""
        path = self.clone / PANIC.file
        path.write_text(path.read_text().replace(PANIC.sound, PANIC.broken))
        git(self.clone, "commit", "--quiet", "--all", "-m", "Count lines faster")
        git(self.clone, "push", "--quiet", "origin", "HEAD:main")

    def merge(self, branch: str) -> None:
        git(self.clone, "fetch", "--quiet", "origin")
        git(self.clone, "merge", "--quiet", "--no-ff", "-m", "Merge the draft", f"origin/{branch}")
        git(self.clone, "push", "--quiet", "origin", "HEAD:main")

    def head(self, branch: str) -> str:
        return git(self.bare, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")

    def find(self) -> None:
        """Found by the persona's probe, posted, ranked."""
        self.does("run", "qa-fuzz", "--probe", "compiler-panic", code=1)
        self.does("run", "qa-triage")
        (one,) = self.listed()
        self.item = one["fingerprint"]

    def listed(self) -> list[dict[str, Any]]:
        """The open items, as the list is on disk."""
        return list(json.loads((self.at.state / "worklist.json").read_text())["items"])

    def closed(self) -> list[dict[str, Any]]:
        return list(json.loads((self.at.state / "worklist.json").read_text())["closed"])

    async def log(self) -> list[ParsedEntry]:
        return [read(entry.text) for entry in await self.stand.entries()]


@asynccontextmanager
async def propose_arc(folder: Path) -> AsyncIterator[ProposeArc]:
    """A platform whose compiler is built from a repository with one defect, and a fleet that knows both."""
    made = sample.build(folder / "sample", (PANIC,))
    names = ("remote.git", "clone", "toolchain", "fixer")
    remote, clone, toolchain, fixer = (folder / name for name in names)
    git(folder, "clone", "--quiet", "--bare", str(made.path), str(remote))
    git(remote, "config", "http.receivepack", "true")
    git(folder, "clone", "--quiet", str(remote), str(clone))
    toolchain.mkdir()
    fixer.mkdir()
    (fixer / "fix.py").write_text(FIXES.format(file=PANIC.file, broken=PANIC.broken, sound=PANIC.sound))
    compiler = COMPILER | {"root": str(toolchain)}
    async with bare(folder / "bare", more={"compiler": compiler}) as stand:
        arc = ProposeArc(stand, await home(folder / "fleet", stand), remote, clone, toolchain, fixer)
        arc.write()
        arc.deploy()
        yield arc
