"""Forks one `fleet` per request; see cli_process.py. `python -m tests.cli_server SOCKET_FD`."""

from __future__ import annotations

import atexit
import gc
import json
import os
import random
import signal
import socket
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import typer

from fleet.cli import app, main
from fleet.cli.groups import LazyCommand
from fleet.drivers.expect import ready

LATER = ("web3", "eth_account", "httpx", "fleet.app.daemon", "fleet.app.forecast")
"""What commands import when they need it."""


def serve(control: socket.socket) -> None:
    """Answer until the other end is closed; in a child, return when it is to become the command."""
    while True:
        head, fds, _, _ = socket.recv_fds(control, 4, 3)
        if not head:
            os._exit(0)
        life = json.loads(_exactly(control, int.from_bytes(head)))
        if os.fork() == 0:
            control.close()
            _watched(life, *fds)
            return
        for fd in fds:
            os.close(fd)


def _watched(life: dict[str, Any], out: int, err: int, status: int) -> None:
    """Fork the command; its parent stays to say its pid and how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if pid := os.fork():
        os.write(status, b"%d\n" % pid)
        _, how = os.waitpid(pid, 0)
        os.write(status, b"%d\n" % os.waitstatus_to_exitcode(how))
        os._exit(0)
    os.close(status)
    for ours, standard in ((out, 1), (err, 2)):
        os.dup2(ours, standard)
        os.close(ours)
    os.environ.clear()
    os.environ.update(life["env"])
    os.chdir(life["cwd"])
    random.seed()
    sys.argv = ["fleet", *life["words"]]


def _exactly(control: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += control.recv(size - len(found))
    return found


def become() -> NoReturn:
    """Everything is imported once; what a child then does ends as an interpreter ends.

    But for the freeing of memory, which would copy most of its parent's pages first.
    """
    for command in typer.main.get_command(app).commands.values():  # type: ignore[attr-defined]
        for part in getattr(command.loaded(), "commands", {}).values():
            if isinstance(part, LazyCommand):
                part.loaded()
    for name in LATER:
        import_module(name)
    for text in ("true", "facts.x > 1"):
        ready(text)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who watches a command is reaped by the kernel
    serve(socket.socket(fileno=int(sys.argv[1])))
    code = 1
    try:
        main()
        code = 0
    except SystemExit as end:
        code = _status(end)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(ValueError, OSError):
            stream.flush()
    os._exit(code)


def _status(end: SystemExit) -> int:
    """What an interpreter makes of it."""
    if end.code is None or isinstance(end.code, int):
        return (end.code or 0) & 0xFF
    print(end.code, file=sys.stderr)
    return 1


if __name__ == "__main__":
    become()
