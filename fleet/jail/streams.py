"""Bytes to and from a jail without blocking: a writer that gives up, a reader with a limit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

_CHUNK = 1 << 16


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
