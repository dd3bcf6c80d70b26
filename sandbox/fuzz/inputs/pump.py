"""The pump: a part of a program many times, in a row or inside itself, small counts before large ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random

from sandbox.fuzz.inputs.edits import expression
from sandbox.fuzz.inputs.material import MOST_BYTES, Material, choose, depth_at, place
from sandbox.fuzz.inputs.productions import generate, of_family
from sandbox.fuzz.inputs.structure import a_group
from sandbox.fuzz.inputs.tokens import (
    CLOSE,
    COMMENT,
    INDENTED,
    NEWLINE,
    NUMBER,
    OPEN,
    OPERATOR,
    SEPARATOR,
    STRING,
    TOP,
    WORD,
    InputToken,
    Parsed,
    Span,
    parsed,
    text,
)
from sandbox.fuzz.port import InputSource

MOST_TIMES = 20_000
SMALL, SMALL_TIMES = 0.7, 300
"""The part of the counts that are small, since a large input takes the time of many, and what small is."""
SMALL_PROGRAM = 120
"""Characters after which a program that is made to be pumped ends as soon as it can."""

Pumped = tuple[int, int, int, int]
"""Indices of a part and of what is inside it: [a:b] and [c:d] are repeated around [b:c]; c == d: in a row."""


def times(chance: Random) -> int:
    """From 2 to `MOST_TIMES`; most are below `SMALL_TIMES`. Every third is a power of two, or one more."""
    small = chance.random() < SMALL
    digits = math.log2(SMALL_TIMES if small else MOST_TIMES)
    count = round(2 ** (1 + chance.random() * (digits - 1)))
    if chance.random() < 1 / 3:
        count = (1 << count.bit_length() - 1) + choose(chance, (0, 1))
    return min(count, MOST_TIMES)


def _run(program: Parsed, chance: Random) -> Pumped | None:
    start = place(chance, program.tokens)
    end = min(len(program.tokens), start + 1 + int(chance.random() ** 2 * 8))
    return start, end, end, end


def _group(program: Parsed, chance: Random) -> Pumped | None:
    """A group in a row, with the word in front of it half of the time."""
    if not program.groups:
        return None
    start, end = choose(chance, program.groups)
    if start and chance.random() < 0.5:
        start -= 1
    return start, end, end, end


def _statement(program: Parsed, chance: Random) -> Pumped | None:
    if not program.statements:
        return None
    start, end, _ = choose(chance, program.statements)
    return start, end, end, end


def _element(program: Parsed, chance: Random) -> Pumped | None:
    """One element of a list with its separator: an argument, a field, an arm."""
    marks = [at for at, one in enumerate(program.tokens) if one.kind == SEPARATOR]
    if not marks:
        return None
    end = choose(chance, marks)
    start = element_start(program.tokens, end)
    return (start, end + 1, end + 1, end + 1) if start < end else (end, end + 1, end + 1, end + 1)


def element_start(parts: Sequence[InputToken], end: int) -> int:
    """Where the element of a list begins that ends here."""
    deep = 0
    for at in range(end - 1, -1, -1):
        kind = parts[at].kind
        deep += (kind == CLOSE) - (kind == OPEN)
        if deep < 0 or (kind == SEPARATOR and not deep):
            return at + 1
    return 0


def _operand(program: Parsed, chance: Random) -> Pumped | None:
    """An operator with what follows it: a sum of many terms, a pattern of many alternatives."""
    parts = program.tokens
    marks = [
        at
        for at in range(1, len(parts) - 1)
        if parts[at].kind == OPERATOR
        and parts[at - 1].kind in (WORD, NUMBER, CLOSE)
        and parts[at + 1].kind in (WORD, NUMBER)
    ]
    if not marks:
        return None
    at = choose(chance, marks)
    return at, at + 2, at + 2, at + 2


def _nested(program: Parsed, chance: Random) -> Pumped | None:
    """What stands between a group and one in it with the same bracket, around the inner one."""
    if not program.groups:
        return None
    first, last = choose(chance, program.groups)
    inner = [one for one in program.groups if first < one[0] and one[1] < last]
    span = a_group(program.tokens, inner, program.tokens[first].text, chance)
    return None if span is None else (first, span[0], span[1], last)


def _whole(program: Parsed, chance: Random) -> Pumped | None:
    """A statement around one in it."""
    if not program.statements:
        return None
    first, last, _ = choose(chance, program.statements)
    inner = [one for one in program.statements if first < one.start and one.end < last]
    if not inner:
        return None
    span = choose(chance, inner)
    return first, span.start, span.end, last


PUMPS: tuple[Callable[[Parsed, Random], Pumped | None], ...] = (
    *(_run, _group, _statement, _statement, _element, _element, _operand, _nested, _nested, _whole),
)


def repeated(parts: Sequence[InputToken], where: Pumped, count: int, family: str) -> bytes:
    """The program with its part `count` times, or as often as `MOST_BYTES` allows."""
    a, b, c, d = where
    head, left, middle, right, tail = (
        text(parts[i:j]) for i, j in ((0, a), (a, b), (b, c), (c, d), (d, None))
    )
    if family in INDENTED and c == d and a and parts[a - 1].kind == "newline":
        left += parts[a - 1].text.encode()
    elif family not in INDENTED or c == d:
        left, right = left + b" ", right + b" " if right else right
    room = MOST_BYTES - len(head) - len(middle) - len(tail)
    count = max(1, min(count, room // max(1, len(left) + len(right))))
    return head + left * count + middle + right * count + tail


def pump(family: str) -> InputSource:
    """Of programs of the corpus and, where the family has a table, of small ones, mostly accepted."""
    table = of_family(family)

    def pumped(corpus: Sequence[bytes], chance: Random) -> bytes | None:
        if not corpus:
            return None
        material = Material(corpus, family)
        if table is not None and chance.random() < 0.5:
            small = generate(table, chance, int(chance.random() * 4), 7, SMALL_PROGRAM)
            program = parsed(small.encode(), family)
        else:
            program = material.program(chance)
        if not program.tokens:
            return None
        which = chance.random()
        if which < 0.2:
            return _prefixed(program, material, chance)
        if which < 0.5:
            return _numbered(program, material, chance)
        if which < 0.6:
            return _longer(program, material, chance)
        where = choose(chance, PUMPS)(program, chance)
        made = repeated(program.tokens, where, times(chance), family) if where else None
        return made if made is not None and len(made) <= MOST_BYTES else None

    return pumped


def _prefixed(program: Parsed, material: Material, chance: Random) -> bytes | None:
    """An expression or a statement deep inside of what may stand around it, or behind a row of prefixes."""
    parts, words = program.tokens, material.words
    if words.wraps and program.statements and chance.random() < 0.4:
        one = choose(chance, program.statements)
        span, options = (one.start, one.end), words.wraps
    else:
        found = expression(parts, material, chance)
        if found is None:
            return None
        span, options = found, (*words.around, *(unary + "@" for unary in words.unary))
    head, middle, tail = text(parts[: span[0]]), text(parts[span[0] : span[1]]), text(parts[span[1] :])
    left, _, right = choose(chance, options).partition("@")
    if "@" in right:  # two places: repeated in a row instead
        left, right = left + middle.decode() + right.partition("@")[0], right.partition("@")[2]
    room = MOST_BYTES - len(head) - len(middle) - len(tail)
    count = max(1, min(times(chance), room // max(1, len((left + right).encode()) + 1)))
    made = head + b" " + left.encode() * count + middle + right.encode() * count + tail
    return made if len(made) <= MOST_BYTES else None


def _numbered(program: Parsed, material: Material, chance: Random) -> bytes | None:
    """A definition, a parameter or a field many times, each with a name of its own."""
    parts, known = program.tokens, material.words
    spans: list[Span] = [(one.start, one.end) for one in program.statements if one.kind == TOP]
    if chance.random() < 0.5 or not spans:
        ends = [at for at, one in enumerate(parts) if one.text in (",", ";", ")", "}")]
        spans = [(start, end) for end in ends if (start := element_start(parts, end)) < end]
    if not spans:
        return None
    start, end = choose(chance, spans)
    named = [
        at for at in range(start, end) if parts[at].kind == WORD and parts[at].text not in known.keywords
    ]
    if not named or parts[named[0]].text in known.types:
        return None
    at = named[0]
    sign = parts[end].text if end < len(parts) and parts[end].text in (",", ";") else ","
    if material.family in INDENTED and (not start or parts[start - 1].kind == NEWLINE):
        sign = "\n" + " " * depth_at(parts, start)
    elif parts[end - 1].text in ("}", ";") or parts[start].kind != WORD:
        sign = " "
    left, name, right = text(parts[start:at]), parts[at], text(parts[at + 1 : end])
    left += name.before.encode() + name.text.encode()
    right += sign.encode()
    size = len(left) + len(right) + 6
    room = (MOST_BYTES - len(text(parts)) - 2) // size
    count = max(1, min(times(chance), room))
    made = b"".join([left + str(number).encode() + right for number in range(count)])
    return text(parts[:start]) + made + text(parts[start:])


def _longer(program: Parsed, _material: Material, chance: Random) -> bytes | None:
    """A name, a number, a string or a comment that is long."""
    parts = list(program.tokens)
    marks = [at for at, one in enumerate(parts) if one.kind in (WORD, NUMBER, STRING, COMMENT) and one.text]
    if not marks:
        return None
    kind, old, _ = parts[choose(chance, marks)]
    middle = len(old) // 2 if kind != NUMBER else 0
    room = (MOST_BYTES - len(text(parts))) // max(1, sum(one.text == old for one in parts)) - 1
    sign = "0" if kind == NUMBER else "a"
    new = old[:middle] + sign * max(1, min(times(chance), room)) + old[middle:]
    if kind == WORD:
        new = old + sign * max(1, min(times(chance), room))
    return text([InputToken(kind, new, one.before) if one.text == old else one for one in parts])
