"""A build that is decided by what a file of the sample says, and trees in memory: the fix gate without jails
and without git, for tests of its order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, ClassVar

from fleet.errors import JailError
from fleet.findings.repro import ReproCall
from fleet.fix.model import CommandEnd, FixTask, TrackerHit
from fleet.fix.ports import TreeCommand, TreePort
from tests.fix import sample

PANIC = sample.DEFECTS[0]
SEEN: Mapping[str, Any] = {
    "ok": False,
    "error": "thread 'main' panicked at slice_str:48:",
    "error_class": "",
    "outcome": "panic",
    "exit_code": 101,
    "place": "slice_str",
}
CLEAN: Mapping[str, Any] = {"ok": False, "error": "LH0204", "error_class": "", "outcome": "clean_error"}
GOOD: Mapping[str, Any] = {"ok": True, "error": "", "error_class": "", "outcome": "accepted", "valid": True}


@dataclass
class ScriptedJails:
    """A build decided by what the sample's file says, without jails. Each flag is one way to be no fix."""

    shows: int = 3  # of the looks at the repro on the base
    own_fail_before: bool = False
    other_reason: bool = False
    passes_untouched: bool = False  # the second run of the test on the base does not fail
    lost: list[str] = field(default_factory=list)  # words of commands whose next jail is lost
    asked_base: int = 0
    base_runs: int = 0

    def state(self, tree: Path) -> str:
        text = (tree / PANIC.file).read_text()
        return text.partition("# state: ")[2].split()[0] if "# state: " in text else "base"

    async def run(self, tree: Path, command: TreeCommand) -> CommandEnd:
        if self.lost and self.lost[0] in " ".join(command.argv):
            self.lost.pop(0)
            return CommandEnd(0, "lost", b"", b"gone", 0.0)
        state, last = self.state(tree), command.argv[-1]
        if "compileall" in command.argv:
            return end(state != "unbuilt")
        if last == "tests":
            return end(not (state == "breaks" or (state == "base" and self.own_fail_before)))
        item = last.rpartition("_")[2].removesuffix(".py")
        if state == "base":
            self.base_runs += 1
            if self.passes_untouched and self.base_runs > 1:
                return end(True)
            return end(
                False, b"ImportError" if self.other_reason else f"QA-FLEET {item} SHOWN: panic".encode()
            )
        return end(state != "wrong", f"QA-FLEET {item} SHOWN: panic".encode())

    async def ask(
        self, tree: Path, task: FixTask, calls: Sequence[ReproCall], *, elsewhere: bool = False
    ) -> Sequence[Mapping[str, Any]]:
        state = self.state(tree)
        if self.lost and self.lost[0] == "ask":
            self.lost.pop(0)
            raise JailError("gone")
        return [self.answer(state, task, call) for call in calls]

    def answer(self, state: str, task: FixTask, call: ReproCall) -> Mapping[str, Any]:
        source = str(call.args["source"])
        if source == sample.PROFILE.compiler.sample:
            return CLEAN if state == "refuses" else GOOD
        if source == task.calls[0].args["source"]:
            self.asked_base += state == "base"
            return SEEN if (state == "base" and self.asked_base <= self.shows) or state == "hides" else CLEAN
        return SEEN if state in ("base", "narrow") else CLEAN


class MemoryTree:
    """A tree of two files. A patch is written as git's heads, and its content is found again by its text."""

    base = "0" * 40
    known: ClassVar[dict[bytes, dict[str, bytes]]] = {}

    def __init__(self, path: Path, files: Mapping[str, bytes]) -> None:
        self.path, self._files = path, files
        path.mkdir()
        for name, text in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(text)

    async def put(self, path: str, text: bytes) -> None:
        (self.path / path).parent.mkdir(parents=True, exist_ok=True)
        (self.path / path).write_bytes(text)

    async def diff(self, *, without: Sequence[str] = ()) -> bytes:
        changed = {
            name: new for name, old in self._files.items() if (new := (self.path / name).read_bytes()) != old
        }
        text = b"".join(f"diff --git a/{name} b/{name}\n".encode() + new for name, new in changed.items())
        self.known[text] = changed
        return text

    async def apply(self, patch: bytes) -> None:
        for name, text in self.known[patch].items():
            await self.put(name, text)

    async def restore(self) -> None:
        for name, text in self._files.items():
            await self.put(name, text)


class MemoryTrees:
    """Implements Trees."""

    def __init__(self, folder: Path, source: Path) -> None:
        names = (PANIC.file, ".github/workflows/ci.yml")
        self._files = {name: (source / name).read_bytes() for name in names}
        self._folder, self.open_now = folder, 0

    @asynccontextmanager
    async def open(self, task: FixTask) -> AsyncIterator[TreePort]:
        self.open_now += 1
        path = Path(mkdtemp(dir=self._folder)) / "tree"
        try:
            yield MemoryTree(path, self._files)
        finally:
            self.open_now -= 1

    async def commits(self, task: FixTask, words: Sequence[str]) -> Sequence[TrackerHit]:
        return ()


def end(passed: bool, output: bytes = b"") -> CommandEnd:
    return CommandEnd(0 if passed else 1, "exited", output, b"", 0.1)
