"""Native programs, forked after the dynamic loader's work by a preloaded library (forkserver.c)."""

from __future__ import annotations

import os
import stat
import struct

from sandbox.programs.program import WarmStart
from sandbox.runners.command import Box, CommandLine
from sandbox.runners.served import ServedRunner, variables
from sandbox.runners.server import ServerLost, ServerProcess, StandardStreams

LIBRARY = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_build", "forkserver.so")
"""Made by `make setup`, where there is a C compiler."""

_INTERPRETER = 3  # PT_INTERP: a program that a dynamic loader starts


def fork_server(what: CommandLine) -> ServedRunner:
    """ServerLost, with the reason, for a program that cannot be forked before its `main`."""
    if why := unfit(what.argv[0]):
        raise ServerLost(why)

    def launch(box: Box, streams: StandardStreams) -> ServerProcess:
        environment = {**variables(what), "LD_PRELOAD": LIBRARY}
        return ServerProcess(box.argv, environment, box.folder, streams, what.memory)

    return ServedRunner(what, launch, WarmStart.FORK_SERVER.value)


def unfit(path: str) -> str:
    """Why a library cannot be preloaded into this program; "" when nothing speaks against it."""
    if not os.path.exists(LIBRARY):
        return "the helper library is not compiled"
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            mode = os.fstat(file.fileno()).st_mode
            if head[:2] == b"#!":
                return "a launcher script"
            if head[:5] != b"\x7fELF\x02":
                return "not a program for this machine"
            start, size, count = struct.unpack_from("=Q", head, 32)[0], *struct.unpack_from("=HH", head, 54)
            file.seek(start)
            table = file.read(size * count)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if mode & (stat.S_ISUID | stat.S_ISGID):
        return "a setuid program"
    kinds = [struct.unpack_from("=I", table, at)[0] for at in range(0, len(table) - 3, size or 1)]
    return "" if _INTERPRETER in kinds else "a static program"
