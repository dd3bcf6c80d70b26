"""One call of a program by its profile: the source's file or standard input, its output's file or standard
output, its environment, folder and memory."""

from __future__ import annotations

import errno
import math
import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sandbox.errors import JailBroken
from sandbox.programs import process
from sandbox.programs.program import Program, SourceBy


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """`command` is the compiler's, the loader's or the other's; a loader is always fed by standard input."""

    program: Program
    command: Sequence[str]
    loads: bool = False

    def run(self, source: bytes, wall_s: float, cpu_s: float = math.inf) -> process.ProcessEnd:
        """The process to its end, in a folder of its own unless the profile names one. Its `stdout` is the
        program's output, wherever it was written. OSError ENOSPC when it failed on a disk of ours that is
        full."""
        program = self.program
        with tempfile.TemporaryDirectory(prefix="call-", ignore_cleanup_errors=True) as own:
            named = os.path.join(own, program.file_name)
            output = os.path.join(own, program.output_file or "output")
            by_file = program.source_by == SourceBy.FILE and not self.loads
            if by_file:
                with open(named, "xb") as file:
                    file.write(source)
            ended = process.run(
                [word.replace("{source}", named).replace("{output}", output) for word in argv(self.command)],
                b"" if by_file else source,
                wall_s,
                cpu_s,
                environment=program.environment,
                folder=program.folder or own,
                memory=program.memory_mb << 20,
            )
            if ended.ending is not process.Ending.ACCEPTED and any(map(full, (own, "."))):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if not program.output_file or self.loads:
                return ended
            return replace(ended, stdout=read_output(output) if ended.code == 0 else b"")


def argv(command: Sequence[str]) -> tuple[str, ...]:
    """`{python}` stands for the jail's own interpreter."""
    if not command:
        raise JailBroken("this platform has no compiler configured")
    return tuple(sys.executable if part == "{python}" else part for part in command)


def full(folder: str) -> bool:
    """Whether its file system has no room left, for bytes or for files."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return not disk.f_bavail or bool(disk.f_files and not disk.f_ffree)


def read_output(path: str) -> bytes:
    """A regular file's first bytes; b"" for anything else that stands there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with open(descriptor, "rb") as file:
        return file.read(process.STDOUT) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
