"""How alike two texts are, and what tells them apart. Pure and symmetric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rapidfuzz import fuzz, process

from fleet.triage.same.word_lists import lists
from fleet.triage.same.wording import Wording

SPELLING = 84.0
"""Two words of no list with at least this `rapidfuzz.fuzz.ratio` are one, spelled differently."""
FULL, VARIED = 6, 3
"""Concepts of a text that may have variants, and most that a variant adds or leaves out."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """Result of one comparison; `against` names what speaks against a link, "" if nothing does."""

    score: float
    against: str = ""
    said: tuple[str, ...] = ()
    """Concepts that both say."""
    pair: tuple[Wording, Wording] | None = None

    def why(self) -> str:
        """For people: what both say, and what only one of them says."""
        if self.pair is None:
            return f"{self.score:.2f} alike"
        a, b = self.pair
        spelled = {one for pair in _spelled_alike(a, b) for one in pair}
        shared = (*_common_marks(a, b), *sorted(self.said, key=lambda name: (-weight_of(name), name)))
        text = f"{self.score:.2f} alike: {', '.join(shared[:8])}"
        if differ := sorted((a.signs.keys() ^ b.signs.keys()) - spelled):
            text += f"; only one says {', '.join(differ[:4])}"
        return text + (f"; but {self.against}" if self.against else "")


def weight_of(name: str) -> float:
    """What it says that both texts have this concept."""
    data = lists()
    return data.weights["generic"] if name in data.generic else data.weights["word"]


def compare(a: Wording, b: Wording) -> Likeness:
    """How alike two texts are, symmetric; `against` is set where they cannot mean the same."""
    data = lists()
    light, plain = data.weights["generic"], data.weights["word"]
    both = [name for name in a.signs if name in b.signs]
    opposed = [name for name in both if not a.signs[name] & b.signs[name]]
    shared = [name for name in both if name not in opposed] if opposed else both
    weight = 0.0
    for name in shared:
        weight += light if name in data.generic else plain
    spelled = list(_spelled_alike(a, b)) if a.alone and b.alone else []
    weight += len(spelled) * plain
    marks = _common_marks(a, b)
    weight += (extra := len(marks) * data.weights["mark"])
    small, big = sorted((a.weight + extra, b.weight + extra))
    if not small or len(shared) + len(spelled) + len(marks) < 2:
        return Likeness(0.0)
    weight += sum(map(weight_of, opposed)) / 2
    score = max(0.0, min(1.0, weight / (small ** data.weights["short"] * big ** (1 - data.weights["short"]))))
    return Likeness(score, _against(a, b, opposed), tuple(shared), (a, b))


def _replaced(a: Wording, b: Wording, one: str, other: str) -> bool:
    """Whether one text says the one concept where the other says its opposite."""
    left, right = (a.signs.get(one, 0), a.signs.get(other, 0)), (b.signs.get(one, 0), b.signs.get(other, 0))
    return {left, right} == {(1, 0), (0, 1)}


def _spelled_alike(a: Wording, b: Wording) -> Iterator[tuple[str, str]]:
    """Words of no list, each in one of the texts only, that differ by a letter or so."""
    left, right = sorted(a.alone - b.signs.keys())[:16], sorted(b.alone - a.signs.keys())[:16]
    for word in left:
        if len(word) > 4 and (near := [other for other in right if other[0] == word[0]]):
            found = process.extractOne(word, near, scorer=fuzz.ratio, score_cutoff=SPELLING)
            if found:
                right.remove(found[0])
                yield word, found[0]


def _common_marks(a: Wording, b: Wording) -> list[str]:
    if not (a.marks and b.marks):
        return []
    return sorted(
        mark
        for kind, marks in a.marks.items()
        for mark in marks & b.marks.get(kind, frozenset())
        if kind != "status" and mark not in a.signs
    )


def variant(a: Wording, b: Wording) -> bool:
    """Whether they differ by a word or so of at least `FULL`, and in nothing that tells defects apart."""
    if min(len(a.signs), len(b.signs)) < FULL or a.orders != b.orders:
        return False
    differ = a.signs.items() ^ b.signs.items()
    if len(differ) > VARIED:
        return False
    polar, alternatives = lists().polar, lists().alternatives
    for name, _ in differ:
        if name in polar or name in alternatives:
            return False
    return a.marks == b.marks or not (a.marks and b.marks)


def _against(a: Wording, b: Wording, opposed: list[str]) -> str:
    """What tells the two apart however alike they are; "" if nothing does."""
    for kind, marks in a.claimed.items():
        if others := b.claimed.get(kind):
            left, right = _only(marks, b, kind), _only(others, a, kind)
            if left and right and (a.signs == b.signs or " " not in kind):
                return f"another {kind}: {min(left)}, {min(right)}"
    if any(
        kind == other and left & last and right & first and not (left & first or right & last)
        for kind, left, right in a.orders
        for other, first, last in b.orders
    ):
        return "the other way round"
    if opposed and a.signs.keys() == b.signs.keys() and a.marks == b.marks:
        return f"one denies: {min(opposed)}"
    for one, other in lists().opposites:
        if _replaced(a, b, one, other):
            return f"one says {one}, one {other}"
    if denied := sorted(lists().polar.intersection(opposed)):
        return f"one denies: {', '.join(denied[:3])}"
    return ""


def _only(marks: frozenset[str], other: Wording, kind: str) -> frozenset[str]:
    return marks - other.marks.get(kind, frozenset()) - other.signs.keys()
