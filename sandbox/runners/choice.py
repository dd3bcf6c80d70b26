"""Which runner executes a program: what its profile asks for, or the fallback and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sandbox.programs.program import Program, WarmStart
from sandbox.runners.command import CommandLine, command
from sandbox.runners.native import fork_server
from sandbox.runners.node import NodeRunner
from sandbox.runners.port import Runner
from sandbox.runners.python import PythonRunner, split
from sandbox.runners.served import PROBE_CPU_S, ServedRunner
from sandbox.runners.server import ServerLost
from sandbox.runners.spawn import SpawnRunner

_EMPTY_MODULE = b"\0asm\x01\0\0\0"
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
    sample = _EMPTY_MODULE if part in ("loader", "printer") else program.sample.encode()
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
