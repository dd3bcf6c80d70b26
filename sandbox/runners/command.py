"""One part of a program as a command line that is executed many times: its files, and what its end means."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sandbox.programs import process
from sandbox.programs.process import Ending
from sandbox.programs.program import Program, SourceBy
from sandbox.programs.program_call import argv, full, read_output
from sandbox.runners.port import Execution

_SWEPT = ("/box", "/tmp", "/dev/shm")
"""Where a program can leave files in a jail."""
_IN_JAIL = __file__.startswith("/opt/sandbox/")
_IN_USE: set[str] = set()
"""Names of the folders of this process's runners."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """`argv` still names `{source}` and `{output}`; `memory` is in bytes."""

    argv: tuple[str, ...]
    by_file: bool
    file_name: str
    output_file: str
    environment: dict[str, str]
    folder: str
    memory: int
    clean_exits: tuple[int, ...]

    def execution(
        self, code: int, stdout: bytes, stderr: bytes, *, hung: bool, cpu_s: float, peak: int
    ) -> Execution:
        """What an end means. `code` is the exit status, or minus the signal; `peak` in bytes, 0 if unknown.

        The rules of sandbox/programs/process.py, with the program's own statuses of a clean error.
        """
        if len(stdout) >= process.STDOUT and not hung:
            stdout, code, ending = stdout[: process.STDOUT], -signal.SIGKILL, Ending.CRASH
        elif hung:
            code, ending = -signal.SIGKILL, Ending.HANG
        elif code == 0:
            ending = Ending.ACCEPTED
        elif peak >= self.memory * 4 // 5 or code == -signal.SIGKILL:
            ending = Ending.MEMORY
        elif code in self.clean_exits and stderr.strip():
            ending = Ending.CLEAN_ERROR
        else:
            ending = Ending.CRASH if code < 0 else Ending.PANIC
        return Execution(ending, code, stdout, stderr[: process.STDERR], cpu_s, peak)


def command(program: Program, part: str) -> CommandLine:
    """`part` is `compiler`, `loader`, `other` or `printer`; JailBroken when the platform has none.

    A loader, and a printer, takes its input on standard input, and answers on standard output.
    """
    parts = {"compiler": program.command, "other": program.other}
    words = (parts | {"loader": program.loader, "printer": program.printer})[part]
    loads = part in ("loader", "printer")
    return CommandLine(
        argv=argv(words),
        by_file=not loads and program.source_by == SourceBy.FILE.value,
        file_name=program.file_name,
        output_file="" if loads else program.output_file,
        environment=program.environment,
        folder=program.folder,
        memory=program.memory_mb << 20,
        clean_exits=program.clean_exits,
    )


class Box:
    """The files of one runner: the source, the output, and an empty working folder.

    What an execution leaves there, and in a jail in every folder that it can write to, is removed before the
    next: an input's answer must not depend on the inputs before it.
    """

    def __init__(self, what: CommandLine) -> None:
        self._what = what
        self._kept = {folder: frozenset(_names(folder)) for folder in _SWEPT} if _IN_JAIL else {}
        home = process.ENVIRONMENT["HOME"]
        self.place = tempfile.mkdtemp(prefix="run-", dir=home if os.access(home, os.W_OK) else None)
        _IN_USE.add(os.path.basename(self.place))
        self.work = os.path.join(self.place, "work")
        os.mkdir(self.work)
        self._kept |= {self.place: frozenset({"work"}), self.work: frozenset()}
        self._own = frozenset((what.file_name, what.output_file))
        self._identity = _identity(self.work)
        self.filled = False
        self.folder = what.folder or self.work
        self.source = os.path.join(self.work, what.file_name)
        self.output = os.path.join(self.work, what.output_file or "output")

    @property
    def argv(self) -> tuple[str, ...]:
        def filled(word: str) -> str:
            return word.replace("{source}", self.source).replace("{output}", self.output)

        return tuple(map(filled, self._what.argv))

    def put(self, source: bytes) -> bytes:
        """Place one input; what standard input is."""
        if not self._what.by_file:
            return source
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(self.source, flags, 0o600)
        except OSError:  # another runner's program was here
            self.sweep()
            fd = os.open(self.source, flags, 0o600)
        with open(fd, "wb") as file:
            file.write(source)
        return b""

    def taken(self, done: Execution) -> Execution:
        """The execution with the output that it left in its file."""
        if not self._what.output_file or done.ending is not Ending.ACCEPTED:
            return done
        output = read_output(self.output)
        return self._what.execution(0, output, done.stderr, hung=False, cpu_s=done.cpu_s, peak=done.peak)

    def sweep(self) -> bool:
        """Remove what the last execution left; False when it replaced the working folder itself.

        `filled` says afterwards whether it left the disk full.
        """
        self.filled = False
        for folder, kept in self._kept.items():
            if left := [name for name in _names(folder) if name not in kept and name not in _IN_USE]:
                self.filled |= not self._own.issuperset(left) and full(folder)
                _remove(os.path.join(folder, name) for name in left)
        if _identity(self.work) == self._identity:
            return True
        _remove([self.work])
        os.makedirs(self.work)
        self._identity = _identity(self.work)
        return False

    def close(self) -> None:
        _IN_USE.discard(os.path.basename(self.place))
        shutil.rmtree(self.place, ignore_errors=True)


def _identity(path: str) -> tuple[int, int]:
    try:
        state = os.stat(path, follow_symlinks=False)
    except OSError:
        return 0, 0
    return state.st_dev, state.st_ino


def _names(folder: str) -> Sequence[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return ()


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue
        except OSError:
            # also one that was closed to its owner
            for folder, names, _ in os.walk(path):
                for name in (".", *names):
                    with contextlib.suppress(OSError):
                        os.chmod(os.path.join(folder, name), 0o700, follow_symlinks=name == ".")
            shutil.rmtree(path, ignore_errors=True)
