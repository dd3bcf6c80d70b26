"""The functions that a module imports and exports, where all of its types are numbers.

Read by hand: the engine's own reflection aborts the process on a v128.
"""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.judging.wasm import leb, sections

_TYPES, _IMPORTS, _FUNCTIONS, _TABLES, _GLOBALS, _EXPORTS, _TAGS = 1, 2, 3, 4, 6, 7, 13
_NUMBERS = {0x7F: "i32", 0x7E: "i64", 0x7D: "f32", 0x7C: "f64"}
_FUNCTION = 0
_FUNCREF = 0x70
_OTHER_TYPES = frozenset((0x7B, *range(0x63, 0x75)))
"""v128, and references."""


@dataclass(frozen=True, slots=True)
class WasmSignature:
    """Types as `i32`, `i64`, `f32` or `f64`."""

    name: str
    takes: tuple[str, ...]
    gives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WasmInterface:
    imports: tuple[WasmSignature, ...]
    exports: tuple[WasmSignature, ...]


def interface(module: bytes) -> WasmInterface | None:
    """Imported and exported functions in the module's order; None when it imports anything else, has another
    type anywhere, or is not well formed. Never raises."""
    bodies: dict[int, bytes] = {}
    for number, body in sections(module):
        bodies.setdefault(number, body)
    try:
        if _TAGS in bodies or _vectors(bodies):
            return None
        types = _types(bodies.get(_TYPES, b"\0"))
        imports = _imported(bodies.get(_IMPORTS, b"\0"))
        own = _numbers(bodies.get(_FUNCTIONS, b"\0"))
        all_types = [types[one] for one in (*(index for _, index in imports), *own)]
        exports = _exported(bodies.get(_EXPORTS, b"\0"))
        return WasmInterface(
            tuple(WasmSignature(name, *types[index]) for name, index in imports),
            tuple(WasmSignature(name, *all_types[index]) for name, index in exports),
        )
    except (IndexError, KeyError, ValueError):
        return None


def _vectors(bodies: dict[int, bytes]) -> bool:
    """Whether a global may be a vector, or a table of another kind: a byte that could be such a type is
    enough, even where it is a part of a number."""
    return bool(_OTHER_TYPES & set(bodies.get(_GLOBALS, b""))) or bool(
        set(bodies.get(_TABLES, b"")) & (_OTHER_TYPES - {_FUNCREF})
    )


Signature = tuple[tuple[str, ...], tuple[str, ...]]


def _types(body: bytes) -> list[Signature]:
    count, at = leb(body, 0)
    found = []
    for _ in range(count):
        if body[at] != 0x60:
            raise ValueError("not a function type")
        sides = []
        at += 1
        for _ in range(2):
            length, at = leb(body, at)
            sides.append(tuple(_NUMBERS[one] for one in body[at : at + length]))
            at += length
        found.append((sides[0], sides[1]))
    return found


def _imported(body: bytes) -> list[tuple[str, int]]:
    count, at = leb(body, 0)
    found = []
    for _ in range(count):
        names = []
        for _ in range(2):
            name, at = _name(body, at)
            names.append(name)
        if body[at] != _FUNCTION:
            raise ValueError("imports more than functions")
        index, at = leb(body, at + 1)
        found.append((".".join(names), index))
    return found


def _exported(body: bytes) -> list[tuple[str, int]]:
    count, at = leb(body, 0)
    found = []
    for _ in range(count):
        name, at = _name(body, at)
        kind = body[at]
        index, at = leb(body, at + 1)
        if kind == _FUNCTION:
            found.append((name, index))
    return found


def _numbers(body: bytes) -> list[int]:
    count, at = leb(body, 0)
    found = []
    for _ in range(count):
        number, at = leb(body, at)
        found.append(number)
    return found


def _name(body: bytes, at: int) -> tuple[str, int]:
    length, at = leb(body, at)
    return body[at : at + length].decode(), at + length
