"""Other forms of the same program: what names, numbers, strings, blanks and comments are spelled like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from sandbox.fuzz.inputs.material import MOST_BYTES, Edit, Material, choose, place
from sandbox.fuzz.inputs.tokens import (
    COMMENT,
    INDENTED,
    NEWLINE,
    NUMBER,
    OPERATOR,
    STRING,
    WORD,
    InputToken,
    parsed,
    text,
)

LENGTHS = (2, 3, 8, 9, 12, 16, 17, 21, 24, 32, 33, 40, 64, 65, 100, 128, 129, 256, 257, 1025)
"""Of names, strings and comments: at and behind the edges of what a buffer or a width holds."""
_UNDERSCORE = "_"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WIDE = ("é", "ß", "漢", "𝒳", "ü")
_WIDE_NAMES = frozenset({"typescript", "c", "generic", "json"})
_MOST_CALLED = 3
_SAME = 0.15
"""The part of the names that become one that something else has."""


def spelling(taken: str, chance: Random, *, wide: bool = False) -> str:
    """A name that the text does not have: short, long, capital, with `_` first or last, ending in a digit, or
    with letters that ASCII does not have."""
    name = choose(chance, _LETTERS)
    if chance.random() < 0.5:
        name += choose(chance, ("oo", "nn", "a_b", "")) * (choose(chance, LENGTHS) // 2)
    which = int(chance.random() * 7)
    if which == 0:
        name = name.capitalize()
    elif which == 1:
        name = name.upper()
    elif which == 2:
        name = _UNDERSCORE + name
    elif which == 3:
        name += _UNDERSCORE
    elif which in (4, 5):
        name += str(int(chance.random() * 10))
    elif wide:
        name += choose(chance, _WIDE)
    while name in taken:
        name += choose(chance, _LETTERS)
    return name


def called(source: str, names: Sequence[str], chance: Random) -> str:
    """The source with up to `_MOST_CALLED` of the names that it has called something else everywhere, now and
    then what another one of them is called."""
    there = [name for name in names if re.search(_word(name), source)]
    for _ in range(min(1 + int(chance.random() * _MOST_CALLED), len(there))):
        name = there.pop(int(chance.random() * len(there)))
        same = there and chance.random() < _SAME
        source = re.sub(_word(name), choose(chance, there) if same else spelling(source, chance), source)
    return source


def _word(name: str) -> str:
    return rf"(?<![\w\\]){re.escape(name)}\b"


def renamed(parts: list[InputToken], material: Material, chance: Random) -> None:
    """A name is another one wherever it stands."""
    known = material.words
    names = sorted({one.text for one in parts if one.kind == WORD} - known.keywords - {*known.types})
    if names:
        old = choose(chance, names)
        taken = " ".join(names)
        new = "$" * old.startswith("$") + spelling(taken, chance, wide=material.family in _WIDE_NAMES)
        parts[:] = [
            InputToken(WORD, new, one.before) if one.kind == WORD and one.text == old else one
            for one in parts
        ]


def respelled(parts: list[InputToken], material: Material, chance: Random) -> None:
    """A whole number in another notation: mostly the same number."""
    at = [index for index, one in enumerate(parts) if one.kind == NUMBER and one.text.isdecimal()]
    if at:
        index = choose(chance, at)
        digits = parts[index].text
        value = int(digits[:4000])
        short = digits[:1] + "_" + (digits[1:] or "0" * (digits != "0"))
        forms = (
            f"0x{value:x}",
            f"0x{value:X}",
            f"0x0{value:x}",
            f"0b{value:b}",
            f"00{digits}",
            short.rstrip("_"),
        )
        suffix = choose(chance, ("", "", "", "_", choose(chance, material.words.types)))
        parts[index] = InputToken(NUMBER, choose(chance, (*forms, digits)) + suffix, parts[index].before)


def blanks(parts: list[InputToken], material: Material, chance: Random) -> None:
    """Between two tokens stands a comment or white space of some form; sometimes at the very end."""
    comments = material.words.comments
    form = choose(chance, (*comments, *comments, "\t\t", "\n\n\n\n", "\r\n", "\r", "\f", " " * 64, "\n" * 50))
    if material.family in INDENTED and form not in comments:
        form = "\t"
    if "@" in form:
        form = form.replace("@", "x" * choose(chance, LENGTHS))
    if chance.random() < 0.2:
        parts.append(InputToken(COMMENT, form, " "))
        return
    at = place(chance, parts)
    if chance.random() < 0.3:
        at = 0
    if material.family in INDENTED:
        ends = [index for index, one in enumerate(parts) if one.kind == NEWLINE]
        if ends:
            parts.insert(choose(chance, ends), InputToken(COMMENT, form, " "))
        return
    line = "" if form.isspace() or form.endswith(("*/", ";)", "\n")) else "\n"
    parts[at] = InputToken(parts[at].kind, parts[at].text, parts[at].before + form + line)


def stretched(parts: list[InputToken], _material: Material, chance: Random) -> None:
    """A string is empty, or as long as an edge."""
    at = [index for index, one in enumerate(parts) if one.kind == STRING and len(one.text) > 1]
    if at:
        index = choose(chance, at)
        text = parts[index].text
        mark = text[-1]
        size = choose(chance, (0, *LENGTHS, 4096, 65_000))
        body = choose(chance, ("a", "ab", "é", text[text.index(mark) + 1 : -1] or "b"))
        body = (body * (size // len(body) + 1))[: min(size, MOST_BYTES - 512)] if size else ""
        parts[index] = InputToken(STRING, text[: text.index(mark) + 1] + body + mark, parts[index].before)


def commas(parts: list[InputToken], _material: Material, chance: Random) -> None:
    """One sign more than needed: a comma before a closing bracket, a semicolon, a pair of brackets."""
    ends = [index for index, one in enumerate(parts) if one.text in (")", "]", "}", ";")]
    if ends:
        at = choose(chance, ends)
        sign = choose(chance, (",", ";")) if parts[at].text != ";" else ";"
        parts.insert(at, InputToken(OPERATOR, sign, ""))


SPELLING_EDITS: tuple[Edit, ...] = (renamed, renamed, respelled, blanks, blanks, stretched, commas)

CHANGES = 8
"""Most changes of one program: what none of them disturbs is tried with all of them."""
_SURROUNDINGS: tuple[Edit, ...] = (blanks, blanks, blanks, renamed, stretched)


def surrounded(source: bytes, chance: Random, family: str) -> bytes | None:
    """The program with several changes that mostly leave its message what it was."""
    material = Material((source,), family)
    parts = list(parsed(source, family).tokens)
    for _ in range(1 + int(chance.random() * CHANGES)):
        if parts:
            choose(chance, _SURROUNDINGS)(parts, material, chance)
    made = text(parts)
    return made if 0 < len(made) <= MOST_BYTES and made != source else None
