"""A typed program to WebAssembly text."""

from __future__ import annotations

from itertools import takewhile

from . import nodes as n
from .check import CheckedProgram
from .emit import Emitter, wasm
from .strings import Strings

MEMORY = "rustlite.memory"
"""Export name of the memory that `log` texts are in; the dot keeps it apart from every function's name."""


def generate(program: CheckedProgram, defects: frozenset[str]) -> str:
    """The text of the module."""
    functions = [item for item in program.items if isinstance(item, n.Function)]
    strings = Strings()
    bodies = [_function(item, strings, defects) for item in functions]
    lines = ["(module"]
    if strings.used:
        lines.append('(import "host" "log" (func $log (param i32 i32)))')
    lines += bodies
    lines += [f'(export "{item.name}" (func $f_{item.name}))' for item in _exported(program, defects)]
    if strings.used:
        lines.append(f'(memory (export "{MEMORY}") {strings.pages})')
        lines += [f'(data (i32.const {at}) "{text}")' for at, text in strings.segments()]
    lines.append(")")
    return "\n".join(lines)


def _exported(program: CheckedProgram, defects: frozenset[str]) -> list[n.Function]:
    items = program.items
    if "missing-entry" in defects:  # seeded defect: the export table stops at the first const
        items = list(takewhile(lambda item: not isinstance(item, n.Const), items))
    return [item for item in items if isinstance(item, n.Function) and item.exported]


def _function(item: n.Function, strings: Strings, defects: frozenset[str]) -> str:
    params = item.locals[: len(item.params)]
    head = [f"(func $f_{item.name}"]
    head += [f"(param {wasm(local.type) or 'i32'})" for local in params]
    head += [f"(result {kind})" for kind in [wasm(item.returns)] if kind]
    head += [f"(local {wasm(local.type) or 'i32'})" for local in item.locals[len(params) :]]
    emitter = Emitter(strings, defects)
    emitter.expr(item.body)
    return "\n".join([" ".join(head), *emitter.code, ")"])
