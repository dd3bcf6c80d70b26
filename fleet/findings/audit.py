"""The audit sample: is what the list calls settled or small really so? Pure.

Each run of the retest persona proves a random share of the dismissed and the low items again. A dismissed
item that shows every time, or a low one that is gone, overturns what the list says of it. A person's
decision still stands: the figures say so, and the item is named.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from fleet.errors import ConfigError

SHARE = 10
"""A run samples one item in this many."""
FEWEST, MOST = 1, 3
_PREFIX = "audit."

AuditVerdict = Literal["upheld", "overturned", "unreached"]


class AuditResult(BaseModel):
    """One sampled item: the state that the list gave it, and what running it again showed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    item: str
    state: str
    severity: str
    run: str
    at: str
    verdict: AuditVerdict
    why: str = ""


class AuditDay(BaseModel):
    """The results of one day (UTC); each run counts an item once."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    results: tuple[AuditResult, ...] = ()

    def with_result(self, one: AuditResult) -> AuditDay:
        """The day with one more result; the same run's earlier one of this item is replaced."""
        rest = (old for old in self.results if (old.run, old.item) != (one.run, one.item))
        return AuditDay(results=(*rest, one))


@dataclass(frozen=True, slots=True)
class AuditFigures:
    """`sampled` counts results that could tell, `rate` is overturned / sampled (0 without any).

    `days` are (day, sampled, overturned), oldest first. `overturned_items` are those whose latest result
    overturns the list, with its time (ISO).
    """

    sampled: int = 0
    overturned: int = 0
    unreached: int = 0
    days: tuple[tuple[str, int, int], ...] = ()
    overturned_items: Mapping[str, str] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return self.overturned / self.sampled if self.sampled else 0.0


def key_of(platform: str, day: str = "") -> str:
    """The journal's key of a day's results; without a day the prefix of all of a platform."""
    return f"{_PREFIX}{platform}/{day}"


def read_day(text: str | None) -> AuditDay:
    """A day as stored; ConfigError when it is damaged."""
    try:
        return AuditDay.model_validate_json(text) if text else AuditDay()
    except ValidationError:
        raise ConfigError("the stored audit cannot be read", remedy="restore fleet.db") from None


def audit_of(facts: Mapping[str, str]) -> AuditFigures:
    """The figures of the days in `facts`: values by the keys of `key_of`, of one platform."""
    found = {key.rpartition("/")[2]: read_day(text).results for key, text in sorted(facts.items())}
    told = {day: [one for one in ones if one.verdict != "unreached"] for day, ones in found.items()}
    latest: dict[str, AuditResult] = {one.item: one for ones in told.values() for one in ones}
    return AuditFigures(
        sampled=sum(map(len, told.values())),
        overturned=sum(map(_overturned, told.values())),
        unreached=sum(map(len, found.values())) - sum(map(len, told.values())),
        days=tuple((day, len(ones), _overturned(ones)) for day, ones in told.items() if ones),
        overturned_items={
            name: one.at for name, one in sorted(latest.items()) if one.verdict == "overturned"
        },
    )


def sample(names: Collection[str], seed: str) -> tuple[str, ...]:
    """The share that a run proves again; the same names and seed give the same sample, in any order."""
    ordered = sorted(set(names))
    size = min(len(ordered), max(FEWEST, min(MOST, len(ordered) // SHARE)))
    return tuple(random.Random(seed).sample(ordered, size))  # a sample, not a secret


def _overturned(results: Iterable[AuditResult]) -> int:
    return sum(one.verdict == "overturned" for one in results)
