"""Cut an input to a local minimum: what is left shows the same defect, and no smaller neighbour does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from sandbox.fuzz import shrink_bytes, shrink_runs, shrink_text
from sandbox.fuzz.port import Enough, Shrink
from sandbox.fuzz.shrink_state import Keeps, Shrinking

Pass = Callable[[Shrinking], None]

_TEXT: tuple[tuple[Pass, ...], ...] = (
    (shrink_runs.runs, shrink_text.lines, shrink_text.groups, shrink_text.singly),
    (shrink_text.words, shrink_text.blanks),
    (shrink_text.spans,),
    (shrink_text.characters,),
)
"""What removes much first; a stage that changed something starts all over."""
_BYTES: tuple[tuple[Pass, ...], ...] = (
    (shrink_bytes.sections, shrink_bytes.chunks),
    (shrink_bytes.zeros,),
)


def shrinker(part: str) -> Shrink:
    """How inputs of a part shrink: of a compiler as text, of a loader as bytes."""
    return _text if part == "compiler" else _bytes


def _text(source: bytes, still: Keeps) -> bytes:
    """What is text stays text: half a letter would show how the program reads a file."""

    def whole(candidate: bytes) -> bool:
        return is_text(candidate) and still(candidate)

    keeps = whole if is_text(source) else still
    return shrink_runs.widened(_repeated(_TEXT, source, keeps), keeps)


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
