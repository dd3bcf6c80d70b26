"""Texts that say the same: equal words join items, similar ones are suggested to a person. Pure, incremental.

What the fleet writes has fingerprints; this is for notes of people. Two texts are equal when they have the
same words in any order, without what differs from run to run (addresses, hashes, times, names of runs). Two
are similar by `rapidfuzz`, if whatever tells defects apart agrees: identifiers, routes, numbers, denials, and
what comes before what. Nothing depends on how common a word is in the log: unrelated entries change no link.
"""

from __future__ import annotations

import heapq
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count
from operator import itemgetter
from typing import NamedTuple

from rapidfuzz import fuzz

from fleet.text import clean

ALIKE, WITHIN = 86.0, 96.0
"""Two texts with at least this `rapidfuzz.fuzz.token_sort_ratio`, or `token_set_ratio` (one says what the
other says, and more), are similar: no pair of different findings in `bench/duplicates` reaches either."""
FEWEST = 4
"""Words of a text that can be similar to another: a shorter one says too little."""
MAX_CHARS = 2_048
"""Most characters read of one text: as many as an entry of the log has bytes."""
MAX_WORDS, WORD_CHARS = 120, 64
POSTINGS = 128
"""Most texts remembered under one word of a surface; the first ones stay, a flood cannot displace them."""
LOOKED_UP = 24
"""Most words of a text that are looked up, the rarest of its surface."""
CANDIDATES = 24
"""Most texts of ours, and most of strangers, that one text is compared with."""
EACH, SUGGESTED = 2, 200
"""Most similar texts kept of one text, and most pairs suggested."""
NO_SURFACE = "unknown"
"""The surface of notes: compared with those of every surface."""
EQUAL = "the same words; addresses, times and names of runs are left out"

_VOLATILE = re.compile(
    r"0x[0-9a-f]{9,}[0-9a-f.…]*|0x[0-9a-f]{2,8}(?:\.\.\.|…)[0-9a-f]*"  # addresses, hashes
    r"|(?=[a-f]*\d)[0-9a-f]{12,}|[0-9a-f]{8}-[0-9a-f-]{20,32}"  # bare hashes, UUIDs
    r"|\d{4}-\d\d-\d\d(?:t[\d:.+z-]*)?|\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?z?"  # dates and times
    r"|qa-[a-z0-9]{4,40}-\d{1,4}"
)
_EDGE = "`*_~'\"()[]{}<>.,:;!?…|=–—→“”‘’"
_TELLING = re.compile(r"[\d/_.:@#()<>\[\]{}\\-]|[a-z][A-Z]|[A-Z]{2}")
"""A word like this tells defects apart."""
_ARTICLES = frozenset(("a", "an", "the"))
_DECIDING = frozenset(
    (
        *("no", "not", "never", "nothing", "none", "neither", "nor"),
        *("without", "cannot", "before", "after", "until"),
    )
)


class NearLink(NamedTuple):
    """`a` says the same as `b`, the first of ours that does, else the first; `similarity` 0 to 1."""

    a: str
    b: str
    similarity: float
    why: str


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of one text, sorted and joined, and those among them that tell defects apart."""

    text: str
    words: frozenset[str]
    telling: frozenset[str]
    deciding: frozenset[str]
    """Those that deny or order."""

    def similarity(self, other: Wording) -> float:
        """0 to 100, for the same words; 0 where something tells them apart."""
        if self.text == other.text:
            return 100.0 if self.text else 0.0
        if self.deciding != other.deciding or min(len(self.words), len(other.words)) < FEWEST:
            return 0.0
        if not (self.telling <= other.telling or other.telling <= self.telling):
            return 0.0
        if len(self.words - other.words) == len(other.words - self.words) == 1:
            return 0.0  # the first for the last, valid for invalid: one word in place of another
        return fuzz.ratio(self.text, other.text, score_cutoff=ALIKE) or fuzz.token_set_ratio(
            self.text, other.text, score_cutoff=WITHIN
        )

    def why(self, other: Wording, similarity: float) -> str:
        """For people: how similar they are, and what only one of them says."""
        text, differ = f"{similarity / 100:.2f} alike", sorted(self.words ^ other.words)
        return f"{text}; only one says {', '.join(differ[:4])}" if differ else text


def wording(title: str, body: str = "") -> Wording:
    """The words of a text; work is bounded for any text."""
    text = f"{title[:MAX_CHARS]}\n{body[:MAX_CHARS]}"[:MAX_CHARS]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", clean(text, MAX_CHARS, newlines=True)).replace("’", "'")
    words, telling = list[str](), set[str]()
    for token in text.split()[:MAX_WORDS]:
        bare = token.strip(_EDGE)
        lowered = bare.casefold()[:WORD_CHARS]
        if not lowered.strip("-") or lowered in _ARTICLES or _VOLATILE.fullmatch(lowered):
            continue
        if lowered.isalpha() and lowered[-1] == "s" and len(lowered) > 4:
            lowered = lowered.removesuffix("s")
        words.append(lowered)
        if _TELLING.search(bare[:WORD_CHARS]):
            telling.add(lowered)
    every = frozenset(words)
    deciding = frozenset(word for word in every if word in _DECIDING or word.endswith("n't"))
    return Wording(" ".join(sorted(words)), every, frozenset(telling), deciding)


@dataclass(slots=True, eq=False)
class _EqualTexts:
    """Entries with the same words on one surface, in the order of the log; the `lead` is the first of ours,
    else the first. At most one has a fingerprint of what was observed."""

    wording: Wording
    surface: str
    keys: list[str] = field(default_factory=list)
    lead: str = ""
    ours: bool = False
    exact: bool = False


class SimilarTexts:
    """The entries seen so far; each is compared with few others, however many there are."""

    def __init__(self) -> None:
        self.links: dict[str, NearLink] = {}
        """The link of each entry to the first with the same words, by key."""
        self._equal: dict[tuple[str, str], _EqualTexts] = {}
        self._index: dict[tuple[bool, str], dict[str, list[_EqualTexts]]] = {}
        self._similar: list[tuple[int, float, int, _EqualTexts, _EqualTexts]] = []
        """A heap: by how many of the two are ours, then by likeness, then the first; the last one on top."""
        self._turn = count()
        self._known: set[str] = set()
        self._changed = False

    def add(
        self, key: str, surface: str, title: str, body: str = "", *, exact: bool = False, ours: bool = True
    ) -> None:
        """One more entry, in the order of the log. Two `exact` entries, which have fingerprints of what was
        observed, are never linked."""
        if key in self._known:
            return
        self._known.add(key)
        made, surface = wording(title, body), surface or NO_SURFACE
        group = self._equal.get((surface, made.text)) if made.text else None
        if group is None or (exact and group.exact):
            group = _EqualTexts(made, surface)
            if made.text:
                self._equal.setdefault((surface, made.text), group)
                self._join(group, key, exact=exact, ours=ours)
                self._compare(group)
            return
        self._join(group, key, exact=exact, ours=ours)

    def settle(self) -> bool:
        """Whether any link changed since the last call."""
        changed, self._changed = self._changed, False
        return changed

    def similar(self) -> list[NearLink]:
        """Pairs of entries that are similar, those of ours before strangers', then the likeliest: at most
        `SUGGESTED`."""
        return [
            NearLink(one.lead, other.lead, round(score / 100, 2), one.wording.why(other.wording, score))
            for _, score, _, one, other in sorted(self._similar, reverse=True)
        ]

    def _join(self, group: _EqualTexts, key: str, *, exact: bool, ours: bool) -> None:
        group.keys.append(key)
        group.exact |= exact
        if not group.lead or (ours and not group.ours):
            self.links.pop(key, None)
            group.lead, group.ours = key, ours
            self.links |= {other: NearLink(other, key, 1.0, EQUAL) for other in group.keys if other != key}
        else:
            self.links[key] = NearLink(key, group.lead, 1.0, EQUAL)
        self._changed |= len(group.keys) > 1

    def _compare(self, group: _EqualTexts) -> None:
        """Keep the likeliest of what is similar, and remember the text for those that follow."""
        if len(group.wording.words) < FEWEST:
            return
        found = [
            (score, other)
            for other in self._candidates(group)
            if not (group.exact and other.exact) and (score := group.wording.similarity(other.wording))
        ]
        for score, other in heapq.nlargest(EACH, found, key=itemgetter(0)):
            heapq.heappush(self._similar, (group.ours + other.ours, score, -next(self._turn), other, group))
            if len(self._similar) > SUGGESTED:
                heapq.heappop(self._similar)
        for place in ("", group.surface):
            table = self._index.setdefault((group.ours, place), {})
            for word in group.wording.words:
                listed = table.setdefault(word, [])
                if len(listed) < POSTINGS:
                    listed.append(group)

    def _candidates(self, group: _EqualTexts) -> Iterator[_EqualTexts]:
        """The texts that share most of its words, rare words first; bounded, strangers' apart from ours."""
        places = ("",) if group.surface == NO_SURFACE else (group.surface, NO_SURFACE)
        for ours in (True, False):
            tables = [table for place in places if (table := self._index.get((ours, place)))]
            listed = [
                one for table in tables for word in sorted(group.wording.words) if (one := table.get(word))
            ]
            shared = Counter(chain.from_iterable(sorted(listed, key=len)[:LOOKED_UP]))
            for other, _ in shared.most_common(CANDIDATES):
                yield other
