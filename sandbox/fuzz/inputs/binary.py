"""Mutation of bytes: of WebAssembly modules by their sections and numbers, of anything else as it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from sandbox.fuzz.inputs.material import MOST_BYTES, choose, place
from sandbox.fuzz.inputs.wasm_module import BinaryModule, WasmSection, leb, parse, read

EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0x3FFF, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF, 0x1_0000_0000, (1 << 64) - 1)
ODD_NUMBERS = (
    b"\x80",  # does not end
    b"\xff\xff\xff\xff\xff",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00",  # longer than any integer type
    b"\xff\xff\xff\xff\x1f",  # more than 32 bits in 5 bytes
    b"\x80\x80\x80\x80\x10",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
)
BAD_UTF8 = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80", b"\0")
KINDS = 14
"""Section numbers from 0; 13 is the newest of them, and one more is unknown."""

Sections = list[WasmSection]
SectionEdit = Callable[[Sections, Random], bytes]
"""Changes the sections in place; what it returns follows them. Lists are not empty."""


def number(chance: Random, near: int) -> bytes:
    """A number at an edge, beside the right one, overlong or cut off."""
    which = chance.random()
    if which < 0.3:
        return leb(choose(chance, EDGES))
    if which < 0.6:
        return leb(max(0, near + choose(chance, (-2, -1, 1, 2, 7))))
    return leb(near, choose(chance, (2, 5, 6, 10))) if which < 0.8 else choose(chance, ODD_NUMBERS)


def _length(sections: Sections, chance: Random) -> bytes:
    """A section's length is another one."""
    at = place(chance, sections)
    one = sections[at]
    sections[at] = WasmSection(one.kind, number(chance, len(one.body)), one.body)
    return b""


def _kind(sections: Sections, chance: Random) -> bytes:
    at = place(chance, sections)
    kind = int(chance.random() * (KINDS + 1)) if chance.random() < 0.9 else 0xFF
    sections[at] = WasmSection(kind, sections[at].length, sections[at].body)
    return b""


def _count(sections: Sections, chance: Random) -> bytes:
    """The number that a section begins with, mostly a count, is another one; its length fits."""
    at = place(chance, sections)
    found = read(sections[at].body, 0)
    if found is not None:
        sections[at] = sections[at].of(number(chance, found[0]) + sections[at].body[found[1] :])
    return b""


def _inner(sections: Sections, chance: Random) -> bytes:
    """A number inside a section is another one; its length fits."""
    at = place(chance, sections)
    body = sections[at].body
    if body:
        start = place(chance, body)
        found = read(body, start) or (body[start], start + 1)
        sections[at] = sections[at].of(body[:start] + number(chance, found[0]) + body[found[1] :])
    return b""


def _byte(sections: Sections, chance: Random) -> bytes:
    """Bytes inside a section; its length fits."""
    at = place(chance, sections)
    sections[at] = sections[at].of(bytes(_scrambled(bytearray(sections[at].body), chance)))
    return b""


def _name(sections: Sections, chance: Random) -> bytes:
    """A text inside a section is not UTF-8, or is of another length; its length fits."""
    at = place(chance, sections)
    body = sections[at].body
    starts = [i for i in range(len(body)) if 0 < body[i] < 64 and body[i + 1 : i + 1 + body[i]].isalnum()]
    if starts:
        start = choose(chance, starts)
        name = body[start + 1 : start + 1 + body[start]]
        new = choose(
            chance, (name[:-1] + choose(chance, BAD_UTF8), b"", name * 300, choose(chance, BAD_UTF8))
        )
        size = leb(len(new)) if chance.random() < 0.8 else number(chance, len(new))
        sections[at] = sections[at].of(body[:start] + size + new + body[start + 1 + len(name) :])
    return b""


def _cut(sections: Sections, chance: Random) -> bytes:
    """The module ends after a section, inside its head, or inside its body."""
    at = place(chance, sections)
    raw = sections[at].raw
    head = raw[: choose(chance, (0, 1, 1 + len(sections[at].length), place(chance, raw)))]
    del sections[at:]
    return head


def _head(_sections: Sections, chance: Random) -> bytes:
    """A section's head with no body after it, at the end of the module."""
    return bytes([int(chance.random() * KINDS)]) + number(chance, 1 + int(chance.random() * 8))


def _doubled(sections: Sections, chance: Random) -> bytes:
    at = place(chance, sections)
    sections[at:at] = [sections[at]] * (1 if chance.random() < 0.8 else 200)
    return b""


def _moved(sections: Sections, chance: Random) -> bytes:
    one = sections.pop(place(chance, sections))
    sections.insert(int(chance.random() * (len(sections) + 1)), one)
    return b""


def _removed(sections: Sections, chance: Random) -> bytes:
    del sections[place(chance, sections)]
    return b""


def _emptied(sections: Sections, chance: Random) -> bytes:
    at = place(chance, sections)
    sections[at] = sections[at].of(choose(chance, (b"", b"\0", b"\x01")))
    return b""


def _custom(sections: Sections, chance: Random) -> bytes:
    """A custom section at any place, `name` among them, whose content is anything."""
    name = choose(chance, (b"name", b"", b"producers", b"linking", b"dylink.0", *BAD_UTF8))
    body = leb(len(name)) + name + chance.randbytes(int(chance.random() * 8))
    sections.insert(int(chance.random() * (len(sections) + 1)), WasmSection(0, leb(len(body)), body))
    return b""


SECTION_EDITS: tuple[SectionEdit, ...] = (
    *(_length, _length, _kind, _count, _inner, _inner, _byte, _name),
    *(_cut, _head, _doubled, _moved, _removed, _emptied, _custom),
)


def wasm_mutation(corpus: Sequence[bytes], chance: Random) -> bytes | None:
    """A module of the corpus with one to three edits, sometimes with a section of another one."""
    found = parse(choose(chance, corpus)) if corpus else None
    if found is None:
        return None
    sections, rest = list(found.sections), found.rest
    if chance.random() < 0.15 and (other := parse(choose(chance, corpus))) and other.sections:
        sections.insert(int(chance.random() * (len(sections) + 1)), choose(chance, other.sections))
    for _ in range(1 + int(chance.random() ** 3 * 3)):
        edit = choose(chance, SECTION_EDITS) if sections else _custom
        rest = edit(sections, chance) + rest
    return BinaryModule(tuple(sections), rest).raw[:MOST_BYTES]


def byte_mutation(corpus: Sequence[bytes], chance: Random) -> bytes | None:
    """An input of the corpus with bytes changed, taken away, put in, repeated, or of another input."""
    if not corpus:
        return None
    data = bytearray(choose(chance, corpus))
    for _ in range(1 + int(chance.random() ** 2 * 4)):
        if chance.random() < 0.15:
            other = choose(chance, corpus)
            start, at = int(chance.random() * len(other)), int(chance.random() * (len(data) + 1))
            data[at:at] = other[start : start + 1 + int(chance.random() * 32)]
        else:
            data = _scrambled(data, chance)
    return bytes(data[:MOST_BYTES])


def _scrambled(data: bytearray, chance: Random) -> bytearray:
    """One change of a few bytes."""
    if not data:
        return bytearray(chance.randbytes(1 + int(chance.random() * 8)))
    at, which = place(chance, data), chance.random()
    size = 1 + int(chance.random() ** 3 * 16)
    if which < 0.2:
        data[at] ^= 1 << int(chance.random() * 8)
    elif which < 0.4:
        data[at] = choose(chance, (0, 1, 0x7F, 0x80, 0xFF, int(chance.random() * 256)))
    elif which < 0.5:
        data[at] = (data[at] + choose(chance, (-1, 1))) % 256
    elif which < 0.65:
        del data[at : at + size]
    elif which < 0.8:
        data[at:at] = data[at : at + size] * choose(chance, (1, 2, 16, 256))
    elif which < 0.9:
        data[at:at] = choose(chance, (*BAD_UTF8, *ODD_NUMBERS))
    else:
        del data[at:]
    return data
