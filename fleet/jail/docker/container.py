"""A container as what a jail is held by."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

from fleet.jail.docker.engine import Engine
from fleet.jail.process import exit_code, is_running, kill
from fleet.jail.streams import readable

_GONE_S = 5.0
_LOOKS, _LOOK_S = 10, 0.002
"""For a status that the kernel has once the container's shim has reaped PID 1: about a millisecond."""


class Container:
    """A running container of ours, by its id and by a pidfd of its PID 1.

    Without a pidfd (a fleet in a container beside its jails cannot see them) the engine ends it, and the
    control socket, without which PID 1 does not stay.
    """

    def __init__(self, engine: Engine, container: str, init_fd: int | None, control: socket.socket) -> None:
        self._engine, self._id, self._init_fd, self._control = engine, container, init_fd, control
        self._watched = control.fileno() if init_fd is None else init_fd
        self._ended = False
        self.returncode: int | None = None

    def alive(self) -> bool:
        return not self._ended and is_running(self._watched)

    async def ended(self) -> None:
        await readable(self._watched)

    async def end(self) -> None:
        """The kernel's word that PID 1 is gone, and so all processes; then how it ended, by kernel or engine.

        Without either, the call ends without an answer. The dead container is removed afterwards.
        """
        if self._ended:
            return
        self._ended = True
        if self._init_fd is not None:
            await self._strike(self._init_fd)
            await self._gone(self._init_fd)
            self.returncode = await _kernel_says(self._init_fd)
        else:
            await self._ask_to_end()
        if self.returncode is None:
            self.returncode = await self._engine.exit_status(self._id)
        self._engine.discard(self._id)

    async def _strike(self, init_fd: int) -> None:
        try:
            kill(init_fd)
        except PermissionError:  # an ordinary daemon, and a container of another user
            await self._ask_to_end()

    async def _ask_to_end(self) -> None:
        """Close our side, which PID 1 does not outlive, and have the engine kill it as well."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        await self._engine.kill(self._id)

    async def _gone(self, init_fd: int) -> None:
        try:
            async with asyncio.timeout(_GONE_S):
                await readable(init_fd)
        except TimeoutError:  # a process that the kernel holds: the engine's runtime knows its control group
            await self._engine.kill(self._id)
            await readable(init_fd)

    def close(self) -> None:
        if self._init_fd is not None:
            os.close(self._init_fd)


async def _kernel_says(init_fd: int) -> int | None:
    """The exit status from the kernel, where it is new enough: the engine takes tens of milliseconds."""
    for _ in range(_LOOKS):
        if (code := exit_code(init_fd)) is not None:
            return code
        await asyncio.sleep(_LOOK_S)
    return None
