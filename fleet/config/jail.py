"""Which jail the fleet uses, and how."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from fleet.config.section import Section


class JailSection(Section):
    """The fence around one call: bubblewrap, or containers of Docker's engine."""

    backend: Literal["auto", "bubblewrap", "docker"] = "auto"
    """`auto`: bubblewrap where it is installed, else Docker. Whichever it is must pass its self-check: the
    fleet never changes to another one by itself."""
    socket: Annotated[str, StringConstraints(pattern=r"^(unix:///[!-~]{1,200})?$")] = ""
    """Docker's engine, `unix:///run/docker.sock`; "": DOCKER_HOST, else that one. Never over a network."""
    image: Annotated[str, StringConstraints(max_length=200)] = ""
    """Docker: image of the jail, by `docker build -f sandbox/Dockerfile`; "": an empty one, with the host's
    /usr, its Python and the guest code mounted read-only."""
    runtime: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,40}$|^$")] = ""
    """Docker: runtime of the containers, such as `runsc`; "": the engine's own."""
