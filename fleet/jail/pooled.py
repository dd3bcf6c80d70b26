"""What the backends do alike: a pool for each class of limits, and a call from beginning to end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from dataclasses import replace

import anyio

from fleet.errors import JailError
from fleet.jail.model import RESOURCES, Egress, Image, Outcome
from fleet.jail.pool import Pool


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

    def _pool(self, resources: str) -> Pool:
        """The jails of one class of limits; only those of the image's own wait before they are needed."""
        if resources not in self._pools:
            limits = RESOURCES[resources]
            self._pools[resources] = self._open(replace(self._image, limits=limits), 0)
        return self._pools[resources]

    async def warm(self) -> None:
        """Fill the pool now instead of after the first call."""
        await self._pools[""].filled()

    async def call(
        self, request: bytes, *, deadline_s: float, egress: Egress | None = None, resources: str = ""
    ) -> Outcome:
        """Run the guest on one request; the jail is gone, and egress closed, when this returns or raises."""
        if self._closed:
            raise JailError("the jails are closed")
        live = await self._pool(resources).take()
        try:
            async with AsyncExitStack() as stack:
                if egress is None:
                    live.listener.close()
                else:
                    await stack.enter_async_context(egress(live.listener))
                return await live.run(request, deadline_s)
        finally:
            with anyio.CancelScope(shield=True):
                await live.end()

    async def aclose(self) -> None:
        """End the waiting jails and release the image; calls under way must have ended."""
        if not self._closed:
            self._closed = True
            for pool in self._pools.values():
                await pool.aclose()
            await self._release()
