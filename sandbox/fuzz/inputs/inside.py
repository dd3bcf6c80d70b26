"""Edits inside one token: escapes in strings, digits and suffixes of numbers, letters of names, comments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from sandbox.fuzz.inputs.edits import find
from sandbox.fuzz.inputs.material import Edit, Material, choose
from sandbox.fuzz.inputs.tokens import COMMENT, NUMBER, STRING, WORD, InputToken, tokens
from sandbox.fuzz.inputs.tokens import text as joined

ESCAPES = (
    *(r"\0", r"\n", r"\t", r"\r", r"\a", r"\b", r"\f", r"\v", r"\e", r"\'", r"\"", r"\`", r"\\", r"\/"),
    *(r"\q", r"\x00", r"\x41", r"\xff", r"\x7", r"\x", r"\xZZ", r"\101", r"\400", r"\9"),
    *(r"\u0041", r"\u0000", r"\ud800", r"\udfff", r"\uffff", r"\u", r"\u12", r"\U0001F600", r"\U00110000"),
    *(r"\u{41}", r"\u{0}", r"\u{d800}", r"\u{10ffff}", r"\u{110000}", r"\u{}", r"\u{", r"\u{1234567}"),
    *("\\N{DIGIT ONE}", r"\c", r"\$", "${", "{}", "{0", "%s", "%"),
)
"""As languages write them, whole and broken."""
LETTERS = tuple("\u00e9\u0130\u00df\u0301\u200d\u202e\ufeff\U0001f600\u4e2d\u00a0\u2028")
"""Characters that are long in UTF-8, combine, join, turn the direction, or change their length by case."""
SUFFIXES = (
    *("u8", "i8", "u16", "i32", "u64", "i128", "usize", "f32", "f64", "n", "L", "ul", "u", "f", "d", "_"),
    *("__", "e", "e+", "e9", "e999", "E-9", ".", ".0", "p1", "wei", "days", "zz"),
)
PREFIXES = ("0", "00", "0x", "0X", "0b", "0o", "0_", "_", "1_")
COMMENTED = ("*/", "/*", "//", "#", "\\", "\\u{41}", "TODO", "@param x", "\t", "-->", '"', "'")
_CONTROL = ("\x01", "\x0b", "\x0c", "\x1b", "\x7f", "\x85")


def _put(text: str, at: int, what: str, chance: Random) -> str:
    """A piece at a place: beside what is there, or instead of its next character."""
    return text[:at] + what + text[at + (chance.random() < 0.3) :]


def in_string(parts: list[InputToken], _material: Material, chance: Random) -> None:
    """An escape, an odd or a control character between the quotes; an escape that is there is cut short."""
    at = find(parts, STRING, chance)
    if at < 0:
        return
    kind, text, before = parts[at]
    begin = text.index(text[-1]) + 1
    body = text[begin:-1]
    where = chance.randint(0, len(body))
    if "\\" in body and chance.random() < 0.3:  # what follows the escape, or the escape alone, goes
        where = body.index("\\") + 1
        body = body[:where] + body[where + 1 + int(chance.random() * 3) :]
    else:
        chosen = choose(chance, (ESCAPES, ESCAPES, LETTERS, _CONTROL))
        body = _put(body, where, choose(chance, chosen), chance)
    parts[at] = InputToken(kind, text[:begin] + body + text[-1], before)


def odd_strings(programs: Sequence[bytes], family: str) -> Iterator[bytes]:
    """The shortest program with a string in it, with each escape and each odd character in turn: by chance a
    search would come to any one of them once in ten thousand inputs."""
    for source in sorted(programs, key=len):
        parts = tokens(source, family)
        plain = (
            at for at, one in enumerate(parts) if one.kind == STRING and one.text[0] == one.text[-1] == '"'
        )
        if (at := next(plain, -1)) >= 0:
            kind, old, before = parts[at]
            for odd in (*ESCAPES, *LETTERS, *_CONTROL):
                new = InputToken(kind, old[:-1] + odd + old[-1], before)
                yield joined([*parts[:at], new, *parts[at + 1 :]])
            return


def in_number(parts: list[InputToken], _material: Material, chance: Random) -> None:
    """A digit more, less or another; a prefix, a separator, a suffix."""
    at = find(parts, NUMBER, chance)
    if at < 0:
        return
    kind, text, before = parts[at]
    where = chance.randint(0, len(text))
    match chance.randrange(5):
        case 0:
            text = _put(text, where, choose(chance, "0123456789abcdefxF_."), chance)
        case 1:
            text = text[:where] + text[where + 1 :] or "0"
        case 2:
            text = choose(chance, PREFIXES) + text
        case 3:
            text += choose(chance, SUFFIXES)
        case _:
            text = (
                text[:where]
                + choose(chance, "0179fF") * choose(chance, (2, 8, 17, 33, 70, 320))
                + text[where:]
            )
    parts[at] = InputToken(kind, text, before)


def in_word(parts: list[InputToken], _material: Material, chance: Random) -> None:
    """A letter of a name more, less, or another one; in half of the cases wherever the name stands."""
    at = find(parts, WORD, chance)
    if at < 0:
        return
    old = parts[at].text
    where = chance.randint(0, len(old))
    match chance.randrange(5):
        case 0:
            new = _put(old, where, choose(chance, LETTERS), chance)
        case 1:
            new = _put(old, where, choose(chance, ("_", "__", "$", "0", "r#", "A", "-", "@")), chance)
        case 2:
            new = old[:where] + old[where + 1 :] or "_"
        case 3:
            new = old.swapcase()
        case _:
            new = old[:where] + choose(chance, "a_0") * choose(chance, (31, 64, 255, 256, 1025)) + old[where:]
    everywhere = chance.random() < 0.5
    for index, (kind, text, before) in enumerate(parts):
        if index == at or (everywhere and text == old):
            parts[index] = InputToken(kind, new, before)


def in_comment(parts: list[InputToken], _material: Material, chance: Random) -> None:
    """Something odd in a comment."""
    at = find(parts, COMMENT, chance)
    if at < 0:
        return
    kind, text, before = parts[at]
    what = choose(chance, choose(chance, (COMMENTED, LETTERS, _CONTROL)))
    first = min(2, len(text))
    where = chance.randint(first, max(len(text) - 1, first))
    parts[at] = InputToken(kind, _put(text, where, what, chance), before)


INSIDE_EDITS: tuple[Edit, ...] = (in_string, in_string, in_number, in_word, in_comment)
