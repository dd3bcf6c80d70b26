"""The platform's compiler and loader, run inside this jail: what they said, and how they ended."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox import process, wasm
from sandbox.faults import Broken, Deadline
from sandbox.process import Ending
from sandbox.spec import Context
from sandbox.text import clean, decode

_SPAN_FIRST = re.compile(r"(?:error: )?(?:LH\d{4}: )?\[(\d{1,9})\.\.(\d{1,9})\]", re.ASCII)
_SPAN_LAST = re.compile(r"\[(\d{1,9})\.\.(\d{1,9})\]$", re.ASCII)


@dataclass(frozen=True, slots=True)
class Compiled:
    """`module` is empty unless the ending is ACCEPTED; spans are byte offsets, -1 when none was given."""

    ending: Ending
    exit_code: int
    module: bytes
    entry: str
    valid: bool
    diagnostic: str
    span: tuple[int, int]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.module).hexdigest() if self.module else ""


def compile_source(source: str, ctx: Context, deadline: Deadline) -> Compiled:
    """Source on standard input, a module on standard output (platform-facts 1.10)."""
    threading.Thread(target=_load_engine, daemon=True).start()  # beside the compiler: it is wanted after it
    ended = _run(ctx.compiler, source.encode(), deadline)
    module = ended.stdout if ended.ending is Ending.ACCEPTED else b""
    diagnostic = _diagnostic(ended.stderr)
    return Compiled(
        ending=ended.ending,
        exit_code=ended.code,
        module=module,
        entry=wasm.entry(module),
        valid=bool(module) and is_valid(module),
        diagnostic="" if ended.ending is Ending.ACCEPTED else diagnostic,
        span=span(diagnostic) if ended.ending is Ending.CLEAN_ERROR else (-1, -1),
    )


def load_module(module: bytes, ctx: Context, deadline: Deadline) -> Compiled:
    """The platform's loader on given bytes: it prints the entry it found; other words mean none."""
    ended = _run(ctx.loader, module, deadline)
    accepted = ended.ending is Ending.ACCEPTED
    said = decode(ended.stdout[:64]).strip()
    return Compiled(
        ending=ended.ending,
        exit_code=ended.code,
        module=module,
        entry=said if accepted and said in wasm.ENTRIES else "",
        valid=accepted and bool(module) and is_valid(module),
        diagnostic="" if accepted else _diagnostic(ended.stderr),
        span=(-1, -1),
    )


def _run(command: Sequence[str], stdin: bytes, deadline: Deadline) -> process.Ended:
    """The process to its end; OSError ENOSPC when it failed on a disk of ours that is full."""
    ended = process.run(argv(command), stdin, deadline.left())
    if ended.ending is not Ending.ACCEPTED and any(map(_full, (".", "/tmp"))):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return ended


def _full(folder: str) -> bool:
    disk = os.statvfs(folder)
    return not disk.f_bavail or bool(disk.f_files and not disk.f_ffree)


def argv(command: Sequence[str]) -> tuple[str, ...]:
    """`{python}` stands for the jail's own interpreter."""
    if not command:
        raise Broken("this platform has no compiler configured")
    return tuple(sys.executable if part == "{python}" else part for part in command)


def _load_engine() -> None:
    with contextlib.suppress(ImportError):  # is_valid says so, when it is needed
        import wasmtime  # noqa: F401


def is_valid(module: bytes) -> bool:
    """Whether a real engine accepts the module; Broken without the engine, since *invalid* is a finding."""
    try:
        import wasmtime  # 30 ms, and only an accepted module needs it
    except ImportError as error:
        raise Broken(f"no wasmtime in the jail: {error}") from None
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
