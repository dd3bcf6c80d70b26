"""K: namespaces, mounts, large kernel surfaces, foreign system call doors; L: facts about the host."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import signal
import socket

from .registry import Facts, probe, refused, require
from .system import call, raw

_NEW = {
    "TIME": 0x80,
    "NS": 0x20000,
    "CGROUP": 0x2000000,
    "UTS": 0x4000000,
    "IPC": 0x8000000,
    "USER": 0x10000000,
    "PID": 0x20000000,
    "NET": 0x40000000,
}
_HIGH = 1 << 40
_MASKED = ("cmdline", "config.gz", "kallsyms", "diskstats", "interrupts", "sys/kernel/random/boot_id")


def _status() -> dict[str, str]:
    with open("/proc/self/status") as text:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in text)}


def _killed_by(attack: object) -> int:
    """The signal that ended a forked child, 0 when it survived."""
    pid = os.fork()
    if pid == 0:
        try:
            attack()  # type: ignore[operator]
        finally:
            os._exit(0)
    status = os.waitpid(pid, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


@probe("K01")
def unshare(facts: Facts) -> str:
    for flag in _NEW.values():
        refused("EPERM", call, "unshare", flag)
    return "EPERM"


@probe("K02")
def clone(facts: Facts) -> str:
    for name, flag in _NEW.items():
        if name != "TIME":  # its bit is part of clone's exit signal
            refused("EPERM", call, "clone", flag | signal.SIGCHLD, 0, 0, 0, 0)
    return refused("ENOSYS", call, "clone3", 0, 88)


@probe("K03")
def mounts(facts: Facts) -> str:
    refused("EPERM", call, "setns", 0, 0)
    refused("EPERM", call, "mount", b"none", b"/tmp", b"tmpfs", 0, 0)
    refused("EPERM", call, "mount", b"none", b"/", b"", 32 | 4096, 0)
    refused("EPERM", call, "umount2", b"/proc/cmdline", 2)
    return refused("EPERM", call, "pivot_root", b"/box", b"/box")


@probe("K04")
def new_mounts(facts: Facts) -> str:
    refused("ENOSYS", call, "open_tree", 0, b"/", 1)
    refused("ENOSYS", call, "mount_setattr", 0, b"/", 0, 0, 0)
    refused("ENOSYS", call, "future")
    return refused("ENOSYS", call, "fsopen", b"tmpfs", 0)


@probe("K05")
def io_uring(facts: Facts) -> str:
    return refused("EPERM", call, "io_uring_setup", 8, b"\0" * 120)


@probe("K06")
def bpf(facts: Facts) -> str:
    return refused("EPERM", call, "bpf", 0, b"\0" * 64, 64)


@probe("K07")
def perf(facts: Facts) -> str:
    return refused("EPERM", call, "perf_event_open", b"\0" * 128, 0, 0, 0, 0)


@probe("K08")
def userfaultfd(facts: Facts) -> str:
    return refused("EPERM", call, "userfaultfd", 1)


@probe("K14")
def inotify(facts: Facts) -> str:
    """Its instances are counted for the host's user."""
    refused("EPERM", call, "inotify_init1", 0)
    return refused("EPERM", call, "inotify_add_watch", 0, b"/box", 2)


@probe("K09")
def add_key(facts: Facts) -> str:
    return refused("EPERM", call, "add_key", b"user", b"qa", b"x", 1, 2**64 - 3)


@probe("K10")
def callers_keyring(facts: Facts) -> str:
    search, session = 10, 2**64 - 3
    return refused("EPERM", call, "keyctl", search, session, b"user", facts["key"].encode(), 0)


@probe("K11", destructive=True)
def machine(facts: Facts) -> str:
    refused("EPERM", call, "kexec_load", 0, 0, 0, 0)
    refused("EPERM", call, "init_module", b"", 0, b"")
    refused("EPERM", call, "reboot", 0xFEE1DEAD, 672274793, 0x1234567, 0)
    refused("EPERM", call, "open_by_handle_at", 0, b"\0" * 64, 0)
    return refused("EPERM", call, "personality", 0x0040000)


@probe("K12-high")
def high_halves(facts: Facts) -> str:
    refused("EPERM", call, "unshare", _HIGH | _NEW["USER"])
    return refused("EAFNOSUPPORT", call, "socket", _HIGH | 40, 1, 0)


@probe("K12-x32")
def x32(facts: Facts) -> str:
    if platform.machine() != "x86_64":
        return "no such door on this machine"
    ended = _killed_by(lambda: raw(0x40000000 | 39))
    return require(ended == signal.SIGSYS, f"signal {ended}")


@probe("K12-int80", destructive=True)
def int80(facts: Facts) -> str:
    if platform.machine() != "x86_64":
        return "no such door on this machine"

    def attack() -> None:
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20 (getpid); int 0x80; ret
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()

    ended = _killed_by(attack)
    return require(ended == signal.SIGSYS, f"signal {ended}")


@probe("K13")
def status(facts: Facts) -> str:
    seen = {name: _status()[name] for name in ("Seccomp", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs")}
    zero = "0" * 16
    wanted = {"Seccomp": "2", "CapEff": zero, "CapBnd": zero, "CapAmb": zero, "NoNewPrivs": "1"}
    return require(seen == wanted and os.getuid() == facts["user"], seen)


@probe("L01")
def masked(facts: Facts) -> str:
    for name in _MASKED:
        try:
            with open(f"/proc/{name}", "rb") as file:
                require(file.read(64) == b"", name)
        except (FileNotFoundError, PermissionError):
            continue
    return "empty or closed"


@probe("L02")
def identity(facts: Facts) -> str:
    require(socket.gethostname() == "jail" != facts["hostname"], socket.gethostname())
    return require(not os.path.exists("/sys/class/dmi"), "no /sys")


@probe("L03")
def mount_sources(facts: Facts) -> str:
    """A known leftover: mountinfo names where the read-only sources lie on the host. Nothing else of it."""
    with open("/proc/self/mountinfo") as text:
        sources = [line.split()[3] for line in text]
    private = [source for source in sources if any(path in source for path in facts["private"])]
    return require(not private, private or "only the sources of read-only mounts")
