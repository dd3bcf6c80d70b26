"""The default backend: one fresh bubblewrap jail per call."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from fleet.errors import JailError
from fleet.jail.bwrap.spawn import spawn
from fleet.jail.jail_spec import Shape, open_shape
from fleet.jail.locate import find_bwrap
from fleet.jail.model import Image, Tier
from fleet.jail.pool import Pool, PooledJail
from fleet.jail.selfcheck import prove


class BwrapJail(PooledJail):
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
        self._spool = spool
        self._bwrap = bwrap or find_bwrap()
        self._work = work
        self._shapes: list[Shape] = []
        super().__init__(image, pool)

    def _open(self, image: Image, size: int) -> Pool:
        self._shapes.append(shape := open_shape(image, bwrap=self._bwrap, work=self._work))
        return Pool(partial(spawn, shape, self._spool), size)

    async def probe(self) -> Tier:
        """Prove the fence by behaviour in fresh jails of the same shape."""

        def alike(image: Image, work: Path | None) -> BwrapJail:
            return BwrapJail(image, pool=0, spool=self._spool, bwrap=self._bwrap, work=work)

        return await prove(self._image, backend="bwrap", open_jail=alike, spool=self._spool)

    async def _release(self) -> None:
        for shape in self._shapes:
            shape.close()
