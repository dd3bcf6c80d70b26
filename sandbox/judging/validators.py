"""Whether what a program made of an accepted source is sound, by the kind of its output.

A rule that cannot be certain is left out: what these functions call invalid is a finding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sandbox.errors import JailBroken
from sandbox.judging import evm_code, wasm
from sandbox.judging.faults import template
from sandbox.judging.port import ExecutionVerdict
from sandbox.programs.program import OutputKind, Program
from sandbox.text import decode

if TYPE_CHECKING:
    from wasmtime import Engine

_NOISE = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\\n])'|`(?:\\.|[^`\\])*`", re.DOTALL
)
_TOKEN = re.compile(r"[A-Za-z_$][\w$]*|[^\s\w]|\d\w*")
_BEFORE = {
    "rust": (("fn",),),
    "typescript": (("export", "function"),),
    "c": (("int",), ("void",), ("float",), ("double",), ("long",)),
    "go": (("func",),),
    "": (("fn",), ("func",), ("fun",)),
}
"""By family: the tokens before the name of a function that a module exports, at the top level. A family that
is not listed has no such rule."""
_HIDDEN = frozenset({"static", "inline", "extern", "async", "const", "unsafe"})
"""With one of these before it, a definition is another matter."""
_ENDS = frozenset("};")


def defines(source: str, entries: Sequence[str], family: str) -> bool:
    """Whether the source certainly defines one of them as a plain top-level function with a body."""
    before = _BEFORE.get(family, ())
    return any(
        tokens[at] in entries
        and tokens[at + 1 : at + 2] == ["("]
        and any(tuple(tokens[max(at - len(one), 0) : at]) == one for one in before)
        and not _HIDDEN & set(_item(tokens, at))
        and _has_body(tokens, at)
        for tokens in (list(_top_level(source)),)
        for at in range(len(tokens))
    )


def _top_level(source: str) -> Iterator[str]:
    """Tokens outside braces; each pair of braces as `{` and `}`. Nothing of a source that does not nest."""
    depth = 0
    for hit in _TOKEN.finditer(_NOISE.sub(" 0 ", source)):
        token = hit[0]
        depth -= token == "}"
        if depth <= 0:
            yield token
        depth += token == "{"


def _item(tokens: Sequence[str], at: int) -> Sequence[str]:
    """The tokens of the item before its name."""
    start = at
    while start and tokens[start - 1] not in _ENDS:
        start -= 1
    return tokens[start:at]


def _has_body(tokens: Sequence[str], at: int) -> bool:
    for token in tokens[at:]:
        if token in "{;":
            return token == "{"
    return False


_TYPE = re.compile(
    r"(?:u?int(?:8|16|24|32|40|48|56|64|72|80|88|96|104|112|120|128|136|144|152|160|168|176|184|192|200|208"
    r"|216|224|232|240|248|256)|address|bool|bytes(?:[1-9]|[12]\d|3[0-2])?|string|function|tuple"
    r"|u?fixed(?:168x10|128x18|128x10))(?:\[\d{0,78}\])*"
)
_KINDS = frozenset(("function", "constructor", "receive", "fallback", "event", "error"))
MAX_DEPTH = 24


def malformed(abi: object) -> str:
    """What is wrong with a parsed ABI, in words without its names; "" when it is well formed."""
    if not isinstance(abi, list):
        return "the ABI is not a list"
    known: set[tuple[str, str, str]] = set()
    for entry in abi:
        if not isinstance(entry, dict) or entry.get("type", "function") not in _KINDS:
            return "an entry of the ABI is of no known kind"
        kind = entry.get("type", "function")
        for part in ("inputs", "outputs"):
            for one in entry.get(part, ()):
                if why := _parameter(one, 0):
                    return why
        if kind in ("function", "event", "error") and not isinstance(entry.get("name"), str):
            return "an entry of the ABI has no name"
        if kind == "function":
            key = (kind, entry["name"], ",".join(_spelled(one) for one in entry.get("inputs", ())))
            if key in known:
                return "two functions of the ABI have one signature"
            known.add(key)
    return ""


def _parameter(one: Any, depth: int) -> str:  # noqa: ANN401  any JSON
    if not isinstance(one, dict) or depth > MAX_DEPTH:
        return "a parameter of the ABI is not an object"
    kind = one.get("type")
    if not isinstance(kind, str) or not _TYPE.fullmatch(kind):
        return "a parameter of the ABI has a type that does not exist"
    if kind.startswith("tuple"):
        parts = one.get("components")
        if not isinstance(parts, list):
            return "a tuple of the ABI has no components"
        return next(filter(None, (_parameter(part, depth + 1) for part in parts)), "")
    return ""


def _spelled(one: dict[str, Any]) -> str:
    """The type in a signature."""
    kind = str(one.get("type"))
    if kind.startswith("tuple"):
        return f"({','.join(_spelled(part) for part in one.get('components', ()))}){kind[5:]}"
    return kind


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
            for line in decode(output).splitlines():
                line = _PLACEHOLDER.sub("0" * 40, line.strip())
                if not _LINE.fullmatch(line):
                    return "the deployment code is not hex"
                if why := evm_code.bad_jump(bytes.fromhex(line.removeprefix("0x"))):
                    return why
            return ""
        case OutputKind.ABI:
            try:
                return malformed(json.loads(output))
            except (ValueError, RecursionError):
                return "the ABI is not JSON"
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
