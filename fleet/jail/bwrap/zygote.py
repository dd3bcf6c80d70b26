"""Jails as forks of one process that bubblewrap started: Python and the guest are loaded once, not per call.

What a fork does to become a jail is in `sandbox/start/zygote.py`. Where a kernel or its policy does not let
one process in a namespace make another, each jail is started by bubblewrap itself, which takes 0.1 s longer.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
from dataclasses import asdict, replace
from pathlib import Path

import anyio

from fleet.errors import JailError
from fleet.jail.bwrap.descriptors import Plumbing
from fleet.jail.bwrap.spawn import masks, no_jail, spawn
from fleet.jail.jail_spec import Shape
from fleet.jail.model import Limits
from fleet.jail.process import is_running, kill
from fleet.jail.reap import write_record
from fleet.jail.running_jail import HANDSHAKE_S, RunningJail, await_listener, readable, writable
from fleet.jail.seccomp import seccomp_filter

_MADE, _FAILED = b"P", b"E"
"""As in `sandbox.start.zygote`."""
_SAID = 512
_GONE_S = 2.0


class _Ended(JailError):
    """The process that jails are forked from is gone, or going."""


class Zygote:
    """Makes the jails of one shape. The process starts with the first jail, and again after its end."""

    def __init__(self, shape: Shape, spool: Path) -> None:
        self._shape, self._spool = shape, spool
        self._live: RunningJail | None = None
        self._starting = asyncio.Lock()
        self.unable = ""
        """Why no jail can be forked here; the self-check decides, or without one the first attempt."""
        self._able = False

    async def jail(self, limits: Limits) -> RunningJail:
        """A fresh jail with its guest waiting; JailError where neither way makes one."""
        if not self.unable:
            try:
                try:
                    live = await self._fork(limits)
                except _Ended:  # its other jails have ended with it
                    await self.end()
                    live = await self._fork(limits)
            except JailError as error:
                if self._able:  # short of something just now, perhaps: its other jails go on
                    raise
                await self.end()
                self.unable = str(error)
            else:
                self._able = True
                return live
        return await spawn(replace(self._shape, limits=limits), self._spool)

    async def as_proven(self, unable: str) -> None:
        """From now on make jails as those were made that the self-check proved, and in no other way."""
        if bool(unable) is not bool(self.unable):
            await self.end()
        self.unable, self._able = unable, not unable

    async def end(self) -> None:
        """End the process, and with it every jail that it made; the next jail starts another."""
        async with self._starting:
            live, self._live = self._live, None
        if live is not None:
            with anyio.CancelScope(shield=True):
                await live.end()

    async def _process(self) -> RunningJail:
        async with self._starting:
            if self._live is not None and not self._live.alive():
                await self._live.end()
                self._live = None
            if self._live is None:
                self._live = await spawn(self._shape, self._spool, zygote=True)
                self._live.listener.close()
            return self._live

    async def _fork(self, limits: Limits) -> RunningJail:
        zygote = await self._process()
        plumbing = Plumbing()
        control, far_control = plumbing.control()
        status, far_status = plumbing.control()
        stdin, request = plumbing.pipe(inward=True)
        stdout, result = plumbing.pipe(inward=False)
        stderr, words = plumbing.pipe(inward=False)
        try:
            asked = {"limits": asdict(limits), "box": self._shape.layout.box, "masks": masks()}
            message = json.dumps(asked).encode() + b"\n" + seccomp_filter()
            await _send(zygote.control, message, [far_control, request, result, words, far_status])
            plumbing.close_theirs()
            first = plumbing.own(await _first_process(status))
            listener = plumbing.own_socket(await await_listener(control, first))
            record = write_record(self._spool, _number(first))
        except BaseException as error:
            said = _last_line(stderr)
            plumbing.close()  # the first process ends when its control socket does, and the jail with it
            if isinstance(error, (_Ended, BrokenPipeError, ConnectionResetError)):
                raise _Ended("the zygote has ended") from error
            if isinstance(error, (JailError, OSError, ValueError)):
                raise no_jail(said or str(error) or type(error).__name__) from error
            raise
        plumbing.keep()
        return RunningJail(
            outer=Fork(status, first),
            control=control,
            listener=listener,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            record=record,
            limits=limits,
        )


class Fork:
    """A jail by its first process, and by the process that waits for that one: the latter says how it ended.

    `first` is a pidfd; it and the socket are owned from now on.
    """

    def __init__(self, status: socket.socket, first: int) -> None:
        self._status, self._first = status, first
        self.returncode: int | None = None

    def alive(self) -> bool:
        return is_running(self._first)

    async def ended(self) -> None:
        await readable(self._first)

    async def end(self) -> None:
        kill(self._first)
        await readable(self._first)
        if self.returncode is None:
            try:
                async with asyncio.timeout(_GONE_S):
                    await readable(self._status.fileno())
                self.returncode = int(self._status.recv(16))
            except (OSError, ValueError, TimeoutError):
                return  # ended with it

    def close(self) -> None:
        self._status.close()
        os.close(self._first)


async def _send(control: socket.socket, message: bytes, fds: list[int]) -> None:
    while True:
        try:
            socket.send_fds(control, [message], fds)
            return
        except BlockingIOError:
            await writable(control.fileno())


async def _first_process(status: socket.socket) -> int:
    """A pidfd of the jail's first process, as the one that waits for it passes it on."""
    try:
        async with asyncio.timeout(HANDSHAKE_S):
            await readable(status.fileno())
        said, fds, _, _ = socket.recv_fds(status, _SAID, 1)
    except TimeoutError as error:
        raise JailError("the zygote does not answer") from error
    if said == _MADE and len(fds) == 1:
        return fds[0]
    for fd in fds:
        os.close(fd)
    raise JailError(said.removeprefix(_FAILED).decode(errors="replace")) if said else _Ended("no answer")


def _number(pidfd: int) -> int:
    """The pid, as seen here, of a process that is held by a descriptor (proc(5), fdinfo)."""
    found = re.search(r"^Pid:\s+(\d+)$", Path(f"/proc/self/fdinfo/{pidfd}").read_text(), re.MULTILINE)
    if found is None:
        raise JailError("the jail ended while it was being made")
    return int(found[1])


def _last_line(stderr: int) -> str:
    os.set_blocking(stderr, False)
    try:
        return (os.read(stderr, 1 << 16).decode(errors="replace").strip().splitlines() or [""])[-1]
    except OSError:
        return ""
