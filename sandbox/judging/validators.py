"""Whether what a program made of an accepted source is sound, by the kind of its output.

A rule that cannot be certain is left out: what these functions call invalid is a finding.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from sandbox.errors import JailBroken
from sandbox.judging import evm_code, wasm
from sandbox.judging.abi_json import malformed
from sandbox.judging.entry_rule import defines
from sandbox.judging.messages import template
from sandbox.judging.port import ExecutionVerdict
from sandbox.programs.program import OutputKind, Program
from sandbox.text import decode

if TYPE_CHECKING:
    from wasmtime import Engine

_OFFSET = re.compile(r"\s*\(at offset 0x[0-9a-f]+\)|\bat offset \d+:?\s*")
_PLACEHOLDER = re.compile(r"__[^\n]{36}__")
"""Where solc leaves the address of a library to be filled in (40 characters)."""
_ENGINE_ONLY = re.compile(
    r"\bsize (?:is )?out of bounds|\bexceeds? (?:the )?(?:\w+ )?(?:limit|maximum)|\blocals exceed maximum"
    r"|\bimplementation limit|\btoo many locals|\btoo deep\b"
    r"|\bfeature required\b|\bproposal\b|\bunsupported\b|\bnot (?:enabled|supported)\b"
)
"""Words of wasmparser for an implementation's limits (1,000 parameters, 100 tables, 50,000 locals, 100,000
bytes of a name, 7,654,321 of a body), which the standard allows, and for features that it does not have."""
_LINE = re.compile(r"(?:0x)?(?:[0-9a-fA-F]{2})*")
_PROPOSALS = (
    "wasm_threads",
    "wasm_tail_call",
    "wasm_memory64",
    "wasm_multi_memory",
    "wasm_function_references",
    "wasm_gc",
    "wasm_exceptions",
    "wasm_relaxed_simd",
    "wasm_wide_arithmetic",
    "wasm_custom_page_sizes",
    "wasm_stack_switching",
)


def check(program: Program, source: str, output: bytes) -> ExecutionVerdict:
    """The verdict on an accepted source: `accepted`, `invalid-output` or `missing-entry`."""
    if said := invalid(program.output, output):
        return ExecutionVerdict("invalid-output", said)
    entries = frozenset(program.entries) if program.output == OutputKind.WASM else frozenset()
    if entries and not wasm.exports(output) & entries and defines(source, program.entries, program.family):
        return ExecutionVerdict("missing-entry", f"exports none of {', '.join(program.entries)}")
    return ExecutionVerdict("accepted", features=features(program.output, output))


def invalid(kind: str, output: bytes) -> str:
    """What is wrong with an output, its numbers and offsets folded; "" when nothing is certain."""
    match kind:
        case OutputKind.WASM:
            return template(_OFFSET.sub("", refusal(output)))
        case OutputKind.EVM:
            return _evm(output)
        case OutputKind.ABI:
            return _abi(output)
    return ""


def refusal(module: bytes) -> str:
    """Why a real engine, with every proposal that it knows, refuses the module; "" when it does not, or when
    what it states is a limit or a gap of its own. JailBroken without the engine: *invalid* is a finding."""
    try:
        import wasmtime  # 30 ms, and only an accepted module needs it
    except ImportError as error:
        raise JailBroken(f"no wasmtime in the jail: {error}") from None
    try:
        wasmtime.Module.validate(_engine(), module)
    except wasmtime.WasmtimeError as error:
        said = str(error).splitlines()[0] or "invalid"
        return "" if _ENGINE_ONLY.search(said) else said
    return ""


def _engine() -> Engine:
    import wasmtime

    config = wasmtime.Config()
    for proposal in _PROPOSALS:
        setattr(config, proposal, True)
    return wasmtime.Engine(config)


def _evm(output: bytes) -> str:
    for line in decode(output).splitlines():
        line = _PLACEHOLDER.sub("0" * 40, line.strip())
        if not _LINE.fullmatch(line):
            return "the deployment code is not hex"
        if why := evm_code.bad_jump(bytes.fromhex(line.removeprefix("0x"))):
            return why
    return ""


def _abi(output: bytes) -> str:
    try:
        return malformed(json.loads(output))
    except (ValueError, RecursionError):
        return "the ABI is not JSON"


def features(kind: str, output: bytes) -> frozenset[str]:
    """Words for what an output is made of: sections and opcodes, and its size by powers of two."""
    size = f"size {len(output).bit_length()}"
    match kind:
        case OutputKind.WASM:
            parts = wasm.sections(output)
            words = {f"section {number} {len(body).bit_length()}" for number, body in parts}
            code = b"".join(body for number, body in parts if number == wasm.CODE)
            return frozenset({size, *words, *(f"op {one:02x}" for one in set(code))})
        case OutputKind.EVM:
            lines = [_PLACEHOLDER.sub("0" * 40, line) for line in decode(output).split()]
            codes = [bytes.fromhex(line.removeprefix("0x")) for line in lines]
            return frozenset({size, *(f"op {one:02x}" for code in codes for one in evm_code.opcodes(code))})
    return frozenset({size})
