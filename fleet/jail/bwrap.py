"""The default backend: one fresh bubblewrap jail per call."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio

from fleet.errors import JailError
from fleet.jail.jail_spec import Shape, open_shape
from fleet.jail.locate import find_bwrap
from fleet.jail.model import RESOURCES, Egress, Image, Outcome, Tier
from fleet.jail.pool import Pool
from fleet.jail.selfcheck import prove
from fleet.jail.spawn import spawn


class BwrapJail:
    """Jails of one image, by the unprivileged bubblewrap; see `fleet.jail.model.Jail`.

    `pool` jails wait with their imports done. `spool` is our directory with one file per live jail.
    `work`, if given, is a host directory that becomes `/box` instead of a single-use tmpfs; its content is
    then hostile: remove it with `fleet.jail.rmtree`, and read nothing in it by name. It is not pooled.
    A jail ends with this process, however it dies: its first process watches the control socket.
    """

    def __init__(
        self,
        image: Image,
        *,
        pool: int,
        spool: Path,
        bwrap: str | None = None,
        work: Path | None = None,
    ) -> None:
        if work is not None and pool:
            raise JailError("jails over a host directory cannot be pooled", remedy="give pool=0")
        self._image, self._spool = image, spool
        self._bwrap = bwrap or find_bwrap()
        self._work = work
        self._shapes: list[Shape] = []
        self._pools = {"": self._open(image, pool)}
        self._closed = False

    def _open(self, image: Image, size: int) -> Pool:
        self._shapes.append(shape := open_shape(image, bwrap=self._bwrap, work=self._work))
        return Pool(partial(spawn, shape, self._spool), size)

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

    async def probe(self) -> Tier:
        """Prove the fence by behaviour in fresh jails of the same shape."""
        return await prove(self._image, bwrap=self._bwrap, spool=self._spool)

    async def aclose(self) -> None:
        """End the waiting jails and release the image; calls under way must have ended."""
        if not self._closed:
            self._closed = True
            for pool in self._pools.values():
                await pool.aclose()
            for shape in self._shapes:
                shape.close()
