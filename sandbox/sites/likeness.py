"""Texts that fit a pattern, written without running it: a pattern is a stranger's program. Pure.

The common part of regular expressions is read: literals, classes, groups (the first alternative), bounded and
open repetition, and a look-ahead that asks for one character of a class.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from random import Random

MAX_PATTERN = 200
MAX_TEXT = 200
DEPTH = 6
OPEN = 10
"""Repetitions where a pattern leaves their number open, if it permits as many."""
_CLASSES = {
    "d": string.digits,
    "w": string.ascii_lowercase + string.digits,
    "s": " ",
    "D": string.ascii_lowercase,
    "S": string.ascii_lowercase + string.digits,
    "W": "-",
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r"}
_POSIX = {"L": string.ascii_letters, "N": string.digits}
_ANY = string.ascii_lowercase + string.digits
_PRINTABLE = "".join(chr(code) for code in range(32, 127))


@dataclass(slots=True)
class _Reader:
    """Reads a pattern once, from `at`, and writes as it goes; `wanted` are the classes of look-aheads."""

    pattern: str
    chance: Random
    at: int = 0
    wanted: list[str] = field(default_factory=list)

    def alternatives(self, depth: int) -> list[str]:
        """Up to the end of a group: the first alternative, as what each place may hold."""
        if depth == 0:
            raise ValueError("nested too deep")
        first = self.sequence(depth)
        while self._next("|"):
            self.sequence(depth)
        return first

    def sequence(self, depth: int) -> list[str]:
        made: list[str] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            unit = self._unit(depth)
            low, high = self._times()
            times = max(low, min(high, OPEN))
            made += unit * (times if len(unit) == 1 or low > 1 else max(low, min(times, 1)))
            if len(made) > MAX_TEXT:
                raise ValueError("too long")
        return made

    def _unit(self, depth: int) -> list[str]:
        one = self.pattern[self.at]
        self.at += 1
        if one in "^$":
            return []
        if one == ".":
            return [_ANY]
        if one == "[":
            return [self._members()]
        if one == "\\":
            return self._escaped()
        if one != "(":
            return [one]
        ahead = self._next("?=")
        if not ahead and self._next("?") and not self._next(":"):
            raise ValueError("a group of another kind")
        inner = self.alternatives(depth - 1)
        if not self._next(")"):
            raise ValueError("an open group")
        if not ahead:
            return inner
        self.wanted += [one for one in inner[-1:] if one != _ANY]  # `.*X`: one X somewhere
        return []

    def _escaped(self) -> list[str]:
        one = self._take()
        if one in "bBAZz":
            return []
        if one.isdigit() or one in "xukp":
            raise ValueError("a reference or a code")
        return [_CLASSES.get(one) or _CONTROLS.get(one, one)]

    def _members(self) -> str:
        negated, found = self._next("^"), ""
        while (one := self._take()) != "]" or not found:
            if one == "\\":
                one = self._take()
                if one == "p" and self._next("{"):
                    name = self.pattern[self.at : self.at + 1]
                    self.at = self.pattern.index("}", self.at) + 1
                    found += _POSIX.get(name, _ANY)
                    continue
                found += _CLASSES.get(one) or _CONTROLS.get(one, one)
            elif self.pattern[self.at : self.at + 1] == "-" and self.pattern[
                self.at + 1 : self.at + 2
            ] not in ("]", ""):
                self.at += 1
                last = self._take()
                found += "".join(map(chr, range(ord(one), min(ord(last), ord(one) + 200) + 1)))
            else:
                found += one
        kept = [one for one in (_ANY + _PRINTABLE if negated else found) if negated != (one in found)]
        plain = [one for one in kept if one in _ANY] or kept  # the plainest of what is permitted
        return "".join(dict.fromkeys(plain))

    def _times(self) -> tuple[int, int]:
        low, high = 1, 1
        if self._next("*"):
            low, high = 0, MAX_TEXT
        elif self._next("+"):
            high = MAX_TEXT
        elif self._next("?"):
            low = 0
        elif self.pattern[self.at : self.at + 1] == "{" and (end := self.pattern.find("}", self.at)) > 0:
            first, comma, last = self.pattern[self.at + 1 : end].partition(",")
            if first.isdecimal() or (comma and not first):
                low = int(first or 0)
                high = int(last) if last.isdecimal() else MAX_TEXT if comma else low
                self.at = end + 1
        self._next("?")  # lazy or greedy, the text is the same
        if max(low, 1) > MAX_TEXT:
            raise ValueError("too long")
        return low, high

    def _take(self) -> str:
        if self.at >= len(self.pattern):
            raise ValueError("an open class")
        self.at += 1
        return self.pattern[self.at - 1]

    def _next(self, words: str) -> bool:
        found = self.pattern.startswith(words, self.at)
        self.at += len(words) if found else 0
        return found


def like(pattern: str, seed: str) -> str:
    """A text that fits, the same for the same seed; "" for a pattern that is not read."""
    chance = Random(seed)
    try:
        if len(pattern) > MAX_PATTERN:
            return ""
        reader = _Reader(pattern, chance)
        places = reader.alternatives(DEPTH)
        if reader.at < len(pattern) or not all(places):
            return ""
    except (ValueError, RecursionError):
        return ""
    made = [chance.choice(one) for one in places]
    free = [at for at, one in enumerate(places) if len(one) > 1]
    for wanted, at in zip(dict.fromkeys(reader.wanted), free, strict=False):
        made[at] = chance.choice(wanted)
    return "".join(made)
