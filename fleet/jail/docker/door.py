"""The way into a container: a socket in a folder of the spool, which the container gets as a mount.

The socket is taken away when the container has come through it. What stands there before is only our code.
"""

from __future__ import annotations

import os
import socket
import struct
import tempfile
from pathlib import Path

import anyio

from fleet.errors import JailError
from fleet.jail.bwrap.descriptors import Plumbing
from fleet.jail.process import is_running, open_pidfd
from fleet.jail.reap import DOOR, leftover_prefix

_NAME = "door"
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


class Door:
    """Listens until closed. The socket is for everyone: its folder lies in the spool, which is not."""

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
