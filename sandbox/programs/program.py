"""A program under test: a compiler, loader or decoder, as a profile describes it.

Standard library only, shared by both sides of the fence like the definitions of tools.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

EMPTY_MODULE = b"\0asm\x01\0\0\0"
"""What every loader can read: the control of a loader."""


class SourceBy(StrEnum):
    """How a program is given its input."""

    STDIN = "stdin"
    FILE = "file"  # `{source}` in the command is its path


class OutputKind(StrEnum):
    """What an accepted input becomes, and so what can be said of it."""

    WASM = "wasm"
    EVM = "evm"  # deployment bytecode in hex, one contract a line, as solc and vyper print it
    ABI = "abi"  # a contract's ABI as JSON
    TEXT = "text"
    NONE = "none"  # a decoder: accepted or refused, nothing more


class WarmStart(StrEnum):
    """How executions of a campaign share the program's start; each has a fallback, which is named."""

    SPAWN = "spawn"  # they do not: one process for each
    FORK_SERVER = "fork-server"  # native: forked after the dynamic loader's work
    PYTHON = "python"  # forked after the import
    NODE = "node"  # a process that compiles one input after another


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """`command` and `loader` are argv inside the jail, where `{python}` is the jail's interpreter; empty: the
    platform has none. See `CompilerSection` (fleet/config/platform.py) for the meaning of each field.
    """

    command: tuple[str, ...] = ()
    loader: tuple[str, ...] = ()
    language: str = ""
    family: str = ""
    tool_chain: str = ""
    sample: str = ""
    source_by: str = SourceBy.STDIN.value
    file_name: str = "source"
    output: str = OutputKind.WASM.value
    output_file: str = ""
    entries: tuple[str, ...] = ()
    clean_exits: tuple[int, ...] = (1,)
    clean_error: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    memory_mb: int = 512
    warm: str = WarmStart.SPAWN.value
    warm_entry: str = ""
    other: tuple[str, ...] = ()
    printer: tuple[str, ...] = ()
