"""Cut an input to a local minimum: what is left shows the same defect, and no smaller neighbour does."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sandbox.fuzz.inputs.wasm_module import MAGIC, WasmSection, parse
from sandbox.fuzz.port import Enough, Shrink

SMALL_MODULE = 512
"""Bytes of an input that is simplified byte by byte."""


def sections(state: Shrinking) -> None:
    """Remove sections of a WebAssembly module whole, and contents of a section with its length put right."""
    if (module := parse(state.best)) is None:
        return
    state.cut([*(one.raw for one in module.sections), module.rest], lambda left: MAGIC + b"".join(left))
    for at in range(len(module.sections) - 1, -1, -1):
        module = parse(state.best)
        if module is not None and at < len(module.sections):
            parts = [*(one.raw for one in module.sections), module.rest]
            _shorten(state, module.sections[at], b"".join(parts[:at]), b"".join(parts[at + 1 :]))


def _shorten(state: Shrinking, one: WasmSection, before: bytes, after: bytes) -> None:
    """Remove contents of a section with its length put right."""
    body = [one.body[at : at + 1] for at in range(len(one.body))]
    state.cut(body, lambda left: MAGIC + before + one.of(b"".join(left)).raw + after)


def chunks(state: Shrinking) -> None:
    """Remove bytes."""
    state.cut([state.best[at : at + 1] for at in range(len(state.best))])


def zeros(state: Shrinking) -> None:
    """Make bytes zero, then as small as they may be."""
    size = min(len(state.best), SMALL_MODULE)
    while size:
        for at in range(0, len(state.best), size):
            end = min(at + size, len(state.best))
            state.keeps(state.best[:at] + bytes(end - at) + state.best[end:])
        size = size // 2 if len(state.best) <= SMALL_MODULE else 0
    if len(state.best) <= SMALL_MODULE:
        for at in range(len(state.best)):
            for less in (1, state.best[at] // 2, state.best[at] - 1):
                if 0 < less < state.best[at]:
                    state.keeps(state.best[:at] + bytes((less,)) + state.best[at + 1 :])


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


Keeps = Callable[[bytes], bool]


class Shrinking:
    """The smallest input so far. Order is by length, then by bytes, so every step ends somewhere."""

    def __init__(self, source: bytes, still: Keeps) -> None:
        self.best = source
        self._still = still
        self._failed: set[int] = set()

    def keeps(self, candidate: bytes) -> bool:
        """Take a smaller candidate that still shows the defect."""
        if (len(candidate), candidate) >= (len(self.best), self.best) or hash(candidate) in self._failed:
            return False
        if self._still(candidate):
            self.best = candidate
            return True
        self._failed.add(hash(candidate))
        return False

    def cut(self, parts: Sequence[bytes], render: Callable[[Sequence[bytes]], bytes] = b"".join) -> None:
        """Remove parts in ever smaller chunks, from the end: what comes later uses what came before."""
        left, size = list(parts), max(len(parts) // 2, 1)
        while size:
            end = len(left)
            while end > 0:
                start = max(end - size, 0)
                fewer = left[:start] + left[end:]
                if self.keeps(render(fewer)):
                    left = fewer
                end = start
            size //= 2


LONG = 64
"""A run of as many repetitions that cannot be shorter gets an eighth more in the end: how deep a stack is
depends a little on the process that starts the program."""


def runs(state: Shrinking) -> None:
    """Make every run as short as it may be: those of one length together, then each alone."""
    parts = stretches(state.best)
    found = [at for at, one in enumerate(parts) if isinstance(one, Run)]
    for at in found:  # the closing half of a nest is often not even read
        parts = _fewest(state, parts, [at], only=0)
    counts = {_count(parts[at]) for at in found}
    for count in sorted(counts, reverse=True):
        together = [at for at in found if _count(parts[at]) == count]
        if count and len(together) > 1:
            parts = _fewest(state, parts, together)
    for at in found:
        if _count(parts[at]):
            parts = _fewest(state, parts, [at])
            parts = _thinner(state, parts, at)


def _count(part: bytes | Run) -> int:
    return len(part.units) if isinstance(part, Run) else 0


def _fewest(state: Shrinking, parts: Parts, places: Sequence[int], only: int | None = None) -> Parts:
    """The parts with as few repetitions at these places as a search by halves finds."""

    def with_count(count: int) -> Parts:
        changed = list(parts)
        for at in places:
            one = parts[at]
            assert isinstance(one, Run)
            changed[at] = replace(one, units=one.units[:count])
        return changed

    low, high = -1, _count(parts[places[0]])
    for first in (only,) if only is not None else (0, 1):
        if state.keeps(joined(with_count(first))):
            return with_count(first)
        low = max(low, first)
    while only is None and high - low > 1:
        middle = (low + high) // 2
        if state.keeps(joined(with_count(middle))):
            high = middle
        else:
            low = middle
    return with_count(high)


def _thinner(state: Shrinking, parts: Parts, at: int) -> Parts:
    """Remove tokens from each repetition."""
    one = parts[at]
    assert isinstance(one, Run)
    place = 0
    while place < len(split(one.units[0])):
        fewer = replace(one, units=tuple(_without(unit, place) for unit in one.units))
        changed = [*parts[:at], fewer, *parts[at + 1 :]]
        if state.keeps(joined(changed)):
            parts, one = changed, fewer
        else:
            place += 1
    return parts


def _without(unit: bytes, place: int) -> bytes:
    tokens = split(unit)
    return b"".join(tokens[:place] + tokens[place + 1 :])


def widened(text: bytes, still: Keeps) -> bytes:
    """The text with its long runs an eighth longer, if that still shows the defect."""
    parts = stretches(text)
    wide = [
        Run(one.units + one.units[: len(one.units) // 8])
        if isinstance(one, Run) and len(one.units) >= LONG
        else one
        for one in parts
    ]
    try:
        return joined(wide) if joined(wide) != text and still(joined(wide)) else text
    except Enough:
        return text


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


Pass = Callable[[Shrinking], None]

_TEXT: tuple[tuple[Pass, ...], ...] = (
    (runs, lines, groups, singly),
    (words, blanks),
    (spans,),
    (characters,),
)
"""What removes much first; a stage that changed something starts all over."""
_BYTES: tuple[tuple[Pass, ...], ...] = (
    (sections, chunks),
    (zeros,),
)


def shrinker(part: str) -> Shrink:
    """How inputs of a part shrink: of a compiler as text, of a loader as bytes."""
    return _text if part == "compiler" else _bytes


def _text(source: bytes, still: Keeps) -> bytes:
    """What is text stays text: half a letter would show how the program reads a file."""

    def whole(candidate: bytes) -> bool:
        return is_text(candidate) and still(candidate)

    keeps = whole if is_text(source) else still
    return widened(_repeated(_TEXT, source, keeps), keeps)


def is_text(source: bytes) -> bool:
    """Whether it is UTF-8."""
    try:
        source.decode()
    except UnicodeDecodeError:
        return False
    return True


def _bytes(source: bytes, still: Keeps) -> bytes:
    return _repeated(_BYTES, source, still)


def _repeated(stages: Sequence[Sequence[Pass]], source: bytes, still: Keeps) -> bytes:
    """Make the passes of each stage; the stages after it only once it changes nothing more."""
    state, at = Shrinking(source, still), 0
    with contextlib.suppress(Enough):
        while at < len(stages):
            before = state.best
            for one in stages[at]:
                one(state)
            at = at + 1 if state.best == before else 0
    return state.best
