"""One live jail: its handshake, one request in it, and then nothing of it remains."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import anyio

from fleet.errors import JailError
from fleet.jail.model import End, Limits, Outcome
from sandbox import strict_json

_CHUNK = 1 << 16
_READY, _GO, _HERE, _USED = b"R", b"G", b"A", b"U"
"""Words on the control socket: of PID 1, to it, of it."""
HANDSHAKE_S = 15.0
_WAKE_S = 5.0
_USED_S = 0.2
"""Longest wait for what a jail took that is about to be ended."""


class BoundedReader:
    """Keeps at most `cap` bytes of a pipe and calls `on_flood` once when there are more.

    They go to the descriptor `into` where there is one; one that takes no more is a flood as well.
    """

    def __init__(self, fd: int, cap: int, on_flood: Callable[[], None], into: int | None = None) -> None:
        self._into, self._count = into, 0
        self._fd, self._cap, self._on_flood = fd, cap, on_flood
        self._kept = bytearray()
        self._loop = asyncio.get_running_loop()
        self.flooded = False
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def _read(self) -> None:
        if self.take() is False:
            self._loop.remove_reader(self._fd)

    def take(self) -> bool:
        """Read one chunk; False at the end, at the limit, or when nothing is available."""
        try:
            chunk = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        room = self._cap - self._count
        self._count += len(chunk)
        if not self._keep(chunk[:room]) or len(chunk) > room:
            self.flooded = True
            self._on_flood()
            return False
        return bool(chunk)

    def _keep(self, chunk: bytes) -> bool:
        if self._into is None:
            self._kept += chunk
            return True
        try:
            while chunk:
                chunk = chunk[os.write(self._into, chunk) :]
        except OSError:
            return False
        return True

    def finish(self) -> bytes:
        """Return what was kept; call it when every writer is dead, so that reading cannot block."""
        self._loop.remove_reader(self._fd)
        while not self.flooded:
            before = self._count
            self.take()
            if self._count == before:
                break
        return bytes(self._kept)


async def feed(fd: int, data: bytes) -> None:
    """Write all of `data` to a pipe and close it; a reader that closed is not an error here."""
    os.set_blocking(fd, False)
    view = memoryview(data)
    try:
        while view:
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:
                await writable(fd)
    except BrokenPipeError:
        return
    finally:
        os.close(fd)


async def readable(fd: int) -> None:
    """Wait until there is something to read on a descriptor, or its end; on a pidfd: until it ended."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(fd, _settle, ready)
    try:
        await ready
    finally:
        loop.remove_reader(fd)


async def writable(fd: int) -> None:
    """Wait until a descriptor takes bytes, or has lost its reader."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_writer(fd, _settle, ready)
    try:
        await ready
    finally:
        loop.remove_writer(fd)


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


async def await_listener(control: socket.socket, ended_fd: int) -> socket.socket:
    """Return the listening socket of the jail's network, which PID 1's first message carries.

    `ended_fd` becomes readable when the jail has ended. JailError without that message.
    """
    tasks = [asyncio.ensure_future(readable(fd)) for fd in {control.fileno(), ended_fd}]
    try:
        await asyncio.wait(tasks, timeout=HANDSHAKE_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    try:
        word, fds, _, _ = socket.recv_fds(control, 16, 1)
    except OSError as error:
        raise JailError("the jail did not report") from error
    if word != _READY or len(fds) != 1:
        for fd in fds:
            os.close(fd)
        raise JailError("the jail ended during its start")
    listener = socket.socket(fileno=fds[0])
    listener.setblocking(False)
    os.set_inheritable(listener.fileno(), False)
    return listener


class Outer(Protocol):
    """What a backend holds a jail by: bubblewrap's process, or a container of an engine."""

    returncode: int | None
    """Exit status as a shell gives it; None before `end` has returned, and when it was never seen."""

    def alive(self) -> bool: ...

    async def ended(self) -> None:
        """Wait until the jail has ended by itself."""

    async def end(self) -> None:
        """End every process of the jail and wait until that is confirmed; safe to call again."""

    def close(self) -> None:
        """Release what it holds, after `end`."""


@dataclass(slots=True, kw_only=True, eq=False)
class RunningJail:
    """Descriptors of a started jail whose guest waits for its one request."""

    outer: Outer
    control: socket.socket
    listener: socket.socket
    stdin: int
    stdout: int
    stderr: int
    record: Path | None  # None when this process cannot see the jail's PID 1
    limits: Limits
    born: float = field(default_factory=time.monotonic)
    _fed: bool = False
    _ended: bool = False
    _cpu_s: float | None = None
    _memory: int | None = None

    def alive(self) -> bool:
        return not self._ended and self.outer.alive()

    async def wake(self) -> bool:
        """Ask PID 1 to keep watch from now on; False without an answer: nothing was dispatched."""
        try:
            self.control.send(_GO)
            async with asyncio.timeout(_WAKE_S):
                await readable(self.control.fileno())
            return self.control.recv(16) == _HERE
        except (OSError, TimeoutError):
            return False

    async def run(self, request: bytes, deadline_s: float, output: int | None = None) -> Outcome:
        """Dispatch the request to a jail that is awake; wait for its end, the deadline or a flood.

        Standard output goes to the descriptor `output`, where there is one.
        """
        started = time.monotonic()
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def finish() -> None:
            if not over.done():
                over.set_result(None)

        out = BoundedReader(self.stdout, self.limits.stdout, finish, output)
        err = BoundedReader(self.stderr, self.limits.stderr, finish)
        ended = asyncio.ensure_future(self.outer.ended())
        ended.add_done_callback(lambda _: finish())
        feeder = asyncio.ensure_future(self._feed(request))
        try:
            await asyncio.wait([over], timeout=deadline_s)
            in_time = over.done()
            if not in_time:
                await self._ask_used()
        finally:
            with anyio.CancelScope(shield=True):
                for task in (ended, feeder):
                    task.cancel()
                await asyncio.gather(ended, feeder, return_exceptions=True)
                await self.outer.end()
                stdout, stderr = out.finish(), err.finish()
        if out.flooded or err.flooded:
            end, code = End.FLOOD, 0
        elif not in_time:
            end, code = End.TIMEOUT, 0
        else:
            end, code = self._verdict()
        return Outcome(
            end=end,
            code=code,
            stdout=stdout,
            stderr=stderr,
            seconds=time.monotonic() - started,
            cpu_s=self._cpu_s,
            memory=self._memory,
        )

    async def _feed(self, request: bytes) -> None:
        self._fed = True
        await feed(self.stdin, request)

    async def _ask_used(self) -> None:
        """What a jail took that goes on; unknown where its first process has no time to say so."""
        with suppress(OSError, TimeoutError, ValueError):
            self.control.send(_USED)
            async with asyncio.timeout(_USED_S):
                await readable(self.control.fileno())
            self._take_used(strict_json.loads(self.control.recv(4096, socket.MSG_DONTWAIT)))

    def _take_used(self, word: object) -> None:
        match word:
            case {"cpu_s": float(cpu_s), "memory": int(memory)}:
                self._cpu_s, self._memory = cpu_s, memory

    def _verdict(self) -> tuple[End, int]:
        """Trust PID 1's report only if the exit status that the backend saw agrees."""
        try:
            word = strict_json.loads(self.control.recv(4096, socket.MSG_DONTWAIT))
        except (OSError, ValueError):
            return End.LOST, 0
        self._take_used(word)
        match word:
            case {"exit": int(code)} if self.outer.returncode == code:
                return End.EXITED, code
            case {"signal": int(number)} if self.outer.returncode == 128 + number:
                return End.SIGNALED, number
        return End.LOST, 0

    async def end(self) -> None:
        """Kill what is left and release every descriptor; safe to call again."""
        if self._ended:
            return
        self._ended = True
        await self.outer.end()
        self.listener.close()
        self.control.close()
        self.outer.close()
        for fd in (self.stdout, self.stderr):
            os.close(fd)
        if not self._fed:
            os.close(self.stdin)
        if self.record is not None:
            self.record.unlink(missing_ok=True)
