"""The text of a program as tokens, and as tokens and stretches that repeat themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

LEAST = 12
"""Repetitions from which on a stretch is a run."""
LONGEST = 48
"""Tokens of one repetition at most."""
FEW = 200
"""Tokens of a text whose runs are not worth folding."""

_DIGITS = re.compile(rb"\d+")
_TOKEN = re.compile(
    rb"""[ \t\r]+|\n[ \t\r\n]*|//[^\n]*|/\*.*?\*/|;;[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n]){1,60}'
    |0[xX][0-9a-fA-F_]+|\d[\w.]*|[A-Za-z_$\x80-\xff][\w$\x80-\xff]*
    |[-+*/%&|^<>=!]=|&&|\|\||->|=>|::|<<|>>|\.\.|.""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Run:
    """Equal repetitions, or repetitions that differ in numbers only."""

    units: tuple[bytes, ...]

    def __bytes__(self) -> bytes:
        return b"".join(self.units)


Parts = list[bytes | Run]


def split(text: bytes) -> list[bytes]:
    """Tokens, white space among them; together they are the text."""
    return _TOKEN.findall(text)


@lru_cache(maxsize=4)
def _pieces(text: bytes) -> tuple[bytes, ...]:
    tokens = split(text)
    return tuple(tokens if len(tokens) < FEW else map(bytes, stretches(text)))


def pieces(text: bytes) -> list[bytes]:
    """Tokens; in a long text a run is one, for a token less in it is a repetition less, which is tried
    elsewhere."""
    return list(_pieces(text))


def joined(parts: Sequence[bytes | Run]) -> bytes:
    return b"".join(map(bytes, parts))


def stretches(text: bytes) -> Parts:
    """The text as tokens and runs, the longest runs taken first."""
    tokens = split(text)
    alike = [_DIGITS.sub(b"0", one) for one in tokens]
    taken = bytearray(len(tokens))
    starts: dict[int, tuple[int, int]] = {}
    for start, period, count in sorted(_repeats(alike), key=lambda one: (-one[1] * one[2], one[1])):
        end = start + period * count
        if not any(taken[start:end]):
            taken[start:end] = b"\1" * (end - start)
            starts[start] = (period, count)
    parts: Parts = []
    at = 0
    while at < len(tokens):
        if at in starts:
            period, count = starts[at]
            units = (tokens[at + i * period : at + (i + 1) * period] for i in range(count))
            parts.append(Run(tuple(map(b"".join, units))))
            at += period * count
        else:
            parts.append(tokens[at])
            at += 1
    return parts


def _repeats(tokens: Sequence[bytes]) -> list[tuple[int, int, int]]:
    """(start, tokens of one repetition, repetitions) of every stretch that repeats itself often enough."""
    found = []
    for period in range(1, min(LONGEST, len(tokens) // LEAST) + 1):
        length = 0
        for at in range(len(tokens) - period + 1):
            same = at + period < len(tokens) and tokens[at] == tokens[at + period]
            if same:
                length += 1
                continue
            if (count := length // period + 1) >= LEAST:
                found.append((at - length, period, count))
            length = 0
    return found
