"""The platform's compiler and loader, run inside this jail: their output and outcome."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import math
import os
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox import machine, process, wasm
from sandbox.errors import Deadline, JailBroken
from sandbox.hang import AGAIN, HangVerdict, ProcessorTime, judge
from sandbox.process import Ending
from sandbox.spec import Context
from sandbox.text import clean, decode

CPU_PART, WALL_PART = 0.4, 0.6
"""The shares of a call's time that a first try may have: of the processor, and in all. The rest is for the
control, and for a second try."""
EMPTY_MODULE = b"\0asm\x01\0\0\0"
"""What every loader can read: the control of a loader."""

_SPAN_FIRST = re.compile(r"(?:error: )?(?:LH\d{4}: )?\[(\d{1,9})\.\.(\d{1,9})\]", re.ASCII)
_SPAN_LAST = re.compile(r"\[(\d{1,9})\.\.(\d{1,9})\]$", re.ASCII)


@dataclass(frozen=True, slots=True)
class Compilation:
    """`module` is empty unless the ending is ACCEPTED; spans are byte offsets, -1 when none was given.

    Processor times of the process and of the control that it was compared with, 0 when none was needed.
    `diagnostic` of an UNKNOWN ending says how busy the machine is.
    """

    ending: Ending
    exit_code: int
    module: bytes
    entry: str
    valid: bool
    diagnostic: str
    span: tuple[int, int]
    cpu_ms: float = 0.0
    control_cpu_ms: float = 0.0

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.module).hexdigest() if self.module else ""


@dataclass(frozen=True, slots=True)
class CompilerProcess:
    """How the process ended in the end. `why` is the reason of an UNKNOWN ending."""

    ended: process.ProcessEnd
    ending: Ending
    control: ProcessorTime | None = None
    why: str = ""

    @property
    def cpu_ms(self) -> float:
        return round(self.ended.spent.cpu_s * 1000, 3)

    @property
    def control_cpu_ms(self) -> float:
        return round(self.control.cpu_s * 1000, 3) if self.control else 0.0


def compile_source(source: str, ctx: Context, deadline: Deadline, cpu_s: float = math.inf) -> Compilation:
    """Source on standard input, a module on standard output (platform-facts 1.10)."""
    threading.Thread(target=_load_engine, daemon=True).start()  # beside the compiler: it is wanted after it
    tried = _try(ctx.program.command, source.encode(), ctx.program.sample.encode(), deadline, cpu_s)
    module = tried.ended.stdout if tried.ending is Ending.ACCEPTED else b""
    diagnostic = tried.why or _diagnostic(tried.ended.stderr)
    return Compilation(
        ending=tried.ending,
        exit_code=tried.ended.code,
        module=module,
        entry=wasm.entry(module),
        valid=bool(module) and is_valid(module),
        diagnostic="" if tried.ending is Ending.ACCEPTED else diagnostic,
        span=span(diagnostic) if tried.ending is Ending.CLEAN_ERROR else (-1, -1),
        cpu_ms=tried.cpu_ms,
        control_cpu_ms=tried.control_cpu_ms,
    )


def load_module(module: bytes, ctx: Context, deadline: Deadline, cpu_s: float = math.inf) -> Compilation:
    """The platform's loader on given bytes: it prints the entry it found; other words mean none."""
    tried = _try(ctx.program.loader, module, EMPTY_MODULE, deadline, cpu_s)
    accepted = tried.ending is Ending.ACCEPTED
    said = decode(tried.ended.stdout[:64]).strip()
    return Compilation(
        ending=tried.ending,
        exit_code=tried.ended.code,
        module=module,
        entry=said if accepted and said in wasm.ENTRIES else "",
        valid=accepted and bool(module) and is_valid(module),
        diagnostic="" if accepted else tried.why or _diagnostic(tried.ended.stderr),
        span=(-1, -1),
        cpu_ms=tried.cpu_ms,
        control_cpu_ms=tried.control_cpu_ms,
    )


def _try(
    command: Sequence[str], stdin: bytes, control_stdin: bytes, deadline: Deadline, cpu_s: float
) -> CompilerProcess:
    """The process to its end. One that had to be stopped is compared with a control, and tried once more
    where the control shows that the program itself is slow."""
    before = machine.ticks()
    cpu_s = min(cpu_s, deadline.left() * CPU_PART)
    ended = _run(command, stdin, deadline.left() * WALL_PART, cpu_s)
    if ended.spent.ended:
        return CompilerProcess(ended, ended.ending)
    control = _run(command, control_stdin, deadline.left() / 2).spent
    verdict = judge(ended.spent, control, cpu_s)
    if verdict is HangVerdict.AGAIN:
        ended = _run(command, stdin, deadline.left(), AGAIN * control.cpu_s)
        if ended.spent.ended:
            return CompilerProcess(ended, ended.ending, control)
        verdict = judge(ended.spent, control, cpu_s)
    if verdict is HangVerdict.HANG:
        return CompilerProcess(ended, Ending.HANG, control)
    return CompilerProcess(ended, Ending.UNKNOWN, control, _busy(ended.spent, control, before))


def _busy(child: ProcessorTime, control: ProcessorTime, before: machine.Ticks) -> str:
    facts = machine.pressure(before) or "nothing to be read of its load"
    state = "ended" if control.ended else "had not ended"
    return (
        f"could not tell: this machine is busy ({facts}); stopped after {child.cpu_s:.2f} s of processor time"
        f" in {child.wall_s:.1f} s, a control {state} after {control.cpu_s:.2f} s in {control.wall_s:.1f} s"
    )


def _run(command: Sequence[str], stdin: bytes, wall_s: float, cpu_s: float = math.inf) -> process.ProcessEnd:
    """The process to its end; OSError ENOSPC when it failed on a disk of ours that is full."""
    ended = process.run(argv(command), stdin, wall_s, cpu_s)
    if ended.ending is not Ending.ACCEPTED and any(map(_full, (".", "/tmp"))):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return ended


def _full(folder: str) -> bool:
    disk = os.statvfs(folder)
    return not disk.f_bavail or bool(disk.f_files and not disk.f_ffree)


def argv(command: Sequence[str]) -> tuple[str, ...]:
    """`{python}` stands for the jail's own interpreter."""
    if not command:
        raise JailBroken("this platform has no compiler configured")
    return tuple(sys.executable if part == "{python}" else part for part in command)


def _load_engine() -> None:
    with contextlib.suppress(ImportError):  # is_valid says so, when it is needed
        import wasmtime  # noqa: F401


def is_valid(module: bytes) -> bool:
    """Whether a real engine accepts the module; Broken without the engine, since *invalid* is a finding."""
    try:
        import wasmtime  # 30 ms, and only an accepted module needs it
    except ImportError as error:
        raise JailBroken(f"no wasmtime in the jail: {error}") from None
    try:
        wasmtime.Module.validate(wasmtime.Engine(), module)
    except wasmtime.WasmtimeError:
        return False
    return True


def span(diagnostic: str) -> tuple[int, int]:
    """`[s..e]` at the start of a message (after a code) or at its end; (-1, -1) when there is none."""
    found = _SPAN_FIRST.match(diagnostic) or _SPAN_LAST.search(diagnostic)
    return (int(found[1]), int(found[2])) if found else (-1, -1)


def _diagnostic(stderr: bytes) -> str:
    lines = [line for line in decode(stderr).splitlines() if line.strip()]
    return clean(lines[0].strip()) if lines else ""
