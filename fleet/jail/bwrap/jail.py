"""The default backend: one fresh bubblewrap jail per call."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from fleet.errors import JailError
from fleet.jail.bwrap.spawn import spawn
from fleet.jail.bwrap.zygote import Zygote
from fleet.jail.jail_spec import open_shape
from fleet.jail.locate import find_bwrap
from fleet.jail.model import Image, Layout, Tier
from fleet.jail.pool import Pool, PooledJail
from fleet.jail.selfcheck import prove


class BwrapJail(PooledJail):
    """Jails of one image, by the unprivileged bubblewrap; see `fleet.jail.model.Jail`.

    `pool` jails wait with their imports done; without any, each is started by bubblewrap from nothing, else
    forked from a zygote. `spool` is our directory with one file per live jail.
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
        self._spool = spool
        self._bwrap = bwrap or find_bwrap()
        self._work = work
        self._shape = open_shape(image, bwrap=self._bwrap, work=work)
        forks = pool > 0 and image.layout == Layout()
        self._zygote = Zygote(self._shape, spool) if forks else None
        super().__init__(image, pool)

    def _open(self, image: Image, size: int) -> Pool:
        if self._zygote is not None:
            return Pool(partial(self._zygote.jail, image.limits), size)
        return Pool(partial(spawn, replace(self._shape, limits=image.limits), self._spool), size)

    async def probe(self) -> Tier:
        """Prove the fence by behaviour in fresh jails of this shape; jails are then made as those were."""
        made: list[Zygote] = []

        def alike(image: Image, work: Path | None) -> BwrapJail:
            pool = 1 if self._zygote and work is None else 0
            jail = BwrapJail(image, pool=pool, spool=self._spool, bwrap=self._bwrap, work=work)
            made.extend([jail._zygote] if jail._zygote else [])
            return jail

        tier = await prove(self._image, backend="bwrap", open_jail=alike, spool=self._spool)
        if self._zygote is not None and made:
            if made[0].unable != self._zygote.unable:
                await super().cool()
            await self._zygote.as_proven(made[0].unable)
        return tier

    async def cool(self) -> None:
        """End the waiting jails, and what others are forked from."""
        await super().cool()
        if self._zygote is not None:
            await self._zygote.end()

    async def _release(self) -> None:
        if self._zygote is not None:
            await self._zygote.end()
        self._shape.close()
