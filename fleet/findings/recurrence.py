"""How often an item was seen, since when its surface is clean, and since when it does not answer. Pure.

What the chain holds of an item stays one entry: a sighting again moves only these figures, in the journal.
When clean re-runs of a reached surface show that the defect is gone, one record on the log says so
(records.py), under the fingerprint of the item; a later entry under it is a regression.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleet.errors import ConfigError
from fleet.findings.reader import ParsedEntry

FIXED = "verified-fixed"
"""Begins the title of a resolve record."""
DAYS = 60
"""The latest days on which an item was seen that are kept."""
RECENT = 8
"""The latest runs that are remembered as counted: several may see one item at the same time."""
_PREFIX = "item."


class Recurrence(BaseModel):
    """Sightings of one item by runs and days (UTC dates); `clean_*` is empty while it is not known clean.

    Only what is new raises `runs`, and with it the item's place: otherwise the fleet's own schedule would
    lift what is asked every hour above what is grave and was just seen.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    runs: Annotated[int, Field(ge=0)] = 0
    """Runs that reported it: the first, the first of each further persona, the first since it was clean."""
    again: Annotated[int, Field(ge=0)] = 0
    """All other runs that saw it: they confirmed it again."""
    by: tuple[str, ...] = ()
    """The personas that reported it."""
    days: tuple[str, ...] = ()
    last: str = ""
    run: str = ""
    """The run that saw it last."""
    recent: tuple[str, ...] = ()
    """The latest runs that saw it: each is counted once."""
    clean_at: str = ""
    clean_run: str = ""
    clean_why: str = ""
    """Why what it still shows is not a defect; empty when it did not show."""
    looked: str = ""
    """When it was last run again, whatever came of it."""
    unreached_since: str = ""
    """The first of the latest looks that got no answer which could tell; "" after one that did."""
    opened: str = ""
    """The run that saw it first, or first again since it was clean: the one whose report is on the log."""
    why: str = ""
    """Why the last re-run could not tell; empty when it could."""
    cleaned_at: str = ""
    """When it was last clean before it was seen again: a fix that the log may have no record of."""
    cleaned_run: str = ""

    def shown(self, at: str, run: str, by: str = "") -> Recurrence:
        """Seen (again) by a run of the persona `by`, or of none that asked by itself: no longer clean."""
        if run in (self.run, *self.recent):
            return self
        days = tuple(sorted({*self.days, at[:10]}))[-DAYS:]
        begins = bool(self.clean_at) or not self.runs
        new = begins or (by != "" and by not in self.by)
        opened = run if begins else self.opened
        return Recurrence(
            runs=self.runs + new,
            again=self.again + (not new),
            by=tuple(sorted({*self.by, by} - {""})),
            days=days,
            last=at,
            run=run,
            recent=(*self.recent, run)[-RECENT:],
            looked=at,
            opened=opened,
            cleaned_at=self.clean_at or self.cleaned_at,
            cleaned_run=self.clean_run or self.cleaned_run,
        )

    def clean(self, at: str, run: str, why: str = "") -> Recurrence:
        """Run again often enough, with answers, and not seen; or seen, and no defect: `why`."""
        found = {"clean_at": at, "clean_run": run, "clean_why": why, "looked": at}
        found |= {"unreached_since": "", "why": ""}
        return self.model_copy(update=found)

    def unreached(self, at: str, why: str = "") -> Recurrence:
        """Run again without an answer that could tell, for `why`: neither seen nor clean."""
        since = self.unreached_since or at
        return self.model_copy(update={"looked": at, "unreached_since": since, "why": why})


def key_of(platform: str, fingerprint: str = "") -> str:
    """The journal's key of an item's figures; without a fingerprint the prefix of all of a platform."""
    return f"{_PREFIX}{platform}/{fingerprint}"


def read_recurrence(text: str | None) -> Recurrence:
    """Figures as stored; ConfigError when they are damaged."""
    try:
        return Recurrence.model_validate_json(text) if text else Recurrence()
    except ValidationError:
        raise ConfigError("the stored figures of an item cannot be read", remedy="restore fleet.db") from None


def is_fixed(entry: ParsedEntry) -> bool:
    """Whether an entry resolves the item of its fingerprint, if its sender is trusted."""
    return bool(entry.fp) and entry.title.startswith(f"{FIXED}: ")
