"""Bubblewrap's process on our side of a jail."""

from __future__ import annotations

import asyncio
import os
import subprocess

from fleet.jail.process import is_running, kill
from fleet.jail.streams import readable

_GONE_S = 2.0


class Bubblewrap:
    """A jail by its two processes: killing PID 1 ends the whole namespace, regardless of bubblewrap.

    `outer_fd` is a pidfd of `process`, `init_fd` one of the jail's PID 1; both are owned from now on.
    """

    def __init__(self, process: subprocess.Popen[bytes], outer_fd: int, init_fd: int) -> None:
        self._process, self._outer_fd, self._init_fd = process, outer_fd, init_fd
        self.returncode: int | None = None

    def alive(self) -> bool:
        return is_running(self._outer_fd) and is_running(self._init_fd)

    async def ended(self) -> None:
        await readable(self._outer_fd)

    async def end(self) -> None:
        """PID 1 first, so that bubblewrap reaps it and leaves no zombie to our init."""
        kill(self._init_fd)
        try:
            async with asyncio.timeout(_GONE_S):
                await readable(self._outer_fd)
        except TimeoutError:
            kill(self._outer_fd)
            await readable(self._outer_fd)
        self.returncode = self._process.wait()
        await readable(self._init_fd)

    def close(self) -> None:
        os.close(self._outer_fd)
        os.close(self._init_fd)
