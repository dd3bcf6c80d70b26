"""What is new in the text of an accepted input, where its execution looks like many before it, and what in a
text shows a defect that is known.

The contexts of a text: four tokens in a row, with names, numbers and strings by what they are and how long;
each number; and how often each sign stands in the whole, by powers of two. They are a language's constructs
at each other's places, without its grammar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sandbox.fuzz.inputs.tokens import COMMENT, NUMBER, STRING, WORD, tokens
from sandbox.fuzz.inputs.words import words

IN_A_ROW = 4
LONGEST = 4096
"""Bytes of an input that are looked at."""
LONGEST_NUMBER = 12
MOST = 1 << 17
"""Contexts that are remembered; after as many nothing is new."""
SURE = 3
"""Inputs that show what is known and have a context that no accepted one has, before it is why."""

TextContext = tuple[str, ...]


class TextNovelty:
    """The contexts of one family's language that accepted inputs had, and those that only others had."""

    def __init__(self, family: str) -> None:
        known = words(family)
        self._family, self._plain = family, known.keywords.union(known.types)
        self._sound: set[TextContext] = set()
        self._accused: dict[TextContext, int] = {}
        self._last: tuple[bytes, frozenset[TextContext]] = (b"", frozenset())

    def add(self, source: bytes) -> int:
        """Remember the contexts of an accepted input; how many were new."""
        fresh = self._contexts(source) - self._sound
        for one in fresh:
            self._accused.pop(one, None)
        if len(self._sound) + len(fresh) > MOST:
            return 0
        self._sound |= fresh
        return len(fresh)

    def accuse(self, source: bytes, times: int = 1) -> None:
        """An input shows what is known: a context in it may be why, unless one is known to be. `times`: how
        many inputs it counts as."""
        if not self.suspect(source) and len(self._accused) < MOST:
            for one in self._contexts(source) - self._sound:
                self._accused[one] = self._accused.get(one, 0) + times

    def suspect(self, source: bytes) -> bool:
        """Whether an input has a context that only such inputs had, and enough of them."""
        return any(self._accused.get(one, 0) >= SURE for one in self._contexts(source))

    def _contexts(self, source: bytes) -> frozenset[TextContext]:
        if self._last[0] != source:
            self._last = source, frozenset(self._read(source[:LONGEST]))
        return self._last[1]

    def _read(self, source: bytes) -> Iterator[TextContext]:
        parts = tokens(source, self._family)
        signs = ["", *(self._sign(kind, text) for kind, text, _ in parts), ""]
        yield from zip(*(signs[at:] for at in range(IN_A_ROW)), strict=False)
        yield from ((text,) for kind, text, _ in parts if kind == NUMBER and len(text) <= LONGEST_NUMBER)
        yield from ((sign, str(count.bit_length())) for sign, count in Counter(signs).items())

    def _sign(self, kind: str, text: str) -> str:
        if kind == WORD and text not in self._plain:
            return WORD
        return f"{kind} {len(text).bit_length()}" if kind in (NUMBER, STRING, COMMENT) else text
