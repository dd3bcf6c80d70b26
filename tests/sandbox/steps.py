"""A backtracking matcher that counts: how much work a pattern is on a text, however busy the machine.

It walks the tree that `re` itself parses and tries what `re` tries, in that order, without the shortcuts of
the real engine: it never counts too little.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

_PARSER: Any = import_module("re._parser")
_CLASSES: dict[str, Callable[[str], bool]] = {
    "SPACE": str.isspace,
    "DIGIT": str.isdecimal,
    "WORD": lambda char: char.isalnum() or char == "_",
}
_SINGLE = frozenset({"LITERAL", "NOT_LITERAL", "IN", "ANY"})

Then = Callable[[int], int]
"""What is left of the pattern, tried at a position: the end of the match, or -1."""


def steps(pattern: re.Pattern[str], text: str, *, once: bool = False) -> int:
    """How often a node of the pattern is tried while all matches are found; `once`: one at the start."""
    return _search(pattern, text, once)[0]


def matches(pattern: re.Pattern[str], text: str) -> list[int]:
    """Where the matches end, as `re` should say as well."""
    return _search(pattern, text, once=False)[1]


def _search(pattern: re.Pattern[str], text: str, once: bool) -> tuple[int, list[int]]:
    tree = _PARSER.parse(pattern.pattern)
    matcher, ends, at = _Matcher(text), [], 0
    with _deep():
        while at <= len(text):
            end = matcher.sequence(list(tree), 0, at, tree.state.flags, _end)
            ends += [end] if end >= 0 else []
            at = len(text) + 1 if once else end if end > at else at + 1
    return matcher.steps, ends


def _end(at: int) -> int:
    return at


@contextmanager
def _deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Matcher:
    def __init__(self, text: str) -> None:
        self.text, self.steps = text, 0

    def sequence(self, nodes: list[Any], index: int, at: int, flags: int, then: Then) -> int:
        if index == len(nodes):
            return then(at)
        return self._node(
            nodes[index], at, flags, lambda here: self.sequence(nodes, index + 1, here, flags, then)
        )

    def _node(self, node: Any, at: int, flags: int, then: Then) -> int:
        self.steps += 1
        name, value = str(node[0]), node[1]
        if name in _SINGLE:
            return then(at + 1) if self._is(node, at, flags) else -1
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            return self._repeat(name, value, at, flags, then)
        if name == "SUBPATTERN":
            return self.sequence(list(value[3]), 0, at, flags | value[1], then)
        if name == "BRANCH":
            for way in value[1]:
                if (end := self.sequence(list(way), 0, at, flags, then)) >= 0:
                    return end
            return -1
        if name in ("ASSERT", "ASSERT_NOT"):
            start = at if value[0] > 0 else at - value[1].getwidth()[0]
            found = start >= 0 and self.sequence(list(value[1]), 0, start, flags, _end) >= 0
            return then(at) if found is (name == "ASSERT") else -1
        assert name == "AT", name
        return then(at) if self._stands(str(value), at) else -1

    def _repeat(self, name: str, value: Any, at: int, flags: int, then: Then) -> int:
        least, most, body = value[0], int(value[1]), list(value[2])
        if len(body) == 1 and str(body[0][0]) in _SINGLE:
            return self._run(name, least, most, body[0], at, flags, then)

        def again(here: int, count: int) -> int:
            def more() -> int:
                if count >= most:
                    return -1
                return self.sequence(
                    body, 0, here, flags, lambda end: again(end, count + 1) if end > here else -1
                )

            if count < least:
                return more()
            if name == "MIN_REPEAT":
                return end if (end := then(here)) >= 0 else more()
            return end if (end := more()) >= 0 else then(here)

        return again(at, 0)

    def _run(self, name: str, least: int, most: int, one: Any, at: int, flags: int, then: Then) -> int:
        """A repeat of single characters, by a loop: each character and each way back is a step."""
        if name == "MIN_REPEAT":
            end = at
            while True:
                self.steps += 1
                if end - at >= least and (done := then(end)) >= 0:
                    return done
                if end - at >= most or not self._is(one, end, flags):
                    return -1
                end += 1
        end = at
        while end - at < most and self._is(one, end, flags):
            self.steps += 1
            end += 1
        while end - at >= least:
            self.steps += 1
            if (done := then(end)) >= 0:
                return done
            end -= 1
        return -1

    def _is(self, node: Any, at: int, flags: int) -> bool:
        if not 0 <= at < len(self.text):
            return False
        char = self.text[at]
        chars = {char, char.lower(), char.upper()} if flags & re.IGNORECASE else {char}
        name, value = str(node[0]), node[1]
        if name == "ANY":
            return char != "\n"
        if name == "LITERAL":
            return chr(value) in chars
        if name == "NOT_LITERAL":
            return chr(value) not in chars
        negated = str(value[0][0]) == "NEGATE"
        return any(_in(item, one) for item in value[negated:] for one in chars) is not negated

    def _stands(self, where: str, at: int) -> bool:
        if where == "AT_BOUNDARY":
            before, after = (
                _CLASSES["WORD"](char) for char in (self.text[at - 1 : at], self.text[at : at + 1])
            )
            return bool(before) is not bool(after)
        return at == {"AT_BEGINNING_STRING": 0, "AT_END_STRING": len(self.text)}[where]


def _in(item: Any, char: str) -> bool:
    name, value = str(item[0]), item[1]
    if name == "LITERAL":
        return chr(value) == char
    if name == "RANGE":
        return len(char) == 1 and value[0] <= ord(char) <= value[1]
    kind = str(value).removeprefix("CATEGORY_")
    return bool(_CLASSES[kind.removeprefix("NOT_")](char)) is not kind.startswith("NOT_")
