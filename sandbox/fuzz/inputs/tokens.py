"""One tokenizer for every language of text: cuts a source into tokens that join to the same text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

WORD, NUMBER, STRING, COMMENT, NEWLINE = "word", "number", "string", "comment", "newline"
OPEN, CLOSE, OPERATOR, SEPARATOR = "open", "close", "operator", "separator"
PARTNERS = {"(": ")", "[": "]", "{": "}"}

_C_COMMENT = r"//[^\n]*\n?|/\*[\s\S]*?\*/"
_COMMENTS = {
    "vyper": r"\#[^\n]*",
    "python": r"\#[^\n]*",
    "wat": r";;[^\n]*\n?|\(;[\s\S]*?;\)",
    "json": r"(?!)",
}
INDENTED = frozenset({"vyper", "python"})
"""Families in which lines and their indentation are part of the language."""
_WORD = r"[^\W\d]\w*"
_WORDS = {"wat": r"[$A-Za-z_][^\s()\";,\[\]{}]*"}

_SMALL = 2048
_REMEMBERED = 512
"""At most this many sources of at most `_SMALL` bytes are remembered: about 50 MB at worst."""
_MOST_LARGE = 512 << 10
"""Bytes of the larger sources that are remembered, the newest ones: about 25 MB at worst."""

Span = tuple[int, int]


class StatementSpan(NamedTuple):
    """A whole statement. `kind` says where it may stand: at the top, inside, or as a block's value; of a list
    it is the first word when that is structure, else `inside`."""

    start: int
    end: int
    kind: str


TOP, INSIDE, VALUE = "top", "inside", "value"


class InputToken(NamedTuple):
    """`before` is the white space in front of it. A line's comment holds its line break, and so does, in an
    indented language, the NEWLINE token, with the next line's indentation."""

    kind: str
    text: str
    before: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """A source cut up. A span of tokens is its start and its end, which is excluded: `groups` are balanced,
    brackets included, innermost first; `statements` are whole, with their block and their `;`."""

    tokens: tuple[InputToken, ...]
    groups: tuple[Span, ...]
    statements: tuple[StatementSpan, ...]


@lru_cache(maxsize=16)
def _pattern(family: str) -> re.Pattern[str]:
    newline = r"(?P<newline>(?:[ \t\r]*\n)+[ \t]*)" if family in INDENTED else r"(?P<newline>(?!))"
    return re.compile(
        rf"""(?P<comment>{_COMMENTS.get(family, _C_COMMENT)})
        |{newline}
        |(?P<string>[bxuf]?(?:\"(?:[^"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`))
        |(?P<number>0[xXbBoO][0-9a-fA-F_]+\w*|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?\w*)
        |(?P<word>{_WORDS.get(family, _WORD)})
        |(?P<open>[(\[{{])
        |(?P<close>[)\]}}])
        |(?P<separator>[,;])
        |(?P<operator>>>>=|<<=|>>=|\*\*=|===|!==|\.\.=|\.\.\.|>>>|->|=>|::|\+\+|--|&&|\|\||==|!=|<=|>=
            |[-+*/%&|^]=|<<|>>|\*\*|\.\.|.)""",
        re.VERBOSE | re.DOTALL,
    )


def parsed(source: bytes, family: str) -> Parsed:
    """The parts of a source; bytes that are not UTF-8 become replacement characters."""
    if len(source) <= _SMALL:
        return _remembered(source, family)
    found = _large.pop((source, family), None) or _parsed(source, family)
    _large[source, family] = found
    while sum(len(one) for one, _ in _large) > max(_MOST_LARGE, len(source)):
        del _large[next(iter(_large))]
    return found


def _parsed(source: bytes, family: str) -> Parsed:
    found = tokens(source, family)
    return Parsed(found, tuple(groups(found)), tuple(statements(found, family)))


_remembered = lru_cache(maxsize=_REMEMBERED)(_parsed)
_large: dict[tuple[bytes, str], Parsed] = {}


def tokens(source: bytes, family: str) -> tuple[InputToken, ...]:
    """The tokens of a source; bytes that are not UTF-8 become replacement characters."""
    space = re.compile(r"[^\S\n]+" if family in INDENTED else r"\s+")
    one, whole, at = _pattern(family), source.decode("utf-8", "replace"), 0
    found: list[InputToken] = []
    while at < len(whole):
        before = ""
        newline = one.match(whole, at) if family in INDENTED else None
        if (newline is None or newline.lastgroup != NEWLINE) and (blank := space.match(whole, at)):
            before, at = blank.group(), blank.end()
        match = one.match(whole, at)
        if match is None:
            found.append(InputToken(COMMENT, "", before))
            break
        found.append(InputToken(str(match.lastgroup), match.group(), before))
        at = match.end()
    return tuple(found)


def text(parts: Iterable[InputToken]) -> bytes:
    return "".join([before + body for _, body, before in parts]).encode("utf-8", "replace")


def groups(parts: Sequence[InputToken]) -> list[Span]:
    """Where each balanced group starts and ends , innermost first."""
    found: list[Span] = []
    waiting: list[int] = []
    for at, (kind, body, _) in enumerate(parts):
        if kind == OPEN:
            waiting.append(at)
        elif kind == CLOSE:
            if waiting and PARTNERS[parts[waiting[-1]].text] == body:
                found.append((waiting.pop(), at + 1))
            else:
                waiting.clear()
    return found


def statements(parts: Sequence[InputToken], family: str) -> list[StatementSpan]:
    """The statements of every depth, inner ones first. In a language of nested lists each list is one."""
    if family in INDENTED:
        return _lines(parts)
    if family in ("wat", "json"):
        return [StatementSpan(start, end, _word(parts, start + 1)) for start, end in groups(parts)]
    found: list[StatementSpan] = []
    starts = [0]
    blocks = ["{"]
    for at, (kind, body, _) in enumerate(parts):
        if kind == OPEN:
            blocks.append(body)
            starts.append(at + 1)
        elif kind == CLOSE and len(blocks) > 1:
            if blocks.pop() == "{" and starts[-1] < at:
                found.append(StatementSpan(starts[-1], at, VALUE))
            starts.pop()
            if body == "}" and blocks[-1] == "{" and not _goes_on(parts, at + 1):
                found.append(StatementSpan(starts[-1], at + 1, INSIDE if len(blocks) > 1 else TOP))
                starts[-1] = at + 1
        elif body == ";" and blocks[-1] == "{":
            found.append(StatementSpan(starts[-1], at + 1, INSIDE if len(blocks) > 1 else TOP))
            starts[-1] = at + 1
    return found


def _goes_on(parts: Sequence[InputToken], at: int) -> bool:
    """Whether a statement goes on after its block."""
    return at < len(parts) and (
        parts[at].text in ("else", "catch", "finally", "while", ";", ",", "as", ")", "}")
        or parts[at].kind == OPERATOR
    )


def indentation(token: InputToken) -> int:
    """Of the line that a NEWLINE token begins."""
    return len(token.text) - token.text.rfind("\n") - 1


def _word(parts: Sequence[InputToken], at: int) -> str:
    """The first word of a list when it is structure; instructions may stand for each other."""
    word = parts[at].text if at < len(parts) else ""
    return INSIDE if "." in word or word in ("block", "if", "loop", "call", "drop", "nop", "return") else word


def _lines(parts: Sequence[InputToken]) -> list[StatementSpan]:
    """Each line with the deeper lines after it, without the line break before or after them."""
    found: list[StatementSpan] = []
    waiting: list[tuple[int, int]] = [(0, 0)]
    depth = 0
    for at, token in enumerate(parts):
        if token.kind in (OPEN, CLOSE):
            depth = max(0, depth + (1 if token.kind == OPEN else -1))
        elif token.kind == NEWLINE and not depth:
            deep = indentation(token)
            while waiting and waiting[-1][0] >= deep:
                found.append(_line(*waiting.pop(), at))
            waiting.append((deep, at + 1))
    found += [_line(*one, len(parts)) for one in reversed(waiting)]
    return [one for one in found if one.start < one.end]


def _line(deep: int, start: int, end: int) -> StatementSpan:
    return StatementSpan(start, end, INSIDE if deep else TOP)
