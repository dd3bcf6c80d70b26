"""What a module does: its exported functions on a table of arguments, as one digest.

Two modules that are meant to do the same are compared by it. Bounded by fuel and memory. Imported functions
answer with zeros, and their order is part of the behaviour, not what they are given: an address, or a line of
the source (as AssemblyScript gives to `abort`). A module that imports anything else, or has other types than
numbers, has none ("").
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sandbox.errors import JailBroken
from sandbox.judging.wasm_interface import WasmInterface, WasmSignature, interface

if TYPE_CHECKING:
    from wasmtime import Func, Instance, Module, Store

FUEL = 200_000
"""Instructions, about, of one call and of the start function."""
MEMORY = 16 << 20
MAX_FUNCTIONS = 8
MAX_CALLS = 6
"""Calls of one function, each in an instance of its own, so that none depends on those before it."""
MAX_STUB_CALLS = 200
"""Recorded calls of imported functions."""

_INTEGERS = (0, 1, 2, -1, 7, 1000)
_FLOATS = (0.0, 1.0, -1.5, 2.0, 1e10, -0.0)


def behaviour(module: bytes) -> str:
    """The digest of results and traps by function and arguments; "" when the module cannot be run here.

    A call that uses up its fuel or the memory, or overflows the stack, says only that: how far it comes
    depends on the compiler. If one does, the whole has no behaviour, since nothing can be compared.
    """
    try:
        import wasmtime  # as in validators.py: only an accepted module needs it
    except ImportError as error:
        raise JailBroken(f"no wasmtime in the jail: {error}") from None
    if (shape := interface(module)) is None:
        return ""
    config = wasmtime.Config()
    config.consume_fuel = True
    config.cranelift_nan_canonicalization = True
    engine = wasmtime.Engine(config)
    try:
        compiled = wasmtime.Module(engine, module)
        told = list(_told(compiled, shape, engine))
    except (wasmtime.WasmtimeError, OverflowError, ValueError):
        return ""
    if not told or any(line is None for line in told):
        return ""
    return hashlib.sha256("\n".join(map(str, told)).encode()).hexdigest()[:32]


def _told(module: Module, shape: WasmInterface, engine: Any) -> Iterator[str | None]:  # noqa: ANN401  wasmtime has no types
    """A line for each call; None for one that says nothing that can be compared."""
    import wasmtime

    for function in sorted(shape.exports, key=lambda one: one.name)[:MAX_FUNCTIONS]:
        for arguments in _table(function.takes):
            store = wasmtime.Store(engine)
            store.set_limits(memory_size=MEMORY, instances=1, memories=4, tables=4, table_elements=10_000)
            store.set_fuel(FUEL)
            yield _call(store, module, shape.imports, function.name, arguments)


def _table(kinds: Sequence[str]) -> list[tuple[int | float, ...]]:
    """Rows of arguments: in each row the places differ, so that an exchange of two shows."""
    if not kinds:
        return [()]
    return [
        tuple(
            (_INTEGERS if kind[0] == "i" else _FLOATS)[(row + at) % MAX_CALLS]
            for at, kind in enumerate(kinds)
        )
        for row in range(MAX_CALLS)
    ]


def _call(
    store: Store,
    module: Module,
    imports: Sequence[WasmSignature],
    name: str,
    arguments: tuple[int | float, ...],
) -> str | None:
    import wasmtime

    calls: list[str] = []
    try:
        instance: Instance = wasmtime.Instance(store, module, _stubs(store, imports, calls))
        results = _run(store, instance.exports(store)[name], arguments)  # type: ignore[arg-type]
        how = f"= {' '.join(map(_exact, results))}"
    except wasmtime.Trap as trap:
        # A limit of the engine says nothing; the other traps are the module's own.
        word = getattr(trap.trap_code, "name", "")
        how = "" if word in ("", "OUT_OF_FUEL", "STACK_OVERFLOW", "INTERRUPT") else f"traps: {word}"
    except (wasmtime.WasmtimeError, _TooMuchCalled):  # fuel, and other limits of ours
        how = ""
    return f"{name}{arguments} {how} after {' '.join(calls)}" if how else None


class _TooMuchCalled(Exception):
    """More calls of imported functions than are recorded."""


def _stubs(store: Store, imports: Sequence[WasmSignature], calls: list[str]) -> list[Func]:
    """Functions in place of the imports."""
    import wasmtime

    types = {kind: getattr(wasmtime.ValType, kind) for kind in ("i32", "i64", "f32", "f64")}
    stubs = []
    for one in imports:
        kind = wasmtime.FuncType([types[at]() for at in one.takes], [types[at]() for at in one.gives])
        zeros = [0 if at[0] == "i" else 0.0 for at in one.gives]

        def stub(*_: Any, told: str = one.name, zeros: list[Any] = zeros) -> Any:  # noqa: ANN401  wasmtime has no types
            if len(calls) == MAX_STUB_CALLS:
                raise _TooMuchCalled
            calls.append(told)
            return zeros[0] if len(zeros) == 1 else zeros or None

        stubs.append(wasmtime.Func(store, kind, stub))
    return stubs


def _run(store: Store, function: Func, arguments: tuple[int | float, ...]) -> list[Any]:
    result = function(store, *arguments)
    return result if isinstance(result, list) else [] if result is None else [result]


def _exact(value: Any) -> str:  # noqa: ANN401  wasmtime has no types
    """A float by its bits: 0.0 and -0.0 differ, and every NaN is the same."""
    if isinstance(value, float):
        return "nan" if value != value else struct.pack(">d", value).hex()
    return str(value)
