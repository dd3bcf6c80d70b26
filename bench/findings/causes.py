"""How many items a defect has: items are counted by hand-made keys, a pattern of titles for each cause."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

KEYS = Path(__file__).with_name("causes.toml")


@dataclass(frozen=True, slots=True)
class Causes:
    """Titles by cause; one that no key matches is a cause by itself."""

    titles: Mapping[str, tuple[str, ...]]

    @property
    def items(self) -> int:
        return sum(map(len, self.titles.values()))

    @property
    def doubles(self) -> dict[str, tuple[str, ...]]:
        """Causes with more than one item, and these."""
        return {key: found for key, found in self.titles.items() if len(found) > 1}

    def __str__(self) -> str:
        count = len(self.titles)
        return f"{self.items} items of {count} defects: {self.items / max(1, count):.2f} items per defect"


def causes(found: Iterable[tuple[str, str]], keys: Mapping[str, Mapping[str, str]]) -> Causes:
    """Groups (program, title) by the first key of its program, or of all, whose pattern the title has."""
    made: dict[str, tuple[str, ...]] = {}
    for program, title in found:
        named = {**keys.get(program, {}), **keys.get("all", {})}
        key = next((key for key, pattern in named.items() if re.search(pattern, title)), title)
        made[f"{program}: {key}"] = (*made.get(f"{program}: {key}", ()), title)
    return Causes(made)


@cache
def hand_made() -> Mapping[str, Mapping[str, str]]:
    """The keys of `causes.toml`."""
    return tomllib.loads(KEYS.read_text("utf-8"))
