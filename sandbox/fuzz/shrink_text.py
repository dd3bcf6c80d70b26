"""How the text of a program shrinks: repeats, lines, groups, tokens, names, numbers, white space."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sandbox.fuzz.shrink_state import Shrinking
from sandbox.fuzz.shrink_tokens import pieces

PARTNERS = {b"(": b")", b"[": b"]", b"{": b"}"}
_CLOSING = frozenset(PARTNERS.values())
SMALL = 160
"""Tokens of an input that is simplified span by span."""
TINY = 96
"""Bytes of an input that is cut character by character."""

_NAME = re.compile(rb"[A-Za-z_$][\w$.]*\Z")
_NUMBER = re.compile(rb"\d[\w.]*\Z")
_BLANK = re.compile(rb"\s+\Z")


def lines(state: Shrinking) -> None:
    """Remove lines."""
    state.cut(state.best.splitlines(keepends=True))


def groups(state: Shrinking) -> None:
    """Remove groups, with what stands before them; put a child, or a literal, in a group's place."""
    at = 0
    while True:
        tokens = pieces(state.best)
        found = sorted(_groups(tokens), key=lambda one: one[0] - one[1])
        if at >= len(found):
            return
        if not any(state.keeps(b"".join(one)) for one in _without_group(tokens, found, *found[at])):
            at += 1


def _without_group(
    tokens: list[bytes], found: Sequence[tuple[int, int]], start: int, end: int
) -> Iterator[list[bytes]]:
    before, inside, after = tokens[:start], tokens[start + 1 : end], tokens[end + 1 :]
    for head in _heads(tokens, start):
        yield tokens[:head] + after
    yield before + after
    yield [*before, tokens[start], tokens[end], *after]
    yield before + inside + after
    for head in (*_heads(tokens, start), start):
        yield [*tokens[:head], b"0", *after]
    for inner, last in found:
        if start < inner and last < end:
            yield before + tokens[inner : last + 1] + after
            for head in _heads(tokens[: inner + 1], inner):
                if head > start:
                    yield before + tokens[head : last + 1] + after


def _heads(tokens: Sequence[bytes], start: int) -> list[int]:
    """Where what belongs to a group may begin: at each word before it, back to a separator."""
    found = []
    for at in range(start - 1, max(start - 16, -1), -1):
        if tokens[at] in (b";", b"{", b"}", b"("):
            break
        if not _BLANK.match(tokens[at]):
            found.append(at)
    return found[::-1]


def _groups(tokens: Sequence[bytes]) -> list[tuple[int, int]]:
    found, waiting = [], []
    for at, token in enumerate(tokens):
        if token in PARTNERS:
            waiting.append(at)
        elif token in _CLOSING and waiting:
            if PARTNERS[tokens[waiting[-1]]] == token:
                found.append((waiting.pop(), at))
            else:
                waiting.clear()
    return found


def singly(state: Shrinking) -> None:
    """Remove tokens, each with the white space after it."""
    state.cut(_glued(pieces(state.best)))


def _glued(tokens: Sequence[bytes]) -> list[bytes]:
    found: list[bytes] = []
    for token in tokens:
        if found and _BLANK.match(token):
            found[-1] += token
        else:
            found.append(token)
    return found


def words(state: Shrinking) -> None:
    """Remove a token everywhere; make names one, or short; make numbers small and texts empty."""
    for token in sorted(set(pieces(state.best)), key=lambda one: (-len(one), one)):
        parts = pieces(state.best)
        if token not in parts or _BLANK.match(token):
            continue
        names = sorted({one for one in parts if _NAME.match(one)}, key=lambda one: (len(one), one))
        for shorter in (b"", *_simpler(token, names)):
            if state.keeps(b"".join(shorter if one == token else one for one in parts)):
                break


def _simpler(token: bytes, names: Sequence[bytes]) -> list[bytes]:
    if _NUMBER.match(token):
        value = int(token) if token.isdigit() and len(token) < 20 else 0
        steps = [value >> at for at in range(1, value.bit_length())] if value > 2 else []
        return [b"0", b"1", *(b"%d" % (value - step) for step in steps)]
    if token[:1] in b"\"'":
        return [token[:1] * 2, token[:2] + token[:1]]
    if not _NAME.match(token):
        return []
    free = [bytes((letter,)) for letter in b"abcdefgh" if bytes((letter,)) not in names]
    return [*free[:1], *(one for one in names[:6] if one != token)]


def spans(state: Shrinking) -> None:
    """Replace a few tokens by one; only in what is small already."""
    at = 0
    while True:
        parts = _glued(pieces(state.best))
        if at >= len(parts) or len(parts) > SMALL:
            return
        short = sorted(one for one in set(parts) if _NAME.match(one) and len(one) < 3)[:1]
        whole = [size for size in (3, 2, 1) if _whole(parts[at : at + size])]
        if not any(
            state.keeps(b"".join([*parts[:at], one, *parts[at + size :]]))
            for size in whole
            for one in (b"0", *short)
        ):
            at += 1


def _whole(parts: Sequence[bytes]) -> bool:
    """Whether these tokens may be an expression: they open no group that they do not close."""
    depth = 0
    for one in map(bytes.strip, parts):
        depth += (one in PARTNERS) - (one in _CLOSING)
        if depth < 0 or one in (b";", b","):
            return False
    return not depth and any(_NAME.match(one) or _NUMBER.match(one) for one in map(bytes.strip, parts))


def blanks(state: Shrinking) -> None:
    """Remove white space, or make it one character."""
    parts = pieces(state.best)
    state.keeps(b"".join(one[:1] if _BLANK.match(one) else one for one in parts))
    at = 0
    while at < len(parts := pieces(state.best)):
        if _BLANK.match(parts[at]):
            for less in (b"", b" ", b"\n"):
                if state.keeps(b"".join([*parts[:at], less, *parts[at + 1 :]])):
                    break
        at += 1


def characters(state: Shrinking) -> None:
    """Remove up to three characters anywhere."""
    for size in (1, 2, 3):
        at = 0
        while at < len(text := state.best.decode("utf-8", "replace")) and len(text) <= TINY:
            if not state.keeps((text[:at] + text[at + size :]).encode()):
                at += 1
