"""R: resources. Run with the small limits that the battery gives."""

from __future__ import annotations

import errno
import mmap
import os
import resource
import signal
import threading
import time

from .registry import Escaped, Facts, probe, refused, require
from .system import call


def _fill(folder: str, cap: int) -> int:
    """Write until there is no room; the number of bytes that fitted."""
    block, written = b"x" * (1 << 16), 0
    for number in range(1000):
        with open(f"{folder}/fill{number}", "wb", buffering=0) as file:
            try:
                for _ in range(16):
                    written += file.write(block)
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    return written
                raise
        if written > 2 * cap:
            raise Escaped(f"{written} bytes in {folder}")
    raise Escaped(folder)


@probe("R01", destructive=True)
def disks(facts: Facts) -> str:
    seen = {}
    for folder, cap in (("/box", "box"), ("/tmp", "tmp"), ("/dev/shm", "shm")):
        seen[folder] = _fill(folder, facts["limits"][cap])
        require(seen[folder] <= facts["limits"][cap], seen)
        for name in os.listdir(folder):
            os.unlink(f"{folder}/{name}")
    return str(seen)


@probe("R01-file", destructive=True)
def one_file(facts: Facts) -> str:
    with open("/box/big", "wb", buffering=0) as file:
        seen = refused("EFBIG", os.posix_fallocate, file.fileno(), 0, facts["limits"]["file"] + 4096)
        file.truncate(0)
        return seen + refused("EFBIG", os.pwrite, file.fileno(), b"x", facts["limits"]["file"] + 1)


@probe("R02", destructive=True)
def heap(facts: Facts) -> str:
    try:
        bytearray(facts["limits"]["data"] + (1 << 20))
    except MemoryError:
        return "MemoryError"
    raise Escaped("allocated")


@probe("R03")
def hidden_memory(facts: Facts) -> str:
    refused("ENOSYS", call, "memfd_create", b"qa", 0)
    return refused("EPERM", call, "shmget", 0, 1 << 20, 0o1600)


@probe("R05", destructive=True)
def forks(facts: Facts) -> str:
    children: list[int] = []
    try:
        for _ in range(600):
            pid = os.fork()
            if pid == 0:
                time.sleep(30)
                os._exit(0)
            children.append(pid)
    except BlockingIOError:
        return require(len(children) <= facts["limits"]["processes"], f"{len(children)} children")
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    raise Escaped("600 children")


@probe("R06", destructive=True)
def threads(facts: Facts) -> str:
    done = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(600):
            thread = threading.Thread(target=done.wait)
            thread.start()
            started.append(thread)
    except RuntimeError:
        return require(len(started) <= facts["limits"]["processes"], f"{len(started)} threads")
    finally:
        done.set()
        for thread in started:
            thread.join()
    raise Escaped("600 threads")


@probe("R07", destructive=True)
def descriptors(facts: Facts) -> str:
    opened: list[int] = []
    try:
        for _ in range(5000):
            opened.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        require(error.errno == errno.EMFILE, error)
        return require(len(opened) < facts["limits"]["files"], f"{len(opened)} files")
    finally:
        for fd in opened:
            os.close(fd)
    raise Escaped("5000 files")


@probe("R11", destructive=True)
def raise_limits(facts: Facts) -> str:
    for what in (resource.RLIMIT_NPROC, resource.RLIMIT_DATA, resource.RLIMIT_CORE, resource.RLIMIT_CPU):
        soft, hard = resource.getrlimit(what)
        require(hard != resource.RLIM_INFINITY, what)
        try:
            resource.setrlimit(what, (soft, hard + 1))
        except (ValueError, OSError):
            continue
        raise Escaped(f"limit {what} raised")
    refused("EPERM", os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))
    return refused("EPERM EACCES", os.setpriority, os.PRIO_PROCESS, 0, -20)


@probe("R10-core")
def core_files(facts: Facts) -> str:
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    return require(limits == (1, 1), limits)


@probe("T07", destructive=True)
def orphans(facts: Facts) -> str:
    """200 grandchildren that lose their parent: the first process must reap every one."""
    deadline = time.monotonic() + 10

    def fork() -> int:
        while True:
            try:
                return os.fork()
            except BlockingIOError:  # not reaped yet
                require(time.monotonic() < deadline, os.listdir("/proc"))
                time.sleep(0.01)

    for _ in range(20):
        pid = fork()
        if pid == 0:
            born = 0
            try:
                for _ in range(10):
                    if fork() == 0:
                        os._exit(0)
                    born += 1
            finally:  # a copy of this process must not go on with the other probes
                os._exit(born)
        born = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        require(born == 10, f"{born} of 10 grandchildren")
    while len([name for name in os.listdir("/proc") if name.isdigit()]) > 4:
        require(time.monotonic() < deadline, os.listdir("/proc"))
        time.sleep(0.01)
    return "reaped"


@probe("W01")
def still_works(facts: Facts) -> str:
    """The fence must not break what tools need: files, threads, a subprocess, shared memory of its own."""
    with open("/box/a", "w") as file:
        file.write("x")
    os.mkdir("/box/sub")
    os.rename("/box/a", "/box/sub/a")
    with mmap.mmap(-1, 4096) as page:
        page[:1] = b"x"
    return require(os.popen("echo works").read() == "works\n", "a shell")
