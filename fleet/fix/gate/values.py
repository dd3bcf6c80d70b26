"""Other values beside one value of an input: other spellings of it, and others of its type. Pure.

A fix that compares with the one value that its repro has is found by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

MOST = 12
"""Other values of one input."""
_WHOLE = re.compile(r"\s*([+-]?)(\d{1,30})\s*\Z", re.ASCII)
_DECIMAL = re.compile(r"\s*[+-]?(\d{0,30}\.\d{1,30}|\d{1,30}\.)(e[+-]?\d+)?\s*\Z", re.ASCII | re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{3,}")


def others(value: Any, chance: Random) -> list[Any]:
    """Values unlike this one and one another, spellings first; of a JSON value, others of its own type."""
    if isinstance(value, bool) or value is None:
        found: Iterator[Any] = iter([not value, 0, 1, "", "null"])
    elif isinstance(value, int):
        found = iter([value * 1.0, str(value), -value, value * 10, value + 1, value - 1])
    elif isinstance(value, float):
        found = iter([-value, str(value), value * 10, value / 10])
    elif isinstance(value, str):
        found = _texts(value, chance)
    else:
        found = iter([[value], str(value)])
    unlike: dict[str, Any] = {}
    for one in found:
        unlike.setdefault(repr(one), one)
    unlike.pop(repr(value), None)
    return list(islice(unlike.values(), MOST))


def _texts(text: str, chance: Random) -> Iterator[str]:
    if whole := _WHOLE.match(text):
        yield from _of_number(whole[1], whole[2])
    elif _DECIMAL.match(text):
        yield from (f"{text}0", f"0{text}", f"+{text}", f"-{text}", f" {text}", f"{text} ", f"{text}e0")
    else:
        yield from _of_text(text, chance)


def _of_number(sign: str, digits: str) -> Iterator[str]:
    number = int(digits)
    minus = "-" if sign == "-" else ""
    yield from (f"{minus}0{digits}", f"{minus}00{digits}")
    yield from (f"+{digits}", f"-{digits}") if number == 0 or not minus else (digits,)
    yield from (f"{sign}{digits}.0", f"{sign}{digits}e0", f" {sign}{digits}", f"{sign}{digits} ")
    yield from (f"{minus}{number:#x}", f"{minus}{number:#b}")
    yield "".join(chr(0xFF10 + int(digit)) for digit in digits)  # digits of another script
    yield from (f"{minus}{number + 1}", f"{minus}{digits}0")


def _of_text(text: str, chance: Random) -> Iterator[str]:
    yield from (text.upper(), text.lower(), text.swapcase(), f" {text}", f"{text} ", f"\t{text}", text * 2)
    if not text:
        yield from (" ", "\t", "%00")
    elif _WORD.search(text):  # its signs stay, its words do not
        yield from (_WORD.sub(lambda _: _word(chance), text) for _ in range(3))
    else:
        yield from (f"{text}{_word(chance)}", f"{_word(chance)}{text}")


def _word(chance: Random) -> str:
    return "".join(chance.choice("abcdefghkmnprstuvwxyz") for _ in range(chance.randint(4, 8)))
