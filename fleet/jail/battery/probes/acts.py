"""The guest of the scenarios: does one thing that the host side then looks at."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import resource
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from sandbox import spec

Request = dict[str, Any]


def main() -> int:
    """Do `request["do"]`; its return value is the exit status."""
    request = json.loads(sys.stdin.readline())
    return ACTS[request["do"]](request) or 0


def leave(request: Request) -> int:
    return int(request["code"])


def echo(request: Request) -> None:
    print(request["text"])


def crash(request: Request) -> None:
    os.kill(os.getpid(), request["signal"])
    time.sleep(5)


def fail(request: Request) -> None:
    raise RuntimeError("the guest failed")


def sleep(request: Request) -> None:
    time.sleep(60)


def flood(request: Request) -> None:
    while True:
        os.write(request["fd"], b"x" * 65536)


def lines(request: Request) -> None:
    sys.stdout.buffer.write(bytes(range(256)) * request["count"])


def linger(request: Request) -> None:
    """40 processes that ignore signals and have left the session; then past any deadline."""
    for _ in range(40):
        if os.fork() == 0:
            os.setsid()
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGXCPU):
                signal.signal(number, signal.SIG_IGN)
            if os.fork() == 0:
                try:
                    os.open("/proc/1/mem", os.O_RDWR)
                finally:
                    time.sleep(60)
            os._exit(0)
    print("lingering", flush=True)
    time.sleep(60)


def stop(request: Request) -> None:
    """Stop every process of the jail that can be stopped."""
    for _ in range(4):
        if os.fork() == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGSTOP)


def spin(request: Request) -> None:
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    print("spinning", flush=True)
    while True:
        pass


def share(request: Request) -> None:
    """Shared anonymous memory, which RLIMIT_DATA does not count."""
    page = mmap.mmap(-1, request["bytes"])
    for at in range(0, request["bytes"], 4096):
        page[at] = 1
    time.sleep(10)


def blind(request: Request) -> None:
    """Take from the first process what it needs to see; then what it would have seen."""
    attacks: tuple[Callable[[], object], ...] = (
        lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)),
        lambda: resource.prlimit(1, resource.RLIMIT_NPROC, (0, 0)),
        lambda: os.setpriority(os.PRIO_USER, 0, 19),
        lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),
        lambda: os.sched_setaffinity(1, {min(os.sched_getaffinity(0))}),
    )
    for attack in attacks:
        with contextlib.suppress(OSError):
            attack()
    share(request)


def crowd(request: Request) -> None:
    """Several processes, each below its own limit."""
    for _ in range(8):
        if os.fork() == 0:
            heap = bytearray(request["bytes"] // 6)
            time.sleep(10)
            os._exit(len(heap) & 1)
    time.sleep(10)


def inodes(request: Request) -> None:
    for number in range(300_000):
        os.close(os.open(f"/tmp/{number}", os.O_CREAT | os.O_WRONLY))


def connect(request: Request) -> None:
    """Ask whoever serves the way out who they are."""
    broker = urlsplit(spec.BROKER)
    try:
        with socket.create_connection((broker.hostname or "", broker.port or 0), timeout=5) as connection:
            connection.sendall(b"who\n")
            print(connection.recv(64).decode() or "closed")
    except OSError as error:
        print(type(error).__name__)


def arrive(request: Request) -> None:
    """Tell whoever serves the way out, and stay."""
    connect(request)
    time.sleep(120)


def reconnect(request: Request) -> None:
    """Talk twice: the broker may be gone in between."""
    connect(request)
    time.sleep(0.2)
    connect(request)


def meet(request: Request) -> None:
    """Leave a sign everywhere, wait for a neighbour, and say what else is there."""
    for folder in ("/tmp", "/dev/shm", "/box"):
        with open(f"{folder}/{request['name']}", "w"):
            pass
    with open("/usr/bin/env", "rb") as shared:
        try:
            fcntl.flock(shared, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = True
        except BlockingIOError:
            locked = False
        time.sleep(0.7)
        seen = sorted({name for folder in ("/tmp", "/dev/shm", "/box") for name in os.listdir(folder)})
    processes = len([name for name in os.listdir("/proc") if name.isdigit()])
    print(json.dumps({"seen": seen, "processes": processes, "locked": locked}))


def wreck(request: Request) -> None:
    """Fill a directory with everything that makes removing or reading it hard."""
    os.chdir("/box")
    os.mkdir("deep")
    os.chdir("deep")
    for _ in range(3000):
        os.mkdir("d")
        os.chdir("d")
    os.chdir("/box")
    os.makedirs("closed/inner/more")
    os.mkdir("many")
    for number in range(request["files"]):
        os.close(os.open(f"many/{number}", os.O_CREAT | os.O_WRONLY))
    for name in (b"new\nline", b"\xff\xfe", b"-rf", b" ", b"*"):
        os.mkdir(b"/box/" + name)
    with open("sparse", "wb") as sparse:
        sparse.truncate(32 << 20)
    shutil.copy("/usr/bin/id", "setuid")
    os.chmod("setuid", 0o6755)
    with open("good", "w") as good:
        good.write("good")
    os.link("good", "second-name")
    with open("report", "w") as report:
        report.write("report")
    os.symlink(request["key"], "link")
    os.symlink("/proc/self/environ", "environ")
    os.symlink(request["outside"], "way-out")
    for path in ("closed/inner/more", "closed/inner", "closed"):
        os.chmod(path, 0)


def exchange(request: Request) -> None:
    """Swap a directory and a link to the outside, for as long as it lasts."""
    libc = ctypes.CDLL(None, use_errno=True)
    os.makedirs("/box/tree/a", exist_ok=True)
    os.symlink(request["outside"], "/box/tree/b")
    print("swapping", flush=True)
    while True:
        try:
            for number in range(20):
                os.makedirs(f"/box/tree/a/{number}/x", exist_ok=True)
        except OSError:
            os.makedirs("/box/tree", exist_ok=True)
        libc.renameat2(-100, b"/box/tree/a", -100, b"/box/tree/b", 2)


ACTS: dict[str, Callable[[Request], int | None]] = {
    act.__name__: act
    for act in (
        leave,
        echo,
        crash,
        fail,
        sleep,
        flood,
        lines,
        linger,
        stop,
        spin,
        share,
        blind,
        crowd,
        inodes,
        connect,
        arrive,
        reconnect,
        meet,
        wreck,
        exchange,
    )
}
