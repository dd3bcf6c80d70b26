"""Run by the jail's interpreter: imports a program once and executes it for each order (see server.py).

    python [flags] python_warm.py MODULE:FUNCTION {-m MODULE | SCRIPT} [arguments]

`F`: in a fresh fork. `P`: in a worker that serves many inputs in process; its record is followed by one
number for how the program ended. In small letters: with the places that it passed. Standard library only and
leaves none of our modules to be imported: it shares its interpreter with the program.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import gc
import importlib
import importlib.util
import os
import resource
import signal
import struct
import sys
import threading
import time
import zlib
from array import array
from typing import NoReturn

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from sandbox.runners.python_places import Places
from sandbox.runners.python_target import PythonTarget, flushed

del sys.path[0]
for _name in [name for name in sys.modules if name.partition(".")[0] == "sandbox"]:
    del sys.modules[_name]  # the program may have one of that name

CONTROL, STATUS = 200, 201
MOST_INPUTS = 1000
MOST_GROWTH = 64 << 20
"""Inputs of a worker, and bytes by which it may grow, before it is replaced."""
MOST_NEWS = 1 << 16
MOST_PLACES = 16_000
"""Numbers that a pipe holds without a reader."""
_RECORD = struct.Struct("=iIQQ")
_SERIAL = struct.Struct("=I")
"""Before each order to a worker and each of its answers: an answer that comes late is not the next one's."""
_DUMPABLE, _REAPER, _NO_NEW_PRIVS = 4, 36, 38
_libc = ctypes.CDLL(None, use_errno=True)


class Server:
    """Serves orders until CONTROL is closed."""

    def __init__(self, target: PythonTarget, fence: int) -> None:
        self._target, self._fence, self._places = target, fence, Places()
        self._news = os.pipe2(os.O_NONBLOCK)
        self._worker = 0
        self._order = self._answer = -1
        self._served = self._base = self._used_us = 0

    def serve(self) -> NoReturn:
        os.write(STATUS, _RECORD.pack(0, 0, 0, 0))
        while order := os.read(CONTROL, 1):
            os.write(STATUS, self._persistent(order) if order in b"Pp" else self._fresh(order))
        os._exit(0)

    def _fresh(self, order: bytes) -> bytes:
        covers = order == b"f"
        read_end, write_end = os.pipe2(os.O_NONBLOCK) if covers else (-1, -1)
        pid = os.fork()
        if pid == 0:
            self._become_child()
            self._once(write_end)
        status, cpu_us, peak = self._reap(pid)
        numbers = b""
        if covers:
            os.close(write_end)
            with contextlib.suppress(BlockingIOError):
                numbers = os.read(read_end, 1 << 16)
            os.close(read_end)
            numbers = numbers[: len(numbers) // 4 * 4]
        return _RECORD.pack(status, len(numbers) // 4, cpu_us, peak) + numbers

    def _once(self, note: int) -> NoReturn:
        code = 1
        try:
            self._target.set_arguments()
            if note >= 0:
                self._places.begin()
            code, _ = self._target.run()
            if note >= 0:
                os.write(note, self._places.end()[:MOST_PLACES].tobytes())
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
            if not flushed():
                code = 120
        finally:
            os._exit(code)

    def _become_child(self) -> None:
        for fd in (CONTROL, STATUS, self._order, self._answer, *self._news[:1]):
            if fd >= 0:
                os.close(fd)
        if self._fence >= 0:
            _libc.syscall(446, self._fence, 0)
            os.close(self._fence)
        _libc.prctl(_DUMPABLE, 1, 0, 0, 0)
        os.setsid()
        # asked for its stack where an execution is to be stopped (python_stack.py)
        faulthandler.register(signal.SIGUSR2, file=2, all_threads=False)

    def _reap(self, pid: int) -> tuple[int, int, int]:
        """Wait for it, then end everything that it left."""
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
        self._end_orphans()
        return status, int((used.ru_utime + used.ru_stime) * 1e6), used.ru_maxrss << 10

    def _end_orphans(self) -> None:
        while left := [pid for pid in _children(os.getpid()) if pid != self._worker]:
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def _persistent(self, order: bytes) -> bytes:
        if not self._worker:
            (order_r, self._order), (self._answer, answer_w) = os.pipe(), os.pipe()
            self._served = self._used_us = 0
            # what its first input adds is growth
            self._base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
            self._worker = os.fork()
            if self._worker == 0:
                self._become_child()
                _work(self._target, self._places, (order_r, answer_w, self._news[1]))
            os.close(order_r)
            os.close(answer_w)
        try:
            self._served += 1
            serial = _SERIAL.pack(self._served)
            os.write(self._order, serial + order)
            if _read(self._answer, _SERIAL.size) != serial:
                raise EOFError
            status, count, cpu_us, peak = _RECORD.unpack(_read(self._answer, _RECORD.size))
            numbers = _read(self._answer, 4 * min(count, 1 << 20))
            self._used_us += cpu_us
        except (EOFError, BrokenPipeError):
            return self._worker_ended()
        stray = _children(self._worker)
        if stray or self._served >= MOST_INPUTS or peak > self._base + MOST_GROWTH:
            os.kill(self._worker, signal.SIGKILL)
            self._worker_ended()
        self._end_orphans()
        self._learn()
        return _RECORD.pack(status, len(numbers) // 4, cpu_us, peak) + numbers

    def _learn(self) -> None:
        """Import what the first execution imported, so that every later fork has it; what that prints is
        no execution's."""
        if self._news[0] < 0:
            return
        with contextlib.suppress(BlockingIOError):
            names = os.read(self._news[0], MOST_NEWS).decode("utf-8", "replace").split()
            kept = [(fd, os.dup(fd)) for fd in (1, 2)]
            null = os.open(os.devnull, os.O_WRONLY)
            for fd, _ in kept:
                os.dup2(null, fd)
            for name in names:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
            flushed()
            for fd, copy in kept:
                os.dup2(copy, fd)
            for fd in (null, *(copy for _, copy in kept), *self._news):
                os.close(fd)
            self._news = (-1, -1)
            gc.collect()
            gc.freeze()

    def _worker_ended(self) -> bytes:
        pid, self._worker = self._worker, 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL) if not _ended(pid) else None
        status, cpu_us, peak = self._reap(pid)
        os.close(self._order)
        os.close(self._answer)
        self._order = self._answer = -1
        return _RECORD.pack(status, 0, max(cpu_us - self._used_us, 0), peak)


def _work(target: PythonTarget, places: Places, descriptors: tuple[int, int, int]) -> NoReturn:
    """A worker: many inputs in one process; it tells the first which modules that took."""
    order_fd, answer_fd, news = descriptors
    try:
        while message := os.read(order_fd, _SERIAL.size + 1):
            serial, order = message[: _SERIAL.size], message[_SERIAL.size :]
            began = time.process_time_ns()
            target.prepare()
            if order == b"p":
                places.begin()
            code, word = target.run()
            numbers = places.end() if order == b"p" else array("I")
            if threading.active_count() > 1:
                word = ""
            numbers.insert(0, zlib.crc32(word.encode()) if word else 0)
            spent = (time.process_time_ns() - began) // 1000
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
            if news >= 0:
                os.write(news, "\n".join(sys.modules).encode()[-MOST_NEWS:])
                os.close(news)
                news = -1
            os.write(answer_fd, serial + _RECORD.pack(code << 8, len(numbers), spent, peak))
            data = memoryview(numbers.tobytes())
            while data:
                data = data[os.write(answer_fd, data) :]
    finally:
        os._exit(1)


def _ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def _read(fd: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = os.read(fd, size - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data


def main() -> NoReturn:
    entry, how, *arguments = sys.argv[1:]
    if how == "-m":
        name = arguments[0]
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
        arguments[0] = (spec and spec.origin) or name
        own = os.getcwd()
    else:
        arguments.insert(0, how)
        own = os.path.dirname(os.path.abspath(how))
    safe = getattr(sys.flags, "safe_path", False) or sys.flags.isolated
    if not safe:
        sys.path[0] = own
    target = PythonTarget(entry, arguments)
    attributes = (ctypes.c_uint64 * 3)(0, 0, 3)  # abstract sockets and signals, Landlock ABI 6
    fence = _libc.syscall(444, ctypes.byref(attributes), ctypes.sizeof(attributes), 0)
    _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    _libc.prctl(_DUMPABLE, 0, 0, 0, 0)
    _libc.prctl(_REAPER, 1, 0, 0, 0)
    gc.collect()
    gc.freeze()  # pages that a fork need not copy
    Server(target, fence).serve()


if __name__ == "__main__":
    main()
