"""One untrusted child process inside the jail: fed, bounded, timed, and judged by its wait status alone."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import selectors
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sandbox.errors import Failure
from sandbox.places import BOX
from sandbox.programs import usage
from sandbox.programs.hang import ProcessorTime
from sandbox.programs.starts import interpreter_variables, not_started
from sandbox.programs.usage import Usage

MEMORY = 512 << 20
"""RLIMIT_DATA of a child, bytes, unless its profile says otherwise; far above what a sound compiler of small
programs uses."""

STDOUT = 4 << 20
STDERR = 64 << 10
EXIT_DIAGNOSTIC = 1

_LOOK_S = 0.02
"""Seconds between two looks at the processor time of a child that is near its limit."""

_CORES = os.cpu_count() or 1
ENVIRONMENT: Mapping[str, str] = {"PATH": "/usr/bin:/bin", "HOME": BOX, "LANG": "C.UTF-8"}
"""What every child sees."""
_NO_VARIABLES: Mapping[str, str] = {}


class Ending(StrEnum):
    ACCEPTED = "accepted"  # exit 0
    CLEAN_ERROR = "clean_error"  # exit 1 with a diagnostic
    PANIC = "panic"  # any other exit status; 101 is what Rust uses
    CRASH = "crash"  # a signal, or output without end
    HANG = "hang"  # still there at a limit; its process group was killed
    MEMORY = "memory"  # ended badly with its memory at the limit, or killed by the kernel
    INTERFERENCE = "interference"  # it killed, stopped or limited the process that started it
    UNKNOWN = "unknown"  # still there at a limit, and nothing shows that it was not for a busy machine


OUTCOMES = ("", *(one.value for one in Ending))
"""Words for how a compiler ended; "" where none was started."""


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """`code` is the exit status, or minus the signal number.

    Here HANG only says that a limit was reached: `spent` against that of a control says why (hang.py).
    """

    ending: Ending
    code: int
    stdout: bytes
    stderr: bytes
    spent: ProcessorTime


def run(  # noqa: PLR0913  the limits of a child
    argv: Sequence[str],
    stdin: bytes,
    wall_s: float,
    cpu_s: float = math.inf,
    *,
    environment: Mapping[str, str] = _NO_VARIABLES,
    folder: str = "",
    memory: int = MEMORY,
) -> ProcessEnd:
    """Run `argv` in its own process group; Failure `cannot_start` when it did not even begin.

    It is stopped when it and its descendants have used `cpu_s` seconds of processor time, or after `wall_s`.
    `environment` is added to ENVIRONMENT; `folder` is its working directory, "" this process's own; `memory`
    its RLIMIT_DATA in bytes.
    """
    started = time.monotonic()
    child = _Child(argv, stdin, environment, folder, memory)
    try:
        hung = not child.pump(wall_s, cpu_s)
    finally:
        status, used = child.end()
    code = os.waitstatus_to_exitcode(status)
    # a child's peak starts at what this process held when it forked: only above that it is the child's own
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak = used.ru_maxrss << 10 if used.ru_maxrss > own else 0
    if not hung and not child.flooded and (why := not_started(argv, code, bytes(child.stderr))):
        raise Failure("cannot_start", why)
    ending = Ending.HANG if hung else _judge(code, peak >= memory * 4 // 5, child.stderr)
    if child.flooded:
        ending = Ending.CRASH
    total = child.usage | Usage(used.ru_utime + used.ru_stime)
    spent = ProcessorTime(total.cpu_s, time.monotonic() - started, total.queued_s, not hung)
    return ProcessEnd(ending, code, bytes(child.stdout), bytes(child.stderr), spent)


def _judge(code: int, full: bool, stderr: bytes | bytearray) -> Ending:
    if code == 0:
        return Ending.ACCEPTED
    if full or code == -signal.SIGKILL:
        return Ending.MEMORY
    if code == EXIT_DIAGNOSTIC and stderr.strip():
        return Ending.CLEAN_ERROR
    return Ending.CRASH if code < 0 else Ending.PANIC


class _Child:
    """The process and its three pipes, served by one loop so that none of them can block the others."""

    def __init__(
        self, argv: Sequence[str], stdin: bytes, environment: Mapping[str, str], folder: str, memory: int
    ) -> None:
        self.stdout, self.stderr = bytearray(), bytearray()
        self.flooded = False
        self.usage = Usage()
        self._look_at = math.inf
        self._pending = memoryview(stdin)
        (out_r, out_w), (err_r, err_w), (in_r, in_w) = os.pipe(), os.pipe(), os.pipe()
        try:
            variables = {**ENVIRONMENT, **interpreter_variables(argv), **environment}
            with inside(folder):
                self.pid = _spawn(argv, (in_r, out_w, err_w), variables)
            limit(self.pid, resource.RLIMIT_DATA, memory)
        except OSError as error:
            for fd in (out_r, err_r, in_w):
                os.close(fd)
            why = f"{argv[0] if argv else 'no program'} cannot be started here: {error.strerror}"
            raise Failure("cannot_start", why) from None
        finally:
            for fd in (in_r, out_w, err_w):
                os.close(fd)
        self._in, self._out, self._err = in_w, out_r, err_r
        self._exit = os.pidfd_open(self.pid)
        self._status: tuple[int, resource.struct_rusage] | None = None
        self._open = {in_w, out_r, err_r}
        for fd in self._open:
            os.set_blocking(fd, False)

    def pump(self, wall_s: float, cpu_s: float) -> bool:
        """Feed and read until the process ends; False at a limit. A descendant's pipe does not count."""
        end = time.monotonic() + wall_s
        self._look_at = time.monotonic() + cpu_s / _CORES
        with selectors.DefaultSelector() as selector:
            selector.register(self._exit, selectors.EVENT_READ)
            selector.register(self._out, selectors.EVENT_READ)
            selector.register(self._err, selectors.EVENT_READ)
            selector.register(self._in, selectors.EVENT_WRITE)
            while not self.flooded and (nap := self._nap(end, cpu_s)) > 0:
                ready = {key.fd for key, _ in selector.select(nap)}
                for fd in ready & self._open:
                    if not self._serve(fd):
                        selector.unregister(fd)
                        self._close(fd)
                if self._exit in ready:
                    self._drain()
                    return True
        return self.flooded

    def _nap(self, end: float, cpu_s: float) -> float:
        """Seconds until a limit can be reached, with all cores at work; 0 when one is. A look costs."""
        now = time.monotonic()
        if now >= end or now >= self._look_at:
            self.usage |= usage.of_group(self.pid)
            left = (cpu_s - self.usage.cpu_s) / _CORES
            self._look_at = now + max(left, _LOOK_S)
            if left <= 0:
                return 0.0
        return max(min(end, self._look_at) - now, 0.0)

    def end(self) -> tuple[int, resource.struct_rusage]:
        """Kill the whole group, reap, close; the wait status and what the process used."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # gone: a zombie may refuse a signal
            os.killpg(self.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self.pid, 0)
        for fd in list(self._open):
            self._close(fd)
        os.close(self._exit)
        return status, usage

    def _serve(self, fd: int) -> bool:
        """One step on one pipe; False when it is finished."""
        if fd == self._in:
            try:
                self._pending = self._pending[os.write(self._in, self._pending[: 1 << 16]) :]
            except BlockingIOError:
                return True
            except BrokenPipeError:  # it may end without reading all
                return False
            return bool(self._pending)
        sink, cap = (self.stdout, STDOUT) if fd == self._out else (self.stderr, STDERR)
        chunk = os.read(fd, 1 << 16)
        sink += chunk[: cap - len(sink)]
        self.flooded |= fd == self._out and len(sink) >= cap
        return bool(chunk)

    def _drain(self) -> None:
        for fd in (self._out, self._err):
            try:
                while fd in self._open and not self.flooded and self._serve(fd):
                    pass
            except BlockingIOError:
                continue

    def _close(self, fd: int) -> None:
        self._open.discard(fd)
        os.close(fd)


def _inheritable() -> list[int]:
    """Descriptors beyond the three that an exec would keep; none in a jail, whatever started it elsewhere."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the listing's own is gone by now
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
    return found


@contextlib.contextmanager
def inside(folder: str) -> Iterator[None]:
    """In this folder for a moment: `posix_spawn` cannot change it for the child."""
    if not folder:
        yield
        return
    before = os.open(".", os.O_PATH | os.O_DIRECTORY)
    try:
        os.chdir(folder)
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def _spawn(argv: Sequence[str], streams: tuple[int, int, int], environment: Mapping[str, str]) -> int:
    if not argv:
        raise FileNotFoundError(2, "no command is configured")
    return os.posix_spawn(
        argv[0],
        list(argv),
        environment,
        file_actions=[
            *((os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate(streams)),
            *((os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable()),
        ],
        setsid=True,
        setsigdef=[signal.SIGALRM, signal.SIGPIPE],
    )


def limit(pid: int, which: int, most: int) -> None:
    """Lower one of a process's limits. After the fact, since nothing may run between fork and exec; what the
    child works on, its input, comes later."""
    with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
        before = resource.prlimit(pid, which)[1]
        allowed = most if before == resource.RLIM_INFINITY else min(most, before)
        resource.prlimit(pid, which, (allowed, allowed))
