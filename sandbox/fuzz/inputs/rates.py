"""Which alternatives of a table of productions a compiler accepts: a table covers every release of its
language, and a compiler knows a part of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

Alternative = tuple[str, ...]
Drawn = tuple[str, Alternative]
"""A rule, and the alternative that stood for it."""

BELIEVED = 2.0
"""Programs that an alternative is believed to have been in, accepted as often as those of its rule."""
LEAST = 0.03
"""How often one that is always refused is taken where it is drawn."""
REDRAWN = 8
MOST_WAITING = 64
"""Programs that wait for their verdict."""


class AlternativeRates:
    """How often a program with an alternative was accepted, beside those with others of its rule."""

    def __init__(self) -> None:
        self._tried: Counter[Drawn] = Counter()
        self._accepted: Counter[Drawn] = Counter()
        self._rule_tried: Counter[str] = Counter()
        self._rule_accepted: Counter[str] = Counter()
        self._drawn: set[Drawn] = set()
        self._waiting: dict[bytes, set[Drawn]] = {}
        self._verdicts: dict[bytes, bool] = {}

    def begin(self) -> None:
        """A program is begun."""
        self._drawn = set()

    def note(self, rule: str, alternative: Alternative) -> None:
        """It has this alternative."""
        self._drawn.add((rule, alternative))

    def end(self, source: bytes) -> None:
        """It became this input."""
        self._waiting[source] = self._drawn
        if len(self._waiting) > MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]

    def judged(self, source: bytes, *, accepted: bool) -> None:
        """What the compiler said of an input; one that is not of the table says nothing."""
        drawn = self._waiting.pop(source, None)
        if drawn is None:
            return
        self._verdicts[source] = accepted
        if len(self._verdicts) > MOST_WAITING:
            del self._verdicts[next(iter(self._verdicts))]
        self._tried.update(drawn)
        self._rule_tried.update(rule for rule, _ in drawn)
        if accepted:
            self._accepted.update(drawn)
            self._rule_accepted.update(rule for rule, _ in drawn)

    def accepted(self, source: bytes) -> bool:
        """Whether one of the last inputs was accepted; not one that was left out, or that showed a defect."""
        return self._verdicts.get(source, False)

    def share(self, rule: str, alternative: Alternative) -> float:
        """How often an alternative is taken where it is drawn; 1 if it is accepted as often as others."""
        tried = self._tried[rule, alternative]
        usual = (self._rule_accepted[rule] + 1) / (self._rule_tried[rule] + 1)
        own = (self._accepted[rule, alternative] + BELIEVED * usual) / (tried + BELIEVED)
        return max(min(own / usual, 1.0), LEAST)

    def choose(self, rule: str, alternatives: Sequence[Alternative], chance: Random) -> Alternative:
        """One of them, by their shares."""
        random = chance.random
        for _ in range(REDRAWN):
            one = alternatives[int(random() * len(alternatives))]
            if random() < self.share(rule, one):
                break
        return one
