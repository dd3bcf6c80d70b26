"""Which entries of the log say the same in other words (stage 2 of clustering). Pure, and incremental.

A text that differs from an earlier one by a word or so is a variant of it. Any other is compared with the few
that share most of its words; `settle` then decides on the whole of what hangs together (`grouping.py`), only
where something is new. What tells defects apart (identifiers, codes, routes, hosts, numbers with a unit, what
comes before what, denials) must agree. Nothing here depends on how common a word is in the log, so unrelated
entries never change a link, and no text of a stranger is part of what joins texts of ours. A comparison that
fails gives no link.
"""

from __future__ import annotations

import heapq
import zlib
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from fleet.triage.same.grouping import NO_SURFACE, SimilarText, grouped, parts
from fleet.triage.same.likeness import compare, variant
from fleet.triage.same.word_lists import lists
from fleet.triage.same.wording import Reader, Wording

POSTINGS = 128
"""Most texts remembered under one word of a surface; the first ones stay, a flood cannot displace them."""
CANDIDATES = 24
"""Most texts of ours, and most of strangers, that one entry is compared with."""
WORDS = 24
"""Most words of a text that are looked up, the rarest ones of its surface."""
DOUBTFUL = 200
"""Most doubtful pairs, the likeliest."""
DOUBTFUL_EACH = 8
"""Most doubtful pairs of what hangs together."""


class NearLink(NamedTuple):
    """`a` says the same as `b`, the first of ours that does, else the first; `similarity` 0 to 1."""

    a: str
    b: str
    similarity: float
    why: str


@dataclass(slots=True, eq=False)
class _NearComponent:
    """Texts that hang together, and what was decided on them."""

    texts: list[SimilarText]
    doubtful: list[tuple[float, SimilarText, SimilarText]] = field(default_factory=list)


class SimilarTexts:
    """The entries seen so far; each is compared with few candidates, however many there are."""

    def __init__(self) -> None:
        self.links: dict[str, NearLink] = {}
        """The link of each entry that is not the first of its group, by key; as of the last `settle`."""
        self._reader, self._light, self._near = Reader(), lists().generic, lists().limits["near"]
        self._index: dict[tuple[bool, str], dict[str, list[SimilarText]]] = {}
        self._same: dict[tuple[str, frozenset[object]], SimilarText] = {}
        self._places: dict[str, int] = {}
        self._in: dict[SimilarText, _NearComponent] = {}
        self._touched: dict[_NearComponent, None] = {}

    def add(
        self, key: str, surface: str, title: str, body: str = "", *, exact: bool = False, ours: bool = True
    ) -> None:
        """One more entry, in the order of the log. `exact` entries have a fingerprint of what was observed: a
        group has at most one of them. Those of strangers (not `ours`) never join two of ours."""
        try:
            self._add(key, surface or NO_SURFACE, self._reader.read(title, body), title + body, (exact, ours))
        except (ValueError, ArithmeticError, LookupError, RecursionError):
            return

    def settle(self) -> bool:
        """Bring `links` up to date; whether any of them changed."""
        changed = False
        while self._touched:
            component, _ = self._touched.popitem()
            try:
                made = self._decided(component)
            except (ValueError, ArithmeticError, LookupError, RecursionError):
                made = {}
            for key in (key for text in component.texts for key in text.keys):
                link = made.get(key)
                if link != self.links.get(key):
                    changed = True
                    if link is None:
                        del self.links[key]
                    else:
                        self.links[key] = link
        return changed

    def _decided(self, component: _NearComponent) -> dict[str, NearLink]:
        if len(component.texts) == 1:
            return self._links_of(component.texts)
        made: dict[str, NearLink] = {}
        ours: list[list[SimilarText]] = []
        nearly: list[tuple[float, SimilarText, SimilarText]] = []
        for part in parts([text for text in component.texts if text.ours]):
            found = grouped(part)
            ours += found.groups
            nearly += found.nearly[:DOUBTFUL_EACH]
        for part in parts(component.texts, ours):
            within = set(part)
            found = grouped(part, [group for group in ours if group[0] in within])
            nearly += found.nearly[:DOUBTFUL_EACH]
            for group in found.groups:
                made |= self._links_of(group)
        component.doubtful = heapq.nlargest(DOUBTFUL_EACH, nearly, key=itemgetter(0))
        return made

    def doubtful(self) -> list[NearLink]:
        """Pairs of entries just below what joins them, the likeliest first: at most `DOUBTFUL`."""
        pairs = (pair for component in dict.fromkeys(self._in.values()) for pair in component.doubtful)
        likeliest = heapq.nlargest(DOUBTFUL, pairs, key=itemgetter(0))
        return [NearLink(a.keys[0], b.keys[0], *_shown(a, b)) for _, a, b in likeliest]

    def _add(self, key: str, surface: str, wording: Wording, text: str, said: tuple[bool, bool]) -> None:
        exact, ours = said
        if key in self._places:
            return
        twin = self._same.get((surface, wording.key)) if wording.weight else None
        if twin is not None and _takes(twin, surface, exact, ours):
            self._join(twin, key, exact)
            return
        found = self._candidates(surface, wording) if wording.weight else []
        for other, _ in found[:2]:
            if _takes(other, surface, exact, ours) and variant(wording, other.wording):
                self._join(other, key, exact)
                return
        size = len(wording.names)
        alike = [
            (other, compare(wording, other.wording))
            for other, common in found
            if common >= self._near * min(size, len(other.wording.names))
        ]
        mark = zlib.crc32(text.encode(errors="replace"))
        made = SimilarText(len(self._in), mark, surface, wording, ours, exact)
        for other, likeness in alike:
            if made.keep(other, likeness) >= self._near:
                made.alike[other] = other.alike[made] = likeness
        self._connect(made)
        self._join(made, key, exact)
        if wording.weight:
            self._remember(made)

    def _join(self, text: SimilarText, key: str, exact: bool) -> None:
        self._places[key] = len(self._places)
        text.keys.append(key)
        text.exact |= exact
        self._touched[self._in[text]] = None

    def _connect(self, text: SimilarText) -> None:
        """Put the text with all that it is alike to, directly or by way of others."""
        beside = sorted(
            dict.fromkeys(self._in[other] for other in text.alike), key=lambda one: -len(one.texts)
        )
        home = beside[0] if beside else _NearComponent([])
        for other in beside[1:]:
            home.texts += other.texts
            self._in |= dict.fromkeys(other.texts, home)
            self._touched.pop(other, None)
        home.texts.append(text)
        self._in[text] = home

    def _candidates(self, surface: str, wording: Wording) -> list[tuple[SimilarText, int]]:
        """The texts that share most of its words, rare words first; bounded, strangers' apart from ours."""
        most: list[tuple[SimilarText, int]] = []
        for ours in (True, False):
            listed: list[list[SimilarText]] = []
            for place in ("",) if surface == NO_SURFACE else (surface, NO_SURFACE):
                if table := self._index.get((ours, place)):
                    listed += filter(None, map(table.get, wording.names))
            if len(listed) > WORDS:
                listed = sorted(listed, key=len)[:WORDS]
            if not listed:
                continue
            found = Counter(chain.from_iterable(listed))
            most += sorted(found.items(), key=itemgetter(1), reverse=True)[:CANDIDATES]
        return most

    def _remember(self, text: SimilarText) -> None:
        same = (text.surface, text.wording.key)
        if text.ours > self._same.setdefault(same, text).ours:
            self._same[same] = text
        tables = [self._index.setdefault((text.ours, place), {}) for place in ("", text.surface)]
        for name in text.wording.names:
            if name not in self._light:
                for table in tables:
                    listed = table.setdefault(name, [])
                    if len(listed) < POSTINGS:
                        listed.append(text)

    def _links_of(self, group: list[SimilarText]) -> dict[str, NearLink]:
        """The links of a group's entries to its first one of ours, else its first."""
        first = min(group, key=lambda text: (not text.ours, self._places[text.keys[0]]))
        lead, links = first.keys[0], dict[str, NearLink]()
        for text in group:
            shown = _shown(text, first)
            links |= {key: NearLink(key, lead, *shown) for key in text.keys if key != lead}
        return links


def _takes(text: SimilarText, surface: str, exact: bool, ours: bool) -> bool:
    """Whether an entry with nearly the same words may be a variant of the text."""
    return text.surface == surface and (text.ours or not ours) and not (exact and text.exact)


def _shown(text: SimilarText, other: SimilarText) -> tuple[float, str]:
    """Similarity and reason of two texts of a group."""
    if text is other:
        return 1.0, "the same words, or all but one; volatile parts are left out"
    likeness = text.alike.get(other) or compare(text.wording, other.wording)
    return round(likeness.score, 2), likeness.why()
