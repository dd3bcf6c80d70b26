"""Which of the texts that are alike say one thing: average linkage over a whole component. Pure.

Groups are joined best pair first, judged by all their texts and not by the one that came last, so that the
order of arrival does not matter and a chain of weak links cannot drift. A group of `CORE` texts shows what
it is about: what most of them say has to be said by those that join, however much else they say.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import count

from fleet.triage.same.likeness import Likeness, compare, weight_of
from fleet.triage.same.word_lists import lists
from fleet.triage.same.wording import Wording

CORE = 3
"""Texts of a group that show what its core is."""
FEW = 12
"""Most texts of one group that a comparison looks at."""
LARGE = 96
"""Most texts that are weighed against one another; what hangs together more loosely is looked at in parts."""
DENIED = -0.5
"""What saying the opposite of a word of the core counts for, as a share of its weight."""
COMMON, RARE = 0.6, 0.25
"""Least share of a group's texts that say what happens by its core, and most that say what does not."""
AGREED, AGREED_SHORT = 1 / 2, 2 / 3
"""Share of what happens by a core that is enough, for a text of at most `SHORT` concepts the second: a short
text that says something else has no room for more, a long one also tells what came before and after."""
SHORT = 5
CONTRADICTED = 0.5
"""What a contradiction takes from the likeness of two texts."""
NO_SURFACE = "unknown"
"""The surface of notes: compared with those of every surface."""


@dataclass(slots=True, eq=False)
class SimilarText:
    """One wording. `number` is its place, `mark` a checksum of the text: what decides between equals.

    `ours` says that the fleet wrote it, `exact` that one of its entries has a fingerprint of what was
    observed. `alike` are the texts beside which it may stand, `scores` all comparisons made.
    """

    number: int
    mark: int
    surface: str
    wording: Wording
    ours: bool
    exact: bool
    keys: list[str] = field(default_factory=list)
    alike: dict[SimilarText, Likeness] = field(default_factory=dict)
    scores: dict[int, float] = field(default_factory=dict)

    def score(self, other: SimilarText) -> float:
        """How alike the two are, -0.5 to 1; below what joins them where they contradict each other."""
        found = self.scores.get(other.number)
        if found is None:
            found = self.keep(other, compare(self.wording, other.wording))
        return found

    def keep(self, other: SimilarText, likeness: Likeness) -> float:
        found = likeness.score - (CONTRADICTED if likeness.against else 0.0)
        self.scores[other.number] = other.scores[self.number] = found
        return found


@dataclass(slots=True, eq=False)
class _TextGroup:
    """`said` counts by word how many texts have it, say it, and deny it; `fixed` groups are never joined to
    one another."""

    texts: list[SimilarText]
    fixed: bool
    exact: bool
    surface: str
    near: set[SimilarText]
    said: dict[str, tuple[int, int, int]]
    gone: bool = False

    @property
    def order(self) -> tuple[int, int]:
        return (self.texts[0].mark, self.texts[0].number)

    def covered(self, other: _TextGroup) -> float:
        """How much of the core the other group says, 0 to 1; denying what most say counts against it."""
        size, others = len(self.texts), len(other.texts)
        said = core = 0.0
        for name, (found, yes, no) in self.said.items():
            if found * 2 < size:
                continue
            weight = found * _weight(name)
            core += weight
            if name in other.said:
                having, agree, deny = other.said[name]
                share = min(1.0, having / others * 2)
                against = (yes and yes >= no * 2 and agree * 2 < deny) or (
                    no and no >= yes * 2 and deny * 2 < agree
                )
                said += weight * share * (DENIED if against else 1.0)
        return max(0.0, said / core) if core else 0.0

    def vague(self) -> bool:
        """Whether what most say are only things: their core says little."""
        least, small = len(self.texts) * COMMON, lists().things | lists().generic
        common = (name for name, (found, _, _) in self.said.items() if found >= least)
        return all(name in small or name[0] == "=" for name in common)

    def tells_else(self, other: _TextGroup) -> bool:
        """Whether the other group says too little of what happens by this one's core, and something else
        happens in it: it is about the same things, and reports another one."""
        events, least, rare = lists().events, len(self.texts) * COMMON, len(self.texts) * RARE
        core = agreed = 0
        for name in events.intersection(self.said):
            found, yes, no = self.said[name]
            if found >= least:
                core += 1
                _, agree, deny = other.said.get(name, (0, 0, 0))
                agreed += bool((agree and yes * 2 > no) or (deny and no * 2 > yes))
        short = all(len(text.wording.signs) <= SHORT for text in other.texts)
        if agreed >= core * (AGREED_SHORT if short else AGREED):
            return False
        for name in events.intersection(other.said):
            _, agree, deny = other.said[name]
            _, yes, no = self.said.get(name, (0, 0, 0))
            if (agree and yes <= rare) or (deny and no <= rare):
                return True
        return False


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups of some texts, and the pairs of texts that were nearly of one group, likeliest first."""

    groups: list[list[SimilarText]]
    nearly: list[tuple[float, SimilarText, SimilarText]]


def grouped(texts: Iterable[SimilarText], fixed: Sequence[list[SimilarText]] = ()) -> Grouping:
    """The groups of some texts; `fixed` ones among them stay, never joined to one another.

    Only the first `LARGE` texts are weighed against all others; a later one joins the group of the text it
    is most alike to.
    """
    held = {text for group in fixed for text in group}
    whole = sorted(set(texts) - held, key=lambda text: text.number)
    early = sorted(whole[:LARGE], key=lambda text: (text.mark, text.number))
    start = [_union_of([_alone(text) for text in group]) for group in fixed]
    for group in start:
        group.fixed = True
    made, nearly = _joined([*start, *map(_alone, early)])
    of = {text: group for group in made for text in group.texts}
    for text in whole[LARGE:]:
        alone, link = _alone(text), lists().limits["link"]
        near = [
            (likeness.score, -other.number, other) for other, likeness in text.alike.items() if other in of
        ]
        best = max((one for one in near if one[0] >= link), default=None)
        group = of[best[2]] if best else alone
        if best is None or _apart(alone, group):
            made.append(alone)
            of[text] = alone
        else:
            group.texts.append(text)
            group.exact |= text.exact
            of[text] = group
    return Grouping([group.texts for group in made], nearly)


def parts(texts: Sequence[SimilarText], fixed: Sequence[list[SimilarText]] = ()) -> list[list[SimilarText]]:
    """What hangs together, ever more closely until no part has more than `LARGE` texts, if it can be."""
    limits = lists().limits
    mates = {text: group for group in fixed for text in group}
    whole = _connected(texts, 0.0, mates)
    for cut in (limits["few"], limits["link"], limits["close"]):
        whole = [
            closer
            for part in whole
            for closer in ([part] if len(part) <= LARGE else _connected(part, cut, mates))
        ]
    return whole


def _connected(
    texts: Sequence[SimilarText], cut: float, mates: Mapping[SimilarText, list[SimilarText]]
) -> list[list[SimilarText]]:
    left, found = dict.fromkeys(texts), []
    while left:
        part = [left.popitem()[0]]
        for text in part:
            beside = [other for other, likeness in text.alike.items() if likeness.score >= cut]
            for other in (*beside, *mates.get(text, ())):
                if other in left:
                    del left[other]
                    part.append(other)
        found.append(part)
    return found


def _alone(text: SimilarText) -> _TextGroup:
    said = {name: (1, int(signs & 1 > 0), int(signs & 2 > 0)) for name, signs in text.wording.signs.items()}
    for kind, marks in text.wording.marks.items():
        if kind != "status":
            said |= {f"={mark}": (1, 0, 0) for mark in marks if mark not in said}
    surface = "" if text.surface == NO_SURFACE else text.surface
    return _TextGroup([text], False, text.exact, surface, set(text.alike), said)


def _joined(
    groups: Sequence[_TextGroup],
) -> tuple[list[_TextGroup], list[tuple[float, SimilarText, SimilarText]]]:
    """Joins the best pair until no pair is good enough."""
    of = {text: group for group in groups for text in group.texts}
    waiting: list[tuple[float, tuple[int, int], tuple[int, int], int, _TextGroup, _TextGroup]] = []
    turn = count()
    doubtful: dict[tuple[SimilarText, SimilarText], float] = {}

    def offer(one: _TextGroup) -> None:
        beside = {of[text] for text in one.near if text in of} - {one}
        for other in sorted(beside, key=lambda group: group.order):
            first, second = sorted((one, other), key=lambda group: group.order)
            margin = _margin(first, second)
            if margin >= 0:
                heapq.heappush(waiting, (-margin, first.order, second.order, next(turn), first, second))
            elif margin > -lists().limits["doubt"]:
                doubtful[first.texts[0], second.texts[0]] = margin

    for group in groups:
        offer(group)
    while waiting:
        *_, one, other = heapq.heappop(waiting)
        if one.gone or other.gone:
            continue
        made = _union(one, other)
        one.gone = other.gone = True
        of |= dict.fromkeys(made.texts, made)
        offer(made)
    nearly = [(margin, a, b) for (a, b), margin in doubtful.items() if of[a] is not of[b]]
    left = dict.fromkeys(of.values())
    return list(left), sorted(nearly, key=lambda one: (-one[0], one[1].mark, one[2].mark))


def _union_of(groups: Sequence[_TextGroup]) -> _TextGroup:
    return reduce(_union, groups)


def _union(one: _TextGroup, other: _TextGroup) -> _TextGroup:
    big, small = (one, other) if len(one.texts) >= len(other.texts) else (other, one)
    said = dict(big.said)
    for name, (found, yes, no) in small.said.items():
        had = said.get(name, (0, 0, 0))
        said[name] = (had[0] + found, had[1] + yes, had[2] + no)
    return _TextGroup(
        [*big.texts, *small.texts],
        one.fixed or other.fixed,
        one.exact or other.exact,
        one.surface or other.surface,
        one.near | other.near,
        said,
    )


def _margin(one: _TextGroup, other: _TextGroup) -> float:
    """By how much two groups are alike enough to be one; -1 where they cannot be."""
    if _apart(one, other):
        return -1.0
    limits = lists().limits
    left, right = one.texts[:FEW], other.texts[:FEW]
    alike = sum(a.score(b) for a in left for b in right) / (len(left) * len(right))
    big, small = (one, other) if len(one.texts) >= len(other.texts) else (other, one)
    if len(big.texts) < CORE:
        margin = alike - limits["link" if len(big.texts) == 1 else "few"]
        return -1.0 if margin >= 0 and one.tells_else(other) and other.tells_else(one) else margin
    if big.tells_else(small) or (len(small.texts) >= CORE and small.tells_else(big)):
        return -1.0
    if alike < limits["vague"] and big.vague():
        return -1.0
    core = big.covered(small)
    if len(small.texts) >= CORE:
        core = min(core, small.covered(big))
    return alike * limits["mix"] + core * (1 - limits["mix"]) - limits["group"]


def _apart(one: _TextGroup, other: _TextGroup) -> bool:
    surfaces = one.surface and other.surface and one.surface != other.surface
    return bool(surfaces) or (one.exact and other.exact) or (one.fixed and other.fixed)


def _weight(name: str) -> float:
    return lists().weights["mark"] if name[0] == "=" else weight_of(name)
