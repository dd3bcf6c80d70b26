"""Jails made before they are needed: each is used once, so imports are paid early and nothing is shared."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

import anyio

from fleet.errors import JailError
from fleet.jail.model import RESOURCES, Egress, Image, Outcome
from fleet.jail.running_jail import RunningJail

MAX_AGE_S = 600.0
PAUSE_S = 0.05
"""Before a refill: starting a jail beside a short call makes that call three times slower on two cores."""


class Pool:
    """At most `size` waiting jails, refilled in the background after each take."""

    def __init__(
        self, spawn: Callable[[], Awaitable[RunningJail]], size: int, *, max_age_s: float = MAX_AGE_S
    ) -> None:
        self._spawn, self._size, self._max_age_s = spawn, size, max_age_s
        self._idle: deque[RunningJail] = deque()
        self._filling: asyncio.Task[None] | None = None
        self._closed = False

    async def take(self) -> RunningJail:
        """Return a fresh jail: a waiting one that is alive and recent, else a new one, tried twice."""
        if self._closed:
            raise JailError("the jails are closed")
        try:
            while self._idle:
                live = self._idle.popleft()
                young = time.monotonic() - live.born < self._max_age_s
                if young and live.alive() and await _woken(live):
                    return live
                await live.end()
            try:
                return await self._fresh()
            except (
                JailError
            ):  # killed during its start, as the kernel's OOM killer does: once is not a pattern
                return await self._fresh()
        finally:
            self.refill()

    async def _fresh(self) -> RunningJail:
        live = await self._spawn()
        if not await _woken(live):
            raise JailError("a jail ended before its request", remedy="run `fleet check machine`")
        return live

    def refill(self, *, pause_s: float = PAUSE_S) -> None:
        """Start refilling unless it is under way."""
        if self._closed or len(self._idle) >= self._size:
            return
        if self._filling is None or self._filling.done():
            self._filling = asyncio.get_running_loop().create_task(self._fill(pause_s))

    async def filled(self) -> None:
        """Wait for the refill under way."""
        self.refill(pause_s=0)
        if self._filling is not None:
            await asyncio.wait([self._filling])

    async def _fill(self, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        while len(self._idle) < self._size and not self._closed:
            try:
                live = await self._spawn()
            except JailError:
                return  # the next take spawns its own jail and raises the reason
            self._idle.append(live)

    async def cool(self) -> None:
        """End the waiting jails; the next take makes its own."""
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.gather(self._filling, return_exceptions=True)
        while self._idle:
            await self._idle.popleft().end()

    async def aclose(self) -> None:
        self._closed = True
        await self.cool()


async def _woken(live: RunningJail) -> bool:
    """Whether it is awake; ends it if not, and when the call that took it is cancelled."""
    awake = False
    try:
        awake = await live.wake()
        return awake
    finally:
        if not awake:
            with anyio.CancelScope(shield=True):
                await live.end()


class PooledJail(ABC):
    """Single-use jails of one image; `pool` of them wait with their imports done."""

    def __init__(self, image: Image, pool: int) -> None:
        self._image = image
        self._pools = {"": self._open(image, pool)}
        self._closed = False

    @abstractmethod
    def _open(self, image: Image, size: int) -> Pool:
        """A pool of jails of this image, whose limits may be those of a class."""

    @abstractmethod
    async def _release(self) -> None:
        """Let go of what the jails were made from; they have ended."""

    async def warm(self) -> None:
        """Fill the pool now instead of after the first call."""
        await self._pools[""].filled()

    async def call(
        self, request: bytes, *, deadline_s: float, egress: Egress | None = None, resources: str = ""
    ) -> Outcome:
        """Run the guest on one request; the jail is gone, and egress closed, when this returns or raises."""
        if self._closed:
            raise JailError("the jails are closed")
        if resources not in self._pools:  # only those of the image's own limits wait before they are needed
            self._pools[resources] = self._open(replace(self._image, limits=RESOURCES[resources]), 0)
        live = await self._pools[resources].take()
        try:
            async with AsyncExitStack() as stack:
                if egress is None:
                    live.listener.close()
                else:
                    await stack.enter_async_context(egress(live.listener))
                return await live.run(request, deadline_s, self._image.output)
        finally:
            with anyio.CancelScope(shield=True):
                await live.end()

    async def cool(self) -> None:
        """End the waiting jails."""
        for pool in list(self._pools.values()):
            await pool.cool()

    async def aclose(self) -> None:
        """End the waiting jails and release the image; calls under way must have ended."""
        if not self._closed:
            self._closed = True
            for pool in self._pools.values():
                await pool.aclose()
            await self._release()
