"""Jails on the engine of the tests, and what the engine knows of them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from docker.models.containers import Container

from fleet.jail.docker.engine_choice import EngineChoice
from fleet.jail.docker.jail import DockerJail
from fleet.jail.model import Image
from tests.dockerd import DockerEngine
from tests.jail.test_conformance import IMAGE

ECHO = b'{"do": "echo", "text": "x"}\n'
FLOOD = b'{"do": "flood", "fd": 1}\n'
"""Ends only by being killed."""


def jail(
    engine: DockerEngine, spool: Path, *, image: Image = IMAGE, pool: int = 0, work: Path | None = None
) -> DockerJail:
    return DockerJail(image, pool=pool, spool=spool, engine=EngineChoice(socket=engine.socket), work=work)


def containers(engine: DockerEngine) -> list[Container]:
    """All of them, dead ones too."""
    with closing(engine.client()) as client:
        return client.containers.list(all=True, ignore_removed=True)


def volumes(engine: DockerEngine) -> list[str]:
    with closing(engine.client()) as client:
        return [str(volume.id) for volume in client.volumes.list()]


def jailed(engine: DockerEngine) -> list[int]:
    """The processes of its jails that still run, by our first process's command line."""
    return [pid for pid in engine.processes() if b"container_start.py" in _command(pid)]


def standing(pid: int) -> str:
    """What a process that should have ended is at, for the message of a test."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        told = [one for one in lines if one.startswith(("State", "PPid", "Threads", "SigBlk"))]
        where = Path(f"/proc/{pid}/wchan").read_text()
        return f"{pid}: {'; '.join(told)}; waits in {where}; {_command(pid)[-200:]!r}"
    except OSError as error:
        return f"{pid}: {error}"


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
