"""Where the daemon's pages can be asked: a unix socket of the state directory, and loopback on request."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

from fleet.errors import ConfigError

SOCKET = "fleet.sock"


def listeners(state: Path, port: int | None) -> list[socket.socket]:
    """The unix socket (0600), and a port of loopback; ConfigError when one cannot be had."""
    made = [_unix(state)]
    if port is not None:
        line = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            line.bind(("127.0.0.1", port))
        except OSError as error:
            line.close()
            made[0].close()
            raise ConfigError(f"port {port}: {error.strerror}", remedy="choose another --port") from None
        made.append(line)
    return made


def _unix(state: Path) -> socket.socket:
    """Bound by way of the folder's descriptor: a path of more than 107 bytes does not fit an address."""
    folder = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET, dir_fd=folder)  # of a daemon that was killed: we hold the lock
        line.bind(f"/proc/self/fd/{folder}/{SOCKET}")
        os.chmod(state / SOCKET, 0o600)
    except OSError as error:
        line.close()
        raise ConfigError(f"{state / SOCKET}: {error.strerror}", remedy="make the folder writable") from None
    finally:
        os.close(folder)
    return line
