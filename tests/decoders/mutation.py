"""Changes to bytes that a decoder reads: cut, spliced, pumped, with words of its format in odd places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

LARGEST = 1 << 17
_TOKEN = re.compile(rb"[A-Za-z0-9_.+-]+|\s+|[^A-Za-z0-9_\s]")
_ODD = [line.encode().decode("unicode_escape").encode("latin-1")
        for line in Path(__file__).with_name("odd.txt").read_text().splitlines() if line]  # fmt: skip


def inputs(seeds: Sequence[bytes], chance: Random) -> Iterator[bytes]:
    """The seeds, then changes of them without end, and of what those became."""
    yield from seeds
    pool = list(seeds)
    while True:
        made = chance.choice(pool)
        for _ in range(chance.choice((1, 1, 2, 3, 5))):
            made = _changed(made, pool, chance)[:LARGEST]
        if len(pool) < 400 and len(made) < 4_096:
            pool.append(made)
        yield made


def _changed(data: bytes, pool: Sequence[bytes], chance: Random) -> bytes:
    spans = [found.span() for found in _TOKEN.finditer(data)] or [(0, 0)]
    start, end = chance.choice(spans)
    other = chance.choice(pool)
    match chance.randrange(8):
        case 0:  # one byte
            at = chance.randrange(len(data) + 1)
            return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        case 1:  # a token away
            return data[:start] + data[end:]
        case 2:  # a token replaced
            return data[:start] + chance.choice(_ODD) + data[end:]
        case 3:  # one more token
            return data[:start] + chance.choice(_ODD) + data[start:]
        case 4:  # the pump: a run of tokens, many times
            last = chance.choice([span for span in spans if span[0] >= start][:4])[1]
            return data[:start] + data[start:last] * chance.choice((2, 3, 17, 300, 5_300)) + data[last:]
        case 5:  # cut
            return data[: chance.randrange(len(data) + 1)]
        case 6:  # half of this, half of that
            return data[:start] + other[chance.randrange(len(other) + 1) :]
        case _:  # two tokens exchanged
            low, high = sorted((chance.choice(spans), (start, end)))
            if low[1] > high[0]:
                return data
            return (
                data[: low[0]]
                + data[slice(*high)]
                + data[low[1] : high[0]]
                + data[slice(*low)]
                + data[high[1] :]
            )
