"""Sockets of the daemon's pages: a unix socket in the state directory, and optionally a loopback port."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

from fleet.errors import ConfigError

SOCKET = "fleet.sock"


def listeners(state: Path, port: int | None) -> list[socket.socket]:
    """Open the unix socket (0600) and the loopback port; ConfigError when one is not available."""
    made = [_unix(state)]
    if port is not None:
        try:
            made.append(loopback(port))
        except ConfigError:
            made[0].close()
            raise
    return made


def loopback(port: int) -> socket.socket:
    """Open a port of this machine alone; ConfigError when it is not available."""
    line = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        line.bind(("127.0.0.1", port))
    except OSError as error:
        line.close()
        raise ConfigError(f"port {port}: {error.strerror}", remedy="choose another --port") from None
    return line


def _unix(state: Path) -> socket.socket:
    """Bind through the folder's descriptor: a path over 107 bytes does not fit an address."""
    folder = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET, dir_fd=folder)  # left by a killed daemon: we hold the lock
        line.bind(f"/proc/self/fd/{folder}/{SOCKET}")
        os.chmod(state / SOCKET, 0o600)
    except OSError as error:
        line.close()
        raise ConfigError(f"{state / SOCKET}: {error.strerror}", remedy="make the folder writable") from None
    finally:
        os.close(folder)
    return line
