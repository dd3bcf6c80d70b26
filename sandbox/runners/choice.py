"""Which runner executes a program: what its profile asks for, or the fallback and why."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable, Mapping

from sandbox.programs.program import EMPTY_MODULE, Program, WarmStart
from sandbox.runners.command import Box, CommandLine, command
from sandbox.runners.node import NodeRunner
from sandbox.runners.port import Runner
from sandbox.runners.python import PythonRunner, split
from sandbox.runners.served import PROBE_CPU_S, ServedRunner, variables
from sandbox.runners.server import ServerLost, ServerProcess, StandardStreams
from sandbox.runners.spawn import SpawnRunner

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


_WAYS: Mapping[str, Callable[[CommandLine, str], ServedRunner]] = {
    WarmStart.FORK_SERVER.value: lambda what, _entry: fork_server(what),
    WarmStart.PYTHON.value: PythonRunner,
    WarmStart.NODE.value: NodeRunner,
}


def runner(program: Program, part: str) -> Runner:
    """The runner of `compiler`, `loader`, `other` or `printer`; JailBroken when the platform has none.

    A way that does not fit, or whose first executions end differently from those of a process for each, is
    replaced by one process per input; the runner's name then says why.
    """
    what = command(program, part)
    if program.warm == WarmStart.SPAWN.value:
        return SpawnRunner(what)
    if part != "compiler" and not _same_start(program, what):
        return SpawnRunner(what, f"{program.warm} is a way of the compiler only")
    try:
        warm = _WAYS[program.warm](what, program.warm_entry)
    except ServerLost as lost:
        return SpawnRunner(what, f"{program.warm}: {lost}")
    sample = EMPTY_MODULE if part in ("loader", "printer") else program.sample.encode()
    for source in dict.fromkeys((sample, sample[: len(sample) // 2])):
        if why := warm.disagreement(source):
            warm.close()
            return SpawnRunner(what, f"{program.warm}: {why}")
    _begin_with(warm, sample, program)
    return warm


def _begin_with(served: ServedRunner, sample: bytes, program: Program) -> None:
    served.first = sample if program.warm == WarmStart.PYTHON.value else b""


def another_start(program: Program, first: Runner) -> Runner | None:
    """A second server of the compiler, where executions are forked from one: seeds of hashes and addresses
    of one start are those of all its forks. None where there is no such server, and where the two give
    another output for the sample: then it holds something of ours, such as a path."""
    if first.name not in (WarmStart.FORK_SERVER.value, WarmStart.PYTHON.value):
        return None
    try:
        second = _WAYS[program.warm](command(program, "compiler"), program.warm_entry)
    except ServerLost:
        return None
    sample = program.sample.encode()
    if first.run(sample, PROBE_CPU_S).stdout == second.run(sample, PROBE_CPU_S).stdout:
        _begin_with(second, sample, program)
        return second
    second.close()
    return None


def _same_start(program: Program, what: CommandLine) -> bool:
    """Whether what starts the compiler starts this part as well: the arguments alone differ."""
    if program.warm != WarmStart.PYTHON.value:
        return program.warm == WarmStart.FORK_SERVER.value
    try:
        (flags, own), (others, theirs) = split(command(program, "compiler").argv), split(what.argv)
    except ServerLost:
        return False
    named = 2 if own[0] == "-m" else 1
    return (flags, own[:named]) == (others, theirs[:named])
