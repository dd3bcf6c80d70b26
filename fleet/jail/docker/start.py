"""Start a container and complete its handshake: before that nothing hostile can be inside."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import struct
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio

from fleet.errors import JailError
from fleet.jail.bwrap.descriptors import Plumbing
from fleet.jail.docker.container_spec import ContainerShape, container_config
from fleet.jail.docker.engine import Engine
from fleet.jail.docker.reap import owner_labels
from fleet.jail.process import exit_code, is_running, kill, open_pidfd
from fleet.jail.reap import DOOR, leftover_prefix, write_record
from fleet.jail.running_jail import RunningJail, await_listener, readable
from fleet.jail.seccomp import seccomp_filter

_GONE_S = 5.0
_LOOKS, _LOOK_S = 10, 0.002
"""For a status that the kernel has once the container's shim has reaped PID 1: about a millisecond."""
_NAME = "door"
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
_START_S = 30.0


class Container:
    """A running container of ours, by its id and by a pidfd of its PID 1.

    Without a pidfd (a fleet in a container beside its jails cannot see them) the engine ends it, and the
    control socket, without which PID 1 does not stay.
    """

    def __init__(self, engine: Engine, container: str, init_fd: int | None, control: socket.socket) -> None:
        self._engine, self._id, self._init_fd, self._control = engine, container, init_fd, control
        self._watched = control.fileno() if init_fd is None else init_fd
        self._ended = False
        self.returncode: int | None = None

    def alive(self) -> bool:
        return not self._ended and is_running(self._watched)

    async def ended(self) -> None:
        await readable(self._watched)

    async def end(self) -> None:
        """The kernel's word that PID 1 is gone, and so all processes; then how it ended, by kernel or engine.

        Without either, the call ends without an answer. The dead container is removed afterwards.
        """
        if self._ended:
            return
        self._ended = True
        if self._init_fd is not None:
            try:
                kill(self._init_fd)
            except PermissionError:  # an ordinary daemon, and a container of another user
                await self._ask_to_end()
            try:
                async with asyncio.timeout(_GONE_S):
                    await readable(self._init_fd)
            except TimeoutError:  # held by the kernel: the engine's runtime knows its control group
                await self._engine.kill(self._id)
                await readable(self._init_fd)
            for _ in range(_LOOKS):  # where the kernel is new enough: the engine takes tens of milliseconds
                self.returncode = exit_code(self._init_fd)
                if self.returncode is not None:
                    break
                await asyncio.sleep(_LOOK_S)
        else:
            await self._ask_to_end()
        if self.returncode is None:
            self.returncode = await self._engine.exit_status(self._id)
        self._engine.discard(self._id)

    async def _ask_to_end(self) -> None:
        """Close our side, which PID 1 does not outlive, and have the engine kill it as well."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        await self._engine.kill(self._id)

    def close(self) -> None:
        if self._init_fd is not None:
            os.close(self._init_fd)


class Door:
    """The way into a container: a socket in a folder of the spool, which the container gets as a mount.

    It listens until closed, which happens when the container has come through it; what runs before is only
    our code. The socket is for everyone: its folder lies in the spool, which is not.
    """

    def __init__(self, spool: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=leftover_prefix(DOOR), dir=spool.resolve()))
        self.folder.chmod(0o755)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        place = os.open(self.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            name = f"/proc/self/fd/{place}/{_NAME}"  # the whole path may be longer than an address can be
            self._socket.bind(name)
            os.chmod(name, 0o666)
        finally:
            os.close(place)
        self._socket.listen(1)

    async def knocked(self) -> None:
        """Wait until someone has come. Nothing is accepted: a cancelled wait holds no socket to lose."""
        await anyio.wait_readable(self._socket)

    def accept(self) -> socket.socket:
        """The first who came."""
        control, _ = self._socket.accept()
        control.setblocking(False)
        return control

    def close(self) -> None:
        """Take the socket and its folder away."""
        self._socket.close()
        (self.folder / _NAME).unlink(missing_ok=True)
        self.folder.rmdir()


def peer_pid(control: socket.socket, user: int | None) -> int:
    """The pid of who came in, 0 when it is outside of our pid namespace; JailError for an unexpected user.

    `user` None: the engine maps users, so that all that is known is: not root.
    """
    found = control.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(found)
    if uid == 0 if user is None else uid != user:
        raise JailError(f"user {uid} came in where a container was expected")
    return int(pid)


def pin(control: socket.socket, pid: int, plumbing: Plumbing) -> int | None:
    """A pidfd of the container's PID 1, None for one that cannot be seen from here.

    Its number was not reused: it alone has the other end, and that was open after the pidfd was.
    """
    if pid == 0:
        return None
    init_fd = open_pidfd(pid)
    if init_fd is None:
        raise JailError("the container ended while it was being made")
    plumbing.own(init_fd)
    if not is_running(init_fd) or not is_running(control.fileno()):
        raise JailError("the container ended while it was being made")
    return init_fd


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
        stdin, request = plumbing.pipe(inward=True)
        stdout, result = plumbing.pipe(inward=False)
        stderr, words = plumbing.pipe(inward=False)
        socket.send_fds(control, [seccomp_filter()], [request, result, words])
        plumbing.close_theirs()
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
            reason = str(error) or type(error).__name__
            remedy = getattr(error, "remedy", "") or "run `fleet check machine`"
            raise JailError(f"no container could be made: {reason}", remedy=remedy) from error
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
