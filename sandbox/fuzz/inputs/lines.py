"""Edits of lines, which know of indentation and of nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from sandbox.fuzz.inputs.material import MOST_BYTES, choose, place

LineEdit = Callable[[list[str], Sequence[bytes], Random], None]
"""Changes a list of lines in place. Lists are not empty."""


def _deep(line: str) -> int:
    return len(line) - len(line.lstrip())


def block(lines: Sequence[str], at: int) -> int:
    """The end of a line's block: the deeper lines after it, and the line that closes its bracket."""
    end = at + 1
    while end < len(lines) and (not lines[end].strip() or _deep(lines[end]) > _deep(lines[at])):
        end += 1
    closes = end < len(lines) and end > at + 1 and lines[end].strip()[:1] in ("}", ")", "]")
    return end + 1 if closes and _deep(lines[end]) == _deep(lines[at]) else end


def deleted(lines: list[str], _corpus: Sequence[bytes], chance: Random) -> None:
    at = place(chance, lines)
    del lines[at : block(lines, at) if chance.random() < 0.7 else at + 1]


def doubled(lines: list[str], _corpus: Sequence[bytes], chance: Random) -> None:
    at = place(chance, lines)
    end = block(lines, at)
    lines[end:end] = lines[at:end]


def swapped(lines: list[str], _corpus: Sequence[bytes], chance: Random) -> None:
    """Two blocks of the same depth change places."""
    at = place(chance, lines)
    end = block(lines, at)
    if end < len(lines) and _deep(lines[end]) == _deep(lines[at]):
        after = block(lines, end)
        lines[at:after] = [*lines[end:after], *lines[at:end]]


def shifted(lines: list[str], _corpus: Sequence[bytes], chance: Random) -> None:
    """A block stands deeper, or less deep."""
    at = place(chance, lines)
    deeper = chance.random() < 0.5
    for one in range(at, block(lines, at)):
        lines[one] = "    " + lines[one] if deeper else lines[one].removeprefix("    ")


def taken(lines: list[str], corpus: Sequence[bytes], chance: Random) -> None:
    """A block of another program, at the depth of the line before which it comes."""
    donor = choose(chance, corpus).decode("utf-8", "replace").split("\n")
    first = place(chance, donor)
    found = donor[first : block(donor, first)]
    at = place(chance, lines)
    shift = _deep(lines[at]) - _deep(found[0])
    lines[at:at] = [" " * shift + one if shift > 0 else one[min(-shift, _deep(one)) :] for one in found]


LINE_EDITS: tuple[LineEdit, ...] = (deleted, doubled, swapped, shifted, taken, taken)


def line_mutation(corpus: Sequence[bytes], chance: Random) -> bytes | None:
    if not corpus:
        return None
    lines = choose(chance, corpus).decode("utf-8", "replace").split("\n")
    for _ in range(1 + int(chance.random() ** 2 * 3)):
        if lines:
            choose(chance, LINE_EDITS)(lines, corpus, chance)
    made = "\n".join(lines).encode()
    return made if 0 < len(made) <= MOST_BYTES else None
