"""The second backend: one fresh container of a Docker engine per call."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from fleet.errors import JailError
from fleet.jail.docker.container_spec import ContainerMount, ContainerShape
from fleet.jail.docker.engine import Engine
from fleet.jail.docker.engine_choice import EngineChoice
from fleet.jail.docker.start import start_container
from fleet.jail.jail_spec import UNPRIVILEGED, checked_mounts, existing
from fleet.jail.locate import find_interpreter, guest_code, site_packages
from fleet.jail.model import Image, Tier
from fleet.jail.pool import Pool, PooledJail
from fleet.jail.selfcheck import prove

IMAGE_PYTHON = "/opt/py/bin/python3"
"""Where an image that is configured has its interpreter; the guest code is in /opt/sandbox, and what it may
import in /opt/site."""

_NOTES = (
    ("memory", True, "the engine's control group counts all of it; PID 1 watches as well"),
    (
        "filters",
        True,
        "the engine's leaves out names that its libseccomp does not know; ours is on top of it: see "
        "`later system calls`",
    ),
)
_OF_ROOT = ("engine", True, "weaker: who can use its socket is root on this machine, the fleet included")
_ROOTLESS = ("engine", True, "rootless: who can use its socket is the engine's user, and not root")


class DockerJail(PooledJail):
    """Jails of one image, by containers; see `fleet.jail.model.Jail`.

    `pool`, `spool` and `work` are those of `BwrapJail`; the engine must see the spool and
    every mount under the same path as this process does. A container ends with this process, however that
    dies, and the next start removes it: `fleet.jail.docker.reap`.
    """

    def __init__(
        self, image: Image, *, pool: int, spool: Path, engine: EngineChoice, work: Path | None = None
    ) -> None:
        if work is not None and pool:
            raise JailError("jails over a host directory cannot be pooled", remedy="give pool=0")
        self._spool, self._work = spool, work
        self._engine = Engine(engine)
        super().__init__(image, pool)

    def _open(self, image: Image, size: int) -> Pool:
        shape = container_shape(image, self._engine.choice, self._work)
        return Pool(partial(start_container, self._engine, shape, self._spool), size)

    async def probe(self) -> Tier:
        """Prove the fence by behaviour in fresh jails of the same shape."""
        try:
            rootless = (await self._engine.ready()).rootless
        except JailError:
            rootless = False  # the checks say what is wrong
        notes = (*_NOTES, _ROOTLESS if rootless else _OF_ROOT)

        def alike(image: Image, work: Path | None) -> DockerJail:
            return DockerJail(image, pool=0, spool=self._spool, engine=self._engine.choice, work=work)

        return await prove(self._image, backend="docker", open_jail=alike, spool=self._spool, notes=notes)

    async def _release(self) -> None:
        await self._engine.aclose()


def container_shape(image: Image, choice: EngineChoice, work: Path | None) -> ContainerShape:
    """Everything mounted in a container of this image; JailError names what is missing."""
    python, library_path = IMAGE_PYTHON, ""
    # an image that is configured has our code at the usual place
    layout = replace(image.layout, opt="/opt") if choice.image else image.layout
    sources = [(path, f"{layout.opt}/{name}") for path, name in checked_mounts(image)]
    if not choice.image:
        found = find_interpreter()
        python, library_path = layout.inside(found.inside), layout.inside(found.library_path)
        sources += [(guest_code(), f"{layout.opt}/sandbox"), (site_packages(), f"{layout.opt}/site")]
        sources.append((Path("/usr"), "/usr"))
        if found.prefix is not None:
            sources.append((found.prefix, f"{layout.opt}/py"))
    mounts = [ContainerMount(source=str(existing(path)), target=target) for path, target in sources]
    if work is not None:
        mounts.append(ContainerMount(source=_given(work), target=layout.box, writable=True))
    # an ordinary daemon cannot give a directory away: a jail over it runs as the daemon's own user
    own = work is not None and os.geteuid() != 0
    return ContainerShape(
        python=python,
        library_path=library_path,
        guest=image.guest,
        limits=image.limits,
        layout=layout,
        mounts=tuple(mounts),
        own_box=work is None,
        user=(os.geteuid(), os.getegid()) if own else (UNPRIVILEGED, UNPRIVILEGED),
        runtime=choice.runtime,
    )


def _given(work: Path) -> str:
    """The place of a host directory, which becomes the jail's user's; JailError for a link."""
    try:
        fd = os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise JailError(f"cannot mount {work} in a jail: {error.strerror}") from error
    try:
        if os.geteuid() == 0:
            os.chown(fd, UNPRIVILEGED, UNPRIVILEGED)
    finally:
        os.close(fd)
    return str(existing(work))
