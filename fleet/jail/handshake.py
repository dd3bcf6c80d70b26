"""A jail's first message: it is ready, and here is its way out."""

from __future__ import annotations

import asyncio
import os
import socket

from fleet.errors import JailError
from fleet.jail.streams import readable

_READY = b"R"
HANDSHAKE_S = 15.0


async def await_listener(control: socket.socket, ended_fd: int) -> socket.socket:
    """Return the listening socket of the jail's network, which PID 1's first message carries.

    `ended_fd` becomes readable when the jail has ended. JailError without that message.
    """
    tasks = [asyncio.ensure_future(readable(fd)) for fd in {control.fileno(), ended_fd}]
    try:
        await asyncio.wait(tasks, timeout=HANDSHAKE_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    try:
        word, fds, _, _ = socket.recv_fds(control, 16, 1)
    except OSError as error:
        raise JailError("the jail did not report") from error
    if word != _READY or len(fds) != 1:
        for fd in fds:
            os.close(fd)
        raise JailError("the jail ended during its start")
    listener = socket.socket(fileno=fds[0])
    listener.setblocking(False)
    os.set_inheritable(listener.fileno(), False)
    return listener
