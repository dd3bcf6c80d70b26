"""What a loader looks at first: the head of a module, and what it exports."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from sandbox.fuzz.inputs.binary import BAD_UTF8, number
from sandbox.fuzz.inputs.material import MOST_BYTES, choose, place
from sandbox.fuzz.inputs.wasm_module import MAGIC, BinaryModule, WasmSection, leb, parse, read

EXPORTS, CODE = 7, 10
KINDS = (0, 1, 2, 3, 4, 5, 0x40, 0x7F, 0x80, 0xFF)
"""Of an export: function, table, memory, global, tag, and what is none of these."""
SIZES = (0, 1, 5, 31, 63, 64, 127, 128, 255, 256, 1000, 16_384, 65_000)
"""Of a name, in bytes."""
COUNTS = (0, 1, 2, 3, 64, 65, 127, 128, 129, 1001, 65_535, 65_536, 1 << 20, 1 << 31, (1 << 32) - 1)
"""That a section claims to have."""
_MOST = 40
_LARGEST_SECTION = 17

Names = list[tuple[bytes, int, int]]
"""A name, what it is of, and which one."""


def names(section: bytes) -> Names:
    """The exports of a section's body, as far as they can be read."""
    found: Names = []
    head = read(section, 0)
    at = head[1] if head else len(section)
    while (size := read(section, at)) is not None:
        start, end = size[1], size[1] + size[0]
        index = read(section, end + 1)
        if index is None:
            break
        found.append((section[start:end], section[end], index[0]))
        at = index[1]
    return found


def _name(known: Sequence[bytes], chance: Random) -> bytes:
    which = chance.random()
    one = choose(chance, known) if known else b"a"
    if which < 0.5:
        return one
    if which < 0.7:
        return (one or b"a") * (choose(chance, SIZES) // max(1, len(one)))
    if which < 0.8:
        return one[:-1] + choose(chance, BAD_UTF8)
    return choose(
        chance, (b"", one.upper(), one + b"\0", one + b" ", one[:-1], one + one, b"_start", b"memory")
    )


def _index(functions: int, chance: Random) -> bytes:
    """Of what is exported: there, the first that is not, or far away."""
    if chance.random() < 0.6:
        return leb(choose(chance, (0, max(0, functions - 1), functions, functions + 1)))
    return number(chance, functions)


def section(found: Names, functions: int, chance: Random) -> WasmSection:
    """An export section: its count fits mostly, and so do the lengths of its names."""
    entries = list(found)
    if chance.random() < 0.4:
        entries = entries[: int(chance.random() * (len(entries) + 1))]
    known = [one[0] for one in found]
    written = [leb(len(name)) + name + bytes([kind]) + leb(index) for name, kind, index in entries]
    for _ in range(int(chance.random() ** 3 * _MOST)):
        name = _name(known, chance)
        size = leb(len(name)) if chance.random() < 0.7 else number(chance, len(name))
        kind = choose(chance, KINDS) if chance.random() < 0.6 else 0
        written.insert(
            place(chance, [*written, b""]), size + name + bytes([kind]) + _index(functions, chance)
        )
    count = leb(len(written)) if chance.random() < 0.6 else leb(choose(chance, COUNTS))
    body = count + b"".join(written)
    body = body[: len(body) - int(chance.random() * 8)] if chance.random() < 0.2 else body
    length = leb(len(body)) if chance.random() < 0.8 else number(chance, len(body))
    return WasmSection(EXPORTS, length, body)


def head(raw: bytes, chance: Random) -> bytes:
    """The module with another head, or cut off in it."""
    which = chance.random()
    if which < 0.4:
        return raw[: 1 + int(chance.random() * len(MAGIC))]
    at = int(chance.random() * len(MAGIC)) if which < 0.7 else 4
    value = choose(chance, (0, 2, 0x0D, 0x7F, 0x80, 0xFF))
    return raw[:at] + bytes([value]) + raw[at + 1 :]


def bare(chance: Random) -> WasmSection:
    """A section with nothing in it, or with no more than a number, of any kind."""
    kind = int(chance.random() * _LARGEST_SECTION) if chance.random() < 0.9 else choose(chance, KINDS)
    body = choose(chance, (b"", b"\0", b"\1", leb(choose(chance, COUNTS))))
    length = leb(len(body)) if chance.random() < 0.6 else leb(choose(chance, COUNTS))
    return WasmSection(kind, length, body)


def export_mutation(corpus: Sequence[bytes], chance: Random) -> bytes | None:
    """A module of the corpus, or one with nothing in it, whose exports or head are others."""
    found = parse(choose(chance, corpus)) if corpus else None
    if found is None:
        return None
    sections = list(found.sections) if chance.random() < 0.7 else []
    which = chance.random()
    if which < 0.15:
        return head(BinaryModule(tuple(sections)).raw, chance)
    if which < 0.4:
        sections.insert(place(chance, [*sections, None]), bare(chance))
        return BinaryModule(tuple(sections)).raw
    exported = [one for one in found.sections if one.kind == EXPORTS]
    code = next((one.body for one in found.sections if one.kind == CODE), b"\0")
    new = section(names(exported[0].body) if exported else [], (read(code, 0) or (0, 0))[0], chance)
    at = [index for index, one in enumerate(sections) if one.kind == EXPORTS]
    if at and chance.random() < 0.8:
        sections[at[0]] = new
    else:
        sections.insert(place(chance, [*sections, None]), new)
    return BinaryModule(tuple(sections)).raw[:MOST_BYTES]
