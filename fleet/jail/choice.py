"""Which backend a fleet's jails have. A chosen one that does not work is refused, never exchanged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from fleet.config import JailSection
from fleet.errors import JailError
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.diagnosis import try_bwrap, try_engine
from fleet.jail.docker.engine_choice import EngineChoice
from fleet.jail.locate import find_bwrap, other_remedy
from fleet.jail.model import Image, Jail
from fleet.jail.reap import reap_stale

Backend = Literal["bubblewrap", "docker"]


def open_jail(config: JailSection, image: Image, *, pool: int, spool: Path, work: Path | None = None) -> Jail:
    """Jails of one image by the configured backend; JailError, with both remedies, where there is none."""
    if backend(config) == "docker":
        from fleet.jail.docker.jail import DockerJail  # its library loads in 0.2 s

        return DockerJail(image, pool=pool, spool=spool, engine=engine_choice(config), work=work)
    try:
        bwrap = find_bwrap()
    except JailError as error:
        raise JailError(str(error), remedy=f"{error.remedy}; {other_remedy('bubblewrap')}") from error
    return BwrapJail(image, pool=pool, spool=spool, bwrap=bwrap, work=work)


async def reap(config: JailSection, spool: Path) -> None:
    """End and remove what a dead daemon left of its jails; JailError when that cannot be done."""
    reap_stale(spool)
    if backend(config) == "docker":
        from fleet.jail.docker.reap import reap_containers

        await reap_containers(engine_choice(config), spool)


async def left_over(config: JailSection) -> str:
    """In words, whose containers an engine has; "" for bubblewrap: the spool says it all."""
    if backend(config) != "docker":
        return ""
    from fleet.jail.docker.reap import describe_containers

    return await describe_containers(engine_choice(config))


def why_no_jail(config: JailSection) -> str:
    """Why no jail can work here and what to do, "" when nothing speaks against one: milliseconds, no set-up.

    It is not the self-check: that proves a jail by behaviour, this only explains.
    """
    which = backend(config)
    try:
        if which == "docker":
            try_engine(engine_choice(config).url())
        else:
            try_bwrap(find_bwrap())
    except JailError as error:
        return f"{error}; {error.remedy}; {other_remedy(which)}"
    return ""


def backend(config: JailSection) -> Backend:
    """The configured one; `auto`: bubblewrap where it is installed, else Docker where its socket is."""
    if config.backend != "auto":
        return config.backend
    try:
        find_bwrap()
    except JailError:
        path = engine_choice(config).url().removeprefix("unix://")
        return "docker" if os.path.exists(path) else "bubblewrap"
    return "bubblewrap"


def engine_choice(config: JailSection) -> EngineChoice:
    """The engine of the configuration."""
    return EngineChoice(socket=config.socket, image=config.image, runtime=config.runtime)
