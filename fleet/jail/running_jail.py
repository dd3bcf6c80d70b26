"""One live jail: its handshake, one request in it, and then nothing of it remains."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import anyio

from fleet.errors import JailError
from fleet.jail.model import End, Limits, Outcome
from fleet.jail.streams import BoundedReader, feed, readable
from sandbox import strict_json

_READY, _GO, _HERE = b"R", b"G", b"A"
"""Words on the control socket: of PID 1, to it, of it."""
HANDSHAKE_S = 15.0
_WAKE_S = 5.0


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
        return Outcome(end=end, code=code, stdout=stdout, stderr=stderr, seconds=time.monotonic() - started)

    async def _feed(self, request: bytes) -> None:
        self._fed = True
        await feed(self.stdin, request)

    def _verdict(self) -> tuple[End, int]:
        """Trust PID 1's report only if the exit status that the backend saw agrees."""
        try:
            word = strict_json.loads(self.control.recv(4096, socket.MSG_DONTWAIT))
        except (OSError, ValueError):
            return End.LOST, 0
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
