"""The guest of the start-up self-check: tries a few ways out and reports the results.

Its word is believed only because nothing hostile runs beside it.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from sandbox.start.init import ADDRESS

_NEW_USER = 0x10000000
_AF_VSOCK = 40
_FLOOD = 1 << 16
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_LATER = {"statmount": 457, "listmount": 458, "open_tree_attr": 467, "one of the future": 470}
"""By number, the same on x86_64 and aarch64: a filter made from names leaves out those it does not know."""
_STATUS = ("Seccomp", "NoNewPrivs", "CapEff", "CapBnd", "CapAmb")


def main() -> int:
    """Answer `facts` or `linger`; 3 for anything else."""
    do = json.loads(sys.stdin.readline()).get("do")
    if do == "facts":
        print(json.dumps(facts()))
    elif do == "linger":
        print(error_of(lambda: open("/box/a/x", "w").close()), flush=True)
        linger()
    else:
        return 3
    return 0


def facts() -> dict[str, Any]:
    """This process's identity and reach; an error name for a refused attempt, "open" otherwise."""
    with open("/proc/self/status") as text:
        status = {name: value.strip() for name, _, value in (line.partition(":") for line in text)}
    with open("/proc/net/dev") as text:
        interfaces = [line.split(":")[0].strip() for line in text if ":" in line]
    return {
        "uid": os.getuid(),
        "status": {name: status.get(name, "") for name in _STATUS},
        "interfaces": interfaces,
        "userns": error_of(lambda: _checked("unshare", _NEW_USER)),
        "vsock": error_of(lambda: socket.socket(_AF_VSOCK, socket.SOCK_STREAM).close()),
        "environ": error_of(lambda: _nonempty("/proc/1/environ")),
        "memory": error_of(lambda: os.close(os.open("/proc/1/mem", os.O_RDWR))),
        "signal": error_of(lambda: os.kill(1, 0)),
        "reins": {name: error_of(attempt) for name, attempt in _REINS.items()},
        "inotify": error_of(lambda: _checked("inotify_init1", 0)),
        "later": {name: error_of(partial(_called, number)) for name, number in _LATER.items()},
        "unix": error_of(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).close()),
        "root": error_of(lambda: open("/x", "w").close()),
        "broker": _broker(),
    }


def error_of(attempt: Callable[[], object]) -> str:
    """Return the name of the error, or "open" when there was none."""
    try:
        attempt()
    except OSError as refused:
        return errno.errorcode.get(refused.errno or 0, type(refused).__name__)
    return "open"


def linger() -> None:
    """Leave children that ignore every signal and have left the session, then flood until killed.

    Each of them holds the one connection: it is cut when none is left.
    """
    held = socket.create_connection(ADDRESS, timeout=2)
    for _ in range(8):
        if os.fork() == 0:
            os.setsid()
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
    while held:
        os.write(1, b"." * _FLOOD)


def _checked(call: str, argument: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, call)(argument) != 0:
        raise OSError(ctypes.get_errno(), call)


def _called(number: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, 0, 0, 0, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), str(number))


def _io_priority(who: int, number: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_IOPRIO_SET[os.uname().machine], who, number, 0) != 0:
        raise OSError(ctypes.get_errno(), "ioprio_set")


_REINS: dict[str, Callable[[], object]] = {
    "limits": lambda: resource.prlimit(1, resource.RLIMIT_NOFILE),
    "processors": lambda: os.sched_setaffinity(1, os.sched_getaffinity(0)),
    "scheduler": lambda: os.sched_setscheduler(1, os.SCHED_BATCH, os.sched_param(0)),
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, 1, 0),
    "priority of the group": lambda: os.setpriority(os.PRIO_PGRP, 1, 0),
    "priority of the user": lambda: os.setpriority(os.PRIO_USER, 0, 0),
    "i/o priority": lambda: _io_priority(1, 1),
    "i/o priority of the group": lambda: _io_priority(2, 1),
    "i/o priority of the user": lambda: _io_priority(3, 0),
}
"""What would let a guest starve or end the first process, which is of the same user; harmless values."""


def _nonempty(path: str) -> None:
    with open(path, "rb") as file:
        if not file.read(1):
            raise OSError(errno.ENODATA, path)


def _broker() -> str:
    try:
        with socket.create_connection(ADDRESS, timeout=2) as connection:
            connection.sendall(b"GET http://off.the.list/ HTTP/1.1\r\nHost: off.the.list\r\n\r\n")
            return connection.recv(64).decode(errors="replace").split("\r\n")[0]
    except OSError as refused:
        return type(refused).__name__
