"""The default backend: one fresh bubblewrap jail per call."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import anyio

from fleet.errors import JailError
from fleet.jail.jail_spec import open_shape
from fleet.jail.locate import find_bwrap
from fleet.jail.model import Egress, Image, Outcome, Tier
from fleet.jail.pool import Pool
from fleet.jail.running_jail import RunningJail
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
        self._shape = open_shape(image, bwrap=self._bwrap, work=work)
        self._pool = Pool(self._spawn, pool)
        self._closed = False

    async def _spawn(self) -> RunningJail:
        return await spawn(self._shape, self._spool)

    async def warm(self) -> None:
        """Fill the pool now instead of after the first call."""
        await self._pool.filled()

    async def call(self, request: bytes, *, deadline_s: float, egress: Egress | None = None) -> Outcome:
        """Run the guest on one request; the jail is gone, and egress closed, when this returns or raises."""
        live = await self._pool.take()
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
            await self._pool.aclose()
            self._shape.close()
