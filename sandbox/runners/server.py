"""A process that executes a program once for each order, seen from outside: started, ordered, watched, ended.

Shared by the fork server of native programs (forkserver.c) and the one of Python programs (python_warm.py).
The protocol is one byte to CONTROL for each execution, and one record from STATUS: wait status, how many
numbers follow, processor time in us, peak in bytes. A child holds neither descriptor. Standard input,
output and error are files without a name, emptied and filled here, so that nothing can block.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import struct
import tempfile
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sandbox.programs import process, usage
from sandbox.runners.command import Box
from sandbox.runners.standing import changed, is_stopped, standing

CONTROL, STATUS = 200, 201
FILE = 16 << 20
"""RLIMIT_FSIZE of an execution, bytes: far above the caps of what is read."""
START_S = 30.0
"""Seconds that a server may take to begin."""

_RECORD = struct.Struct("=iIQQ")
_CORES = os.cpu_count() or 1
_LOOK_S = 0.02
_GONE_S = 1.0
"""Seconds that what was killed may take to be gone, once it has another parent."""
_MOST_NUMBERS = 1 << 20


class ServerLost(Exception):
    """It ended, or said what no server says: what the execution did is not known. Carries the reason."""


@dataclass(frozen=True, slots=True)
class ServedEnd:
    """How an execution ended; `status` is its wait status, `cpu_s` seconds, `peak` bytes."""

    status: int
    hung: bool
    cpu_s: float
    peak: int
    numbers: array[int]

    @property
    def code(self) -> int:
        return os.waitstatus_to_exitcode(self.status)


class StandardStreams:
    """Three unnamed files of one box: standard input, output and error of every execution of a server."""

    def __init__(self, box: Box) -> None:
        self._in, self.stdin = _unnamed(box.place, os.O_RDONLY)
        self._out, self.stdout = _unnamed(box.place, os.O_WRONLY | os.O_APPEND)
        self._err, self.stderr = _unnamed(box.place, os.O_WRONLY | os.O_APPEND)
        self.burst = False
        self._used: list[int] = []

    def fill(self, stdin: bytes) -> None:
        """Empty all, then write standard input; a process left behind cannot be there any more."""
        for fd in (self._in, self._out, self._err) if self.burst else (self._in, *self._used):
            os.ftruncate(fd, 0)
        if stdin:
            os.pwrite(self._in, stdin, 0)
        os.lseek(self.stdin, 0, os.SEEK_SET)
        self.burst = True  # until it is read: what was not is not known to be empty

    def said(self) -> tuple[bytes, bytes]:
        """Standard output and error, up to their caps.

        `burst` says afterwards whether one reached a limit, where a program with pipes ends in another way.
        """
        out, err = os.fstat(self._out).st_size, os.fstat(self._err).st_size
        self.burst = out >= process.STDOUT or err >= FILE
        self._used = [fd for fd, size in ((self._out, out), (self._err, err)) if size]
        stdout = os.pread(self._out, min(out, process.STDOUT), 0) if out else b""
        return stdout, os.pread(self._err, min(err, process.STDERR), 0) if err else b""

    def complained(self) -> int:
        """Bytes on standard error so far."""
        return os.fstat(self._err).st_size

    def close(self) -> None:
        for fd in (self._in, self.stdin, self._out, self.stdout, self._err, self.stderr):
            os.close(fd)


def _unnamed(folder: str, flags: int) -> tuple[int, int]:
    """A file's two descriptors: ours, and one for children."""
    ours, path = tempfile.mkstemp(dir=folder)
    theirs = os.open(path, flags | os.O_CLOEXEC)
    os.unlink(path)
    return ours, theirs


class ServerProcess:
    """One running server; ServerLost when it does not begin. `memory` is its RLIMIT_DATA in bytes."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        streams: StandardStreams,
        memory: int,
    ) -> None:
        order_r, self._order = os.pipe()
        self._said, said_w = os.pipe()
        self._streams = streams
        try:
            self.pid = self._spawn(argv, environment, folder, (streams, order_r, said_w))
        except OSError as error:
            os.close(self._order)
            os.close(self._said)
            raise ServerLost(f"{argv[0]}: {error.strerror}") from None
        finally:
            os.close(order_r)
            os.close(said_w)
        self._poll = select.poll()
        self._poll.register(self._said, select.POLLIN)
        process.limit(self.pid, resource.RLIMIT_DATA, memory)
        process.limit(self.pid, resource.RLIMIT_FSIZE, FILE)
        try:
            if not self._poll.poll(START_S * 1000):
                raise ServerLost(f"it did not begin within {START_S:.0f} s")
            self._record()
        except ServerLost:
            self.close()
            raise
        self._standing = standing(self.pid)

    @staticmethod
    def _spawn(
        argv: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        descriptors: tuple[StandardStreams, int, int],
    ) -> int:
        streams, order, said = descriptors
        places = (
            (streams.stdin, 0),
            (streams.stdout, 1),
            (streams.stderr, 2),
            (order, CONTROL),
            (said, STATUS),
        )
        with process.inside(folder):
            return os.posix_spawn(
                argv[0],
                list(argv),
                environment,
                file_actions=[(os.POSIX_SPAWN_DUP2, fd, to) for fd, to in places],
                setsid=True,
                setsigdef=[signal.SIGALRM, signal.SIGPIPE, signal.SIGXFSZ],
            )

    def run(self, order: bytes, wall_s: float, cpu_s: float) -> ServedEnd:
        """One execution; it is killed after `wall_s`, or `cpu_s` of processor time."""
        before = sum(map(_cpu_s, children(self.pid)))
        try:
            os.write(self._order, order)
        except OSError:
            raise ServerLost("it was killed") from None
        hung = not self._await(wall_s, cpu_s, before)
        if hung:
            self._stop_execution()
            if is_stopped(self.pid):
                raise ServerLost("it was stopped")
            if not self._poll.poll(START_S * 1000):
                raise ServerLost("it did not end an execution")
        try:
            status, cpu_us, peak, numbers = self._record()
        except ServerLost:
            if not hung:
                raise
            return ServedEnd(signal.SIGKILL, hung, cpu_s, 0, array("I"))
        if how := changed(self._standing, self.pid):
            raise ServerLost(f"an execution {how}")
        return ServedEnd(status, hung, cpu_us / 1e6, peak, numbers)

    def _await(self, wall_s: float, cpu_s: float, served: float) -> bool:
        """Whether a record came within the limits. `served`: what a process that serves many had used."""
        nap = min(wall_s, cpu_s / _CORES)
        if self._poll.poll(nap * 1000):
            return True
        end = time.monotonic() + wall_s - nap
        used = min(max(self._children_cpu_s() - served, 0.0), nap * _CORES)
        before = usage.of_group(self.pid).cpu_s - used
        while (left := end - time.monotonic()) > 0:
            used = usage.of_group(self.pid).cpu_s - before
            if used >= cpu_s:
                return False
            if self._poll.poll(min(left, max((cpu_s - used) / _CORES, _LOOK_S)) * 1000):
                return True
        return False

    def _stop_execution(self) -> None:
        self._kill_children()

    def _children_cpu_s(self) -> float:
        """Processor time of what runs now; the server's own total holds every execution before."""
        return sum((usage.of_group(pid).cpu_s for pid in children(self.pid)), 0.0)

    def _kill_children(self) -> None:
        for pid in children(self.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _record(self) -> tuple[int, int, int, array[int]]:
        status, count, cpu_us, peak = _RECORD.unpack(self._read(_RECORD.size))
        if count > _MOST_NUMBERS:
            raise ServerLost("it said more numbers than any program has places")
        return status, cpu_us, peak, array("I", self._read(4 * count))

    def _read(self, size: int) -> bytes:
        data = os.read(self._said, size) if size else b""
        while len(data) < size:
            chunk = os.read(self._said, size - len(data)) if data else b""
            if not chunk:
                raise ServerLost("it was killed, or could not go on")
            data += chunk
        return data

    def close(self) -> None:
        """End it with its children."""
        left = children(self.pid)
        self._kill_children()
        for end in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        end_by = time.monotonic() + _GONE_S
        while any(os.path.exists(f"/proc/{pid}") for pid in left) and time.monotonic() < end_by:
            time.sleep(0.001)
        os.close(self._order)
        os.close(self._said)


def _cpu_s(pid: int) -> float:
    """Processor time of one process so far, by its clock (clock_getcpuclockid); 0 for one that is gone."""
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0.0


def children(pid: int) -> list[int]:
    """Direct children of a process; none for one that is gone."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []
