"""How often an item was seen, and since when its surface is clean; and its resolve record on the log. Pure.

What the chain holds of an item stays one entry: a sighting again moves only these figures, in the journal.
When clean re-runs of a reached surface show that the defect is gone, one record on the log says so, under the
fingerprint of the item; a later entry under it is a regression.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleet.errors import ConfigError
from fleet.findings.reader import ParsedEntry

FIXED = "verified-fixed"
"""Begins the title of a resolve record."""
LOOKS = 3
"""Clean re-runs that show that an item is fixed."""
DAYS = 60
"""The latest days on which an item was seen that are kept."""
_PREFIX = "item."


class Recurrence(BaseModel):
    """Sightings of one item by runs and days (UTC dates); `clean_*` is empty while it is not known clean."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    runs: Annotated[int, Field(ge=0)] = 0
    days: tuple[str, ...] = ()
    last: str = ""
    run: str = ""
    """The run that saw it last: counted once."""
    clean_at: str = ""
    clean_run: str = ""
    looked: str = ""
    """When it was last run again, whatever came of it."""

    def shown(self, at: str, run: str) -> Recurrence:
        """Seen (again) by a run: no longer clean."""
        if run == self.run:
            return self
        days = tuple(sorted({*self.days, at[:10]}))[-DAYS:]
        return Recurrence(runs=self.runs + 1, days=days, last=at, run=run, looked=at)

    def clean(self, at: str, run: str) -> Recurrence:
        """Run again often enough, with answers, and not seen."""
        return self.model_copy(update={"clean_at": at, "clean_run": run, "looked": at})

    def unreached(self, at: str) -> Recurrence:
        """Run again without an answer that could tell: neither seen nor clean."""
        return self.model_copy(update={"looked": at})


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


def fixed_title(title: str, one: Recurrence) -> str:
    """The title of a resolve record."""
    return f"{FIXED}: {LOOKS} clean re-runs in run {one.clean_run}, {one.clean_at}: {title}"
