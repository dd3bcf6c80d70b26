"""The descriptors of one start: our ends, which the owner keeps, and theirs, which bubblewrap gets."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack


class Plumbing:
    """Makes descriptors in pairs and closes those not taken over."""

    def __init__(self) -> None:
        self._ours = ExitStack()
        self.theirs: list[int] = []

    def pipe(self, *, inward: bool) -> tuple[int, int]:
        """Return (ours, theirs)."""
        read_end, write_end = os.pipe()
        ours, theirs = (write_end, read_end) if inward else (read_end, write_end)
        self.theirs.append(theirs)
        return self.own(ours), theirs

    def control(self) -> tuple[socket.socket, int]:
        """Return (ours, theirs) of a socket that keeps messages apart and shows when a side is gone."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self.theirs.append(theirs.detach())
        self._ours.callback(ours.close)
        return ours, self.theirs[-1]

    def file(self, content: bytes = b"") -> int:
        """A nameless file for the other side, which shares its position with us."""
        fd = os.memfd_create("jail")
        self.theirs.append(fd)
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def own(self, fd: int) -> int:
        self._ours.callback(os.close, fd)
        return fd

    def own_socket(self, ours: socket.socket) -> socket.socket:
        self._ours.callback(ours.close)
        return ours

    def close_theirs(self) -> None:
        while self.theirs:
            os.close(self.theirs.pop())

    def keep(self) -> None:
        """Pass our side to the caller."""
        self._ours.pop_all()

    def close(self) -> None:
        self.close_theirs()
        self._ours.close()
