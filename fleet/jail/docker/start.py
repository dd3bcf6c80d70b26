"""Start a container and complete its handshake: before that nothing hostile can be inside."""

from __future__ import annotations

import asyncio
import secrets
import socket
from pathlib import Path
from typing import Any

from fleet.errors import JailError
from fleet.jail.bwrap.descriptors import Plumbing
from fleet.jail.docker.container import Container
from fleet.jail.docker.container_spec import ContainerShape, container_config
from fleet.jail.docker.door import Door, peer_pid, pin
from fleet.jail.docker.engine import Engine
from fleet.jail.docker.owner import owner_labels
from fleet.jail.reap import write_record
from fleet.jail.running_jail import RunningJail, await_listener
from fleet.jail.seccomp import seccomp_filter

_START_S = 30.0


async def start_container(engine: Engine, shape: ContainerShape, spool: Path) -> RunningJail:
    """Start a container and return it with its guest waiting; else JailError with the engine's words."""
    ready = await engine.ready()
    plumbing = Plumbing()
    door = Door(spool)
    name = f"qa-fleet-{secrets.token_hex(8)}"
    config = container_config(
        shape, image=ready.image, processors=ready.processors, door=door.folder, labels=owner_labels(spool)
    )
    launching = engine.launch(name, config)
    try:
        await _first(door, launching)
        control = plumbing.own_socket(door.accept())
        pid = peer_pid(control, None if ready.maps_users else shape.user[0])
        init_fd = pin(control, pid, plumbing)
        stdin, stdout, stderr = _hand_over(control, plumbing)
        listener = plumbing.own_socket(
            await await_listener(control, control.fileno() if init_fd is None else init_fd)
        )
        container = await asyncio.shield(launching)
        record = None if init_fd is None else write_record(spool, pid)
    except BaseException as error:
        plumbing.close()  # PID 1 ends when its control socket does
        engine.discard(name, launching)
        engine.forget()
        if isinstance(error, (JailError, OSError, ValueError)):
            raise _failure(error) from error
        raise
    finally:
        door.close()
    plumbing.keep()
    return RunningJail(
        outer=Container(engine, container, init_fd, control),
        control=control,
        listener=listener,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        record=record,
        limits=shape.limits,
    )


async def _first(door: Door, launching: asyncio.Future[str]) -> None:
    """Wait for the container to come to the door, or for the engine to refuse."""
    coming = asyncio.ensure_future(door.knocked())
    try:
        async with asyncio.timeout(_START_S):
            both: list[asyncio.Future[Any]] = [coming, launching]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                launching.result()  # raises the engine's refusal; without one the container is on its way
            await coming
    except TimeoutError as error:
        raise JailError(f"the container did not report within {_START_S:.0f} s") from error
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)


def _hand_over(control: socket.socket, plumbing: Plumbing) -> tuple[int, int, int]:
    """Send the guest's standard streams and the filter; return our ends."""
    stdin, request = plumbing.pipe(inward=True)
    stdout, result = plumbing.pipe(inward=False)
    stderr, words = plumbing.pipe(inward=False)
    socket.send_fds(control, [seccomp_filter()], [request, result, words])
    plumbing.close_theirs()
    return stdin, stdout, stderr


def _failure(error: BaseException) -> JailError:
    reason = str(error) or type(error).__name__
    remedy = getattr(error, "remedy", "") or "run `fleet doctor`"
    return JailError(f"no container could be made: {reason}", remedy=remedy)
