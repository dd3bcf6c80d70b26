"""P: other processes, their memory and environment; our own first process among them."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import subprocess
import sys

from .registry import Facts, probe, refused, require
from .system import call

_NAMES = {"PATH", "HOME", "LANG", "LC_CTYPE", "LD_LIBRARY_PATH", "PWD"}
_PTRACE_SEIZE, _PTRACE_TRACEME = 0x4206, 0
_ATTACK = """
import os, sys
try:
    os.open(sys.argv[1], os.O_RDWR)
except OSError as error:
    print(error.errno)
"""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_HIGH = 1 << 40


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _pids() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]


@probe("P01")
def visible(facts: Facts) -> str:
    seen = [_read(f"/proc/{pid}/cmdline") for pid in _pids()]
    marked = [line for line in seen if facts["canary"].encode() in line]
    return require(len(seen) < 12 and not marked, f"{len(seen)} processes, {len(marked)} of the host")


@probe("P02", destructive=True)
def signals(facts: Facts) -> str:
    refused("ESRCH", os.kill, facts["canary_pid"], signal.SIGKILL)
    refused("ESRCH", os.killpg, facts["canary_pid"], signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        os.kill(-1, signal.SIGTERM)  # the host side looks at its canary afterwards
    except OSError as error:
        return str(error)
    return "only this namespace"


@probe("P02-first", destructive=True)
def signal_first_process(facts: Facts) -> str:
    """A namespace's first process is immune; with Landlock scopes (Linux 6.12) out of reach too."""
    major, minor = map(int, os.uname().release.split(".")[:2])
    if (major, minor) >= (6, 12):
        return refused("EPERM", os.kill, 1, signal.SIGKILL)
    os.kill(1, signal.SIGKILL)
    return "immune"


@probe("P03")
def trace(facts: Facts) -> str:
    return refused("EPERM ESRCH", call, "ptrace", _PTRACE_SEIZE, facts["canary_pid"], 0, 0)


@probe("P04")
def read_memory(facts: Facts) -> str:
    first = refused("EPERM ESRCH", call, "process_vm_readv", facts["canary_pid"], 0, 0, 0, 0, 0)
    return first + refused("EPERM ESRCH", call, "pidfd_getfd", 0, 0, 0)


@probe("P05")
def environments(facts: Facts) -> str:
    paths = [f"/proc/{pid}/{name}" for pid in _pids() for name in ("environ", "cmdline")]
    found = [path for path in paths if facts["secret"].encode() in _read(path)]
    return require(not found, found or f"absent in {len(paths)}")


@probe("P06")
def own_environment(facts: Facts) -> str:
    extra = set(os.environ) - _NAMES
    return require(not extra, extra or sorted(os.environ))


@probe("P07")
def first_process(facts: Facts) -> str:
    refused("EACCES EPERM", os.open, "/proc/1/mem", os.O_RDWR)
    refused("EACCES EPERM", os.listdir, "/proc/1/fd")
    refused("EPERM", call, "ptrace", _PTRACE_SEIZE, 1, 0, 0)
    return refused("EACCES EPERM", os.open, "/proc/1/environ", os.O_RDONLY)


@probe("P07-limits", destructive=True)
def limits_of_first_process(facts: Facts) -> str:
    """It is of the guest's user: with no descriptors or no seconds left it could not watch."""
    for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU):
        refused("EPERM", resource.prlimit, 1, what)
        refused("EPERM", resource.prlimit, 1, what, (0, 0))
        refused("EPERM", call, "prlimit64", _HIGH | 1, what, b"\0" * 16, 0)
    own = resource.getrlimit(resource.RLIMIT_NOFILE)
    return require(resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, own) == own, own)


@probe("P07-priority", destructive=True)
def priority_of_first_process(facts: Facts) -> str:
    """By number, by group and by user; of itself a guest may set it."""
    group = os.getpgid(1)
    for which, who in ((0, 1), (1, 0), (1, 1), (1, group), (2, 0), (2, os.getuid()), (0, _HIGH | 1)):
        refused("EPERM", call, "setpriority", which, who, 19)
    for which, who in ((1, 1), (2, 0), (2, 1), (2, group), (3, 0), (3, os.getuid()), (1, _HIGH | 1)):
        refused("EPERM", call, "ioprio_set", which, who, 3 << 13)
    for policy in (os.SCHED_IDLE, os.SCHED_BATCH):
        refused("EPERM", os.sched_setscheduler, 1, policy, os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
    return require(call("ioprio_set", 1, 0, 0) == 0, "its own alone")


@probe("P07-processors", destructive=True)
def processors_of_first_process(facts: Facts) -> str:
    one = {min(os.sched_getaffinity(0))}
    refused("EPERM", os.sched_setaffinity, 1, one)
    refused("EPERM", call, "sched_setaffinity", _HIGH | 1, 8, b"\1" + b"\0" * 7)
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    return "its own alone"


@probe("P07-guest")
def guest_by_its_child(facts: Facts) -> str:
    """What a tool executes runs as the same user: it must not reach into the tool."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _ATTACK, f"/proc/{os.getpid()}/mem"],
        capture_output=True,
        text=True,
        timeout=10,
    )
    return require(done.stdout.strip() in ("1", "13"), done.stdout + done.stderr)


@probe("P08")
def descriptors(facts: Facts) -> str:
    seen = []
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            os.fstat(fd)
        except OSError:
            continue  # the listing's own
        seen.append(fd)
    return require(sorted(seen) == [0, 1, 2], seen)


@probe("P09", destructive=True)
def terminal_input(facts: Facts) -> str:
    ours, theirs = os.openpty()
    try:
        for fd in (0, theirs):
            for request in (_TIOCSTI, _TIOCLINUX):
                refused("EPERM", fcntl.ioctl, fd, request, b"x")
                refused("EPERM", call, "ioctl", fd, request | 1 << 40, b"x")
    finally:
        os.close(ours)
        os.close(theirs)
    return "EPERM"


@probe("T06")
def trace_me(facts: Facts) -> str:
    return refused("EPERM", call, "ptrace", _PTRACE_TRACEME, 0, 0, 0)
