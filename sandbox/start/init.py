"""The first process of a jail: limits, the way out, one child, and the truth about how it ended.

It is trusted code in the company of hostile code of the same user, so it cannot be traced or written to
(not dumpable), takes no signal from inside (a namespace's PID 1 gets only those it handles), and says how the
child ended over a socket that the child does not have. It ends, and the kernel then ends the whole pid
namespace with it, when the child ends or when the other end of that socket is gone.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

ADDRESS = ("127.0.0.1", 3128)
GO = b"G"
USED = b"U"
HERE = b"A"
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_TICK_MS = 50
_BOX, _OPT = os.environ.get("QA_PLACES", "/box:/opt").split(":")
"""As in `sandbox.places`, which cannot be imported yet."""
_SYS_CREATE_RULESET, _SYS_RESTRICT_SELF = 444, 446  # the same on x86_64 and aarch64
_SCOPED = 0b11  # LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL, ABI 6


def start(control_fd: int, limits: str, guest: str) -> NoReturn:
    """Run the guest module's `main()` as `run_as_init` does; `limits` is JSON.

    The guest is imported before the fork, so a pooled jail has paid for its imports when a request arrives.
    """
    sys.path += [_OPT, f"{_OPT}/site"]
    run_as_init(control_fd, json.loads(limits), import_module(guest).main)


def run_as_init(control_fd: int, limits: dict[str, int], child: Callable[[], int]) -> NoReturn:
    """Run `child` once as the only guest and leave with its status.

    `control_fd` is a SOCK_SEQPACKET end: the listener goes out over it before anything hostile can come in,
    `GO` comes in before a request is dispatched and is answered by `HERE`, and the child's status goes out
    last, as `{"exit": n}` or `{"signal": n}`, with what it all took: `cpu_s`, `memory` (bytes, at most).
    `USED` asks for that alone, of a guest that goes on. `limits` has the fields of `fleet.jail.model.Limits`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _first_to_go()
    _guard()
    os.closerange(3, control_fd)
    os.closerange(control_fd + 1, 1 << 20)
    control = socket.socket(fileno=control_fd)
    wake = _wake_on_child()
    hand_out_listener(control)
    pid = os.fork()
    if pid == 0:
        control.close()
        _become_guest(limits, child)
    used = Used()
    _leave(control, _watch(control, wake, pid, limits, used), used)


def _first_to_go() -> None:
    """Let a machine that runs out of memory take a jail, not the daemon."""
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("1000")
    except OSError:
        return


def _guard() -> None:
    """Close `/proc/1/mem` and its kind, for the guest child too until it executes; die with bwrap."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _wake_on_child() -> int:
    """Return the read end of a pipe that gets a byte on each SIGCHLD, for use beside a socket in poll."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read_end


def hand_out_listener(control: socket.socket) -> None:
    """Listen inside the empty network namespace and keep no copy: the only way out is served outside."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(ADDRESS)
        listener.listen(64)
        socket.send_fds(control, [b"R"], [listener.fileno()])


def _become_guest(limits: dict[str, int], child: Callable[[], int]) -> NoReturn:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.closerange(3, 1 << 20)
    _scope()
    _limit(limits)
    code = 1
    try:
        code = child()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        _flush()
        os._exit(code & 0xFF)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os._exit(74)


def _scope() -> None:
    """Put the guest in a Landlock domain, where there is one: a second lock on its PID 1."""
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = (ctypes.c_uint64 * 3)(0, 0, _SCOPED)
    ruleset = libc.syscall(_SYS_CREATE_RULESET, ctypes.byref(attributes), ctypes.sizeof(attributes), 0)
    if ruleset >= 0:
        libc.syscall(_SYS_RESTRICT_SELF, ruleset, 0)
        os.close(ruleset)


def _limit(limits: dict[str, int]) -> None:
    """Set the limits inside: a process count outside of this user namespace lags for seconds."""
    cpu = limits["cpu_s"]
    for what, soft, hard in (
        (resource.RLIMIT_DATA, limits["data"], limits["data"]),
        (resource.RLIMIT_FSIZE, limits["file"], limits["file"]),
        (resource.RLIMIT_NOFILE, limits["files"], limits["files"]),
        (resource.RLIMIT_CPU, cpu, cpu + 1),
        (resource.RLIMIT_STACK, limits["stack"], limits["stack"]),
        (resource.RLIMIT_CORE, 1, 1),  # 1, not 0: the kernel then skips piped core handlers as well
    ):
        resource.setrlimit(what, (soft, hard))
    if limits["processes"]:  # 0: a control group counts them
        resource.setrlimit(resource.RLIMIT_NPROC, (limits["processes"],) * 2)


class Used:
    """What the guest and its children took so far; one of them that still runs has not reported its time."""

    def __init__(self) -> None:
        self.memory = 0

    def told(self) -> dict[str, float]:
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {"cpu_s": round(spent.ru_utime + spent.ru_stime, 3), "memory": self.memory}


def _watch(control: socket.socket, wake: int, guest: int, limits: dict[str, int], used: Used) -> int:
    """Reap until the guest ends and return its wait status; a vanished daemon ends everything immediately."""
    poller = select.poll()
    poller.register(control, select.POLLIN)
    poller.register(wake, select.POLLIN)
    wait_ms: int | None = None
    next_look = 0.0
    while True:
        for fd, _ in poller.poll(wait_ms):
            if fd == wake:
                os.read(wake, 4096)
                status = _reap(guest)
                if status is not None:
                    return status
            elif (word := control.recv(16)) == GO:
                control.send(HERE)
                wait_ms = _TICK_MS
            elif word == USED:
                control.send(json.dumps(used.told()).encode())
            else:
                os._exit(1)
        if wait_ms and time.monotonic() >= next_look:
            next_look = time.monotonic() + _TICK_MS / 1000
            if _over(limits, used):
                os.kill(-1, signal.SIGKILL)  # everyone but this process


def _reap(guest: int) -> int | None:
    found: int | None = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == guest:
            found = status


def _over(limits: dict[str, int], used: Used) -> bool:
    """Whether the jail exceeds its memory or tmpfs inodes, which no rlimit counts (jail.md 5)."""
    mine = (_BOX, "/tmp", "/dev/shm") if limits["box"] else ("/tmp", "/dev/shm")  # 0: a host directory
    try:
        for path in mine:
            room = os.statvfs(path)
            if room.f_files and room.f_files - room.f_ffree > limits["inodes"]:
                return True
        # a fork shares what this process had before it: counted in each, a crowd would look like a hog
        own = _resident("1")
        held = sum(max(0, _resident(name) - own) for name in os.listdir("/proc") if name.isdigit())
    except (OSError, ValueError, MemoryError):
        return True  # unreadable counts as over the limit
    used.memory = max(used.memory, held)
    return held > limits["memory"]


def _resident(pid: str) -> int:
    """Bytes of anonymous and shared memory mapped in one process; its file pages belong to everyone.

    0 for one that has ended; every other error is the caller's.
    """
    total = 0
    try:
        with open(f"/proc/{pid}/status", "rb") as status:
            for line in status:
                if line.startswith((b"RssAnon:", b"RssShmem:")):
                    total += int(line.split()[1]) << 10
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return total


def _leave(control: socket.socket, status: int, used: Used) -> NoReturn:
    """Report on the socket and with the exit status; the daemon believes neither alone."""
    word: dict[str, Any]
    if os.WIFSIGNALED(status):
        word, code = {"signal": os.WTERMSIG(status)}, 128 + os.WTERMSIG(status)
    else:
        word, code = {"exit": os.WEXITSTATUS(status)}, os.WEXITSTATUS(status)
    try:
        control.send(json.dumps(word | used.told()).encode())
    except OSError:
        code = 1
    os._exit(code & 0xFF)
