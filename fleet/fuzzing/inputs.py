"""The inputs that a search starts from, bounded: those whose rounds brought most that was new. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from fleet.fuzzing.claims import INPUT_BYTES, fits

MOST_INPUTS = 400
MOST_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class SearchStart:
    """The operator's own: `sources` to start from, `grammar` as a table of productions."""

    sources: tuple[str, ...] = ()
    grammar: str = ""


@dataclass(slots=True)
class KeptInput:
    """One input: how many rounds started from it, and the new behaviours that they brought together."""

    text: str
    rounds: int = 0
    gain: int = 0

    @property
    def worth(self) -> tuple[float, int, str]:
        """Gain for each round, one that was not used yet first; then the shorter."""
        return (-(self.gain + 1) / (self.rounds + 1), len(self.text), self.text)


class KeptInputs:
    """The inputs of one part."""

    def __init__(self) -> None:
        self._all: dict[str, KeptInput] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, text: object) -> bool:
        return text in self._all

    @property
    def size(self) -> int:
        """Bytes of all."""
        return sum(len(text.encode()) for text in self._all)

    def add(self, texts: Iterable[str]) -> int:
        """Keep these too, as far as there is room for the worthiest; how many were new."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._all]
        self._all |= {text: KeptInput(text) for text in fresh}
        self._cut()
        return len(fresh)

    def credit(self, texts: Iterable[str], behaviours: int) -> None:
        """A round that started from these brought new behaviours."""
        for text in texts:
            if (one := self._all.get(text)) is not None:
                one.rounds += 1
                one.gain += behaviours

    def best(self, most: int, chars: int, chance: Random) -> tuple[str, ...]:
        """At most `most`, of `chars` characters together, the worthiest first; a quarter of them is drawn
        from the others."""
        ranked = sorted(self._all.values(), key=lambda one: one.worth)
        drawn = most // 4 if len(ranked) > most else 0
        head, tail = ranked[: most - drawn], ranked[most - drawn :]
        found: list[str] = []
        for one in (*head, *chance.sample(tail, min(drawn, len(tail)))):
            chars -= len(one.text)
            if chars >= 0:
                found.append(one.text)
        return tuple(found)

    def _cut(self) -> None:
        size = 0
        kept: dict[str, KeptInput] = {}
        for one in sorted(self._all.values(), key=lambda one: one.worth):
            size += len(one.text.encode())
            if len(kept) >= MOST_INPUTS or size > MOST_BYTES:
                break
            kept[one.text] = one
        self._all = kept

    def as_data(self) -> list[list[Any]]:
        """As JSON."""
        return [[one.text, one.rounds, one.gain] for one in self._all.values()]

    @classmethod
    def of(cls, data: object, part: str) -> KeptInputs:
        """What `as_data` gave; what does not fit is left out."""
        made = cls()
        for row in data if isinstance(data, list) else ():
            if isinstance(row, list) and len(row) == 3 and fits(row[0], part, INPUT_BYTES):
                rounds, gain = (one if type(one) is int and one >= 0 else 0 for one in row[1:])
                made._all[row[0]] = KeptInput(row[0], rounds, gain)
        made._cut()
        return made
