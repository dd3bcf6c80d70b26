"""The process that jails are forked from: `zygote.py CONTROL_FD GUEST_MODULE`.

Python and the guest are loaded here once; each jail is a fork of this process that is used once and thrown
away. A fork gets user, mount, pid, network, ipc, uts and cgroup namespaces of its own, on top of the mounts
that bubblewrap made for this process, then loses every capability, and only then hears of a request. This
process meets nothing hostile: no fork has a way back to it, and its words come from the daemon alone.

A message on the control socket asks for a jail: a line of JSON with `limits`, `box` and `masks`, then the
system call filter; with it come the jail's control socket, its standard streams, and a socket for its status.
Over the latter goes `P` with a pidfd of the jail's first process, or `E` and why there is none; and last how
that process ended, as a shell gives it.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

OPT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STREAMS = 3
MADE, FAILED = b"P", b"E"
_LONGEST = 1 << 17
"""Bytes of a message: a filter has at most 4096 instructions of 8 bytes."""

_NAMESPACES = 0x10000000 | 0x20000 | 0x20000000 | 0x40000000 | 0x8000000 | 0x4000000 | 0x2000000
"""CLONE_NEWUSER, NEWNS, NEWPID, NEWNET, NEWIPC, NEWUTS, NEWCGROUP (clone(2))."""
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 1 << 14, 1 << 18
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_PR_CAPBSET_DROP, _PR_SET_NAME = 24, 15
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITIES = 64
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> NoReturn:
    """Load the guest, say so, and fork a jail for each message until the daemon is gone."""
    sys.path += [OPT, f"{OPT}/site"]
    control = socket.socket(fileno=int(sys.argv[1]))
    guest = import_module(sys.argv[2])
    getattr(guest, "preload", lambda: None)()
    from sandbox.start import init  # and all that a fork needs, loaded before it
    from sandbox.start.syscall_filter import install

    def become(fd: int, limits: dict[str, int], program: bytes) -> NoReturn:
        install(program)
        init.run_as_init(fd, limits, guest.main)

    _named("qa-zygote")
    signal.signal(signal.SIGCHLD, _reap)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # a collection in a fork would write to, and so copy, all that it shares
    init.hand_out_listener(control)
    while True:
        message, fds, _, _ = socket.recv_fds(control, _LONGEST, STREAMS + 2)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            control.close()
            _hold(message, fds, become)
        for fd in fds:
            os.close(fd)


def _reap(*_: object) -> None:
    """Wait for forks that have ended: how a jail ended goes over its socket, its time is on our account."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _hold(
    message: bytes, fds: list[int], become: Callable[[int, dict[str, int], bytes], NoReturn]
) -> NoReturn:
    """Make the namespaces, start the jail's first process in them, and wait for its end."""
    jail, *streams, status_fd = fds
    status = socket.socket(fileno=status_fd)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        asked, _, program = message.partition(b"\n")
        wanted: dict[str, Any] = json.loads(asked)
        _named("qa-jail")
        _separate(wanted["limits"], wanted["box"])
        first = os.fork()
        if first == 0:
            try:
                for target, fd in enumerate(streams):
                    os.dup2(fd, target)
                _own_proc(wanted["masks"])
                os.setsid()
                os.chdir(wanted["box"])
                _drop_capabilities()
                status.close()
                become(jail, wanted["limits"], program)
            except BaseException as error:  # its words are the only ones that the daemon hears
                os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace")[-500:])
            finally:
                os._exit(1)
        pidfd = os.pidfd_open(first)
        _drop_capabilities()
        socket.send_fds(status, [MADE], [pidfd])
        for fd in (pidfd, jail, *streams, 0, 1, 2):
            os.close(fd)
        _, how = os.waitpid(first, 0)
        code = os.waitstatus_to_exitcode(how)
        status.send(str(128 - code if code < 0 else code).encode())
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        status.send(FAILED + f"{error.strerror}{where}".encode(errors="replace")[:500])
    finally:
        os._exit(0)


def _separate(limits: dict[str, int], box: str) -> None:
    """Enter namespaces of one's own, with file systems of one's own wherever this process could write."""
    _checked(_libc.unshare(_NAMESPACES), "namespaces")
    for name, text in (("setgroups", "deny"), ("uid_map", "1000 1000 1"), ("gid_map", "1000 1000 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    _mount("none", "/", "", _REC | _PRIVATE)
    places = (
        ("/dev/shm", limits["shm"], "1777"),
        ("/tmp", limits["tmp"], "1777"),
        (box, limits["box"], "0700"),
    )
    for place, size, mode in places:
        _mount("tmpfs", place, "tmpfs", _NOSUID | _NODEV, f"size={size},mode={mode}")
    _mount("devpts", "/dev/pts", "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


def _own_proc(masks: list[str]) -> None:
    """`/proc` of this pid namespace, what it says of the host covered; no user namespace below this one."""
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    for path in masks:
        _mount("/dev/null", path, "", _BIND)
        _mount("none", path, "", _BIND | _REMOUNT | _RDONLY | _NOSUID | _NODEV)
    with open("/proc/sys/user/max_user_namespaces", "w") as file:
        file.write("0")


def _drop_capabilities() -> None:
    """Every one, in every set, for good."""
    for number in range(_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # EINVAL beyond the last one that the kernel knows
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())), "capabilities")


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    words = (source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode() or None)
    _checked(_libc.mount(*words), target)


def _named(name: str) -> None:
    """What `ps` shows."""
    _libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def _checked(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)


if __name__ == "__main__":
    main()
