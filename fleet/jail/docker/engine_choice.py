"""Which engine: apart from its use, whose library loads in 0.2 s."""

from __future__ import annotations

import os
from dataclasses import dataclass

from fleet.errors import JailError

DEFAULT_SOCKET = "unix:///run/docker.sock"


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which engine, image and runtime: `socket` is a `unix://` URL; "" means the default for each."""

    socket: str = ""
    image: str = ""
    runtime: str = ""

    def url(self) -> str:
        """The engine's address: as configured, else DOCKER_HOST, else the usual one; JailError for another
        machine's."""
        url = self.socket or os.environ.get("DOCKER_HOST", "") or DEFAULT_SOCKET
        if not url.startswith("unix:///"):
            raise JailError(f"the engine {url!r} is not a unix socket", remedy="set `[jail] socket`")
        return url
