"""Naming of an outage in the journal, on the log and on the worklist. Pure.

An outage is one item. Its fingerprint covers the platform, the silent targets and the beginning, so the next
outage is another item. Its entries on the log (`platform-unreachable: …`, and for its end
`platform-unreachable: over: …` under the same `fp`) suffice for triage to show and to drop it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from fleet.errors import ConfigError
from fleet.findings.reader import FP, ParsedEntry
from fleet.findings.sighting import TITLE_CHARS
from fleet.text import line

WORD = "platform-unreachable"
"""Replaces the probe's id, and begins the title of its entries on the log."""
OVER = f"{WORD}: over"
NAMED = "Platform does not answer: outage of "
"""Begins what people read: the name of its kind, and what no other title of that kind goes on with."""
AGAIN = "; it answered again at "
"""Goes on with the time, in the title of an outage that was over when it could be posted."""
FACTS = "outage."
"""Prefix of the journal's keys of outages; a platform's name follows."""
SURFACE = "ux"
KEPT = 50
"""Number of ended outages that a platform's book keeps."""


class _OutageRecord(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OutageLook(_OutageRecord):
    """One look: `at` in seconds since the first, `how` it failed, "" if it was answered."""

    target: str
    what: str
    at: float
    how: str = ""
    said: str = ""


class Outage(_OutageRecord):
    """An outage that has not ended. `held`: it cannot be posted before the node is back."""

    fp: Annotated[str, StringConstraints(pattern=FP)]
    targets: tuple[str, ...]
    since: str
    run: str
    persona: str
    severity: str
    title: str
    held: bool = False
    looks: tuple[OutageLook, ...] = ()


class OutageEnd(_OutageRecord):
    """An ended outage, `seconds` long as observed."""

    fp: Annotated[str, StringConstraints(pattern=FP)]
    targets: tuple[str, ...]
    since: str
    until: str
    seconds: Annotated[float, Field(ge=0)]
    why: str = ""


class OutageBook(_OutageRecord):
    """The outages of one platform: at most one is open."""

    open: Outage | None = None
    ended: tuple[OutageEnd, ...] = ()

    def closed(self, end: OutageEnd, after: Outage | None = None) -> OutageBook:
        """The book with its open outage ended, and optionally another one begun."""
        return OutageBook(open=after, ended=(*self.ended, end)[-KEPT:])


def read_book(text: str | None) -> OutageBook:
    """A book as stored; ConfigError when it is damaged."""
    try:
        return OutageBook.model_validate_json(text) if text else OutageBook()
    except ValidationError:
        raise ConfigError("the stored outages cannot be read", remedy="restore fleet.db") from None


def fingerprint_of(platform: str, targets: Collection[str], since: str) -> str:
    """12 hex digits that name one outage."""
    text = "\0".join((SURFACE, WORD, platform, *sorted(targets), since))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def shown(title: str) -> str:
    """The title of an outage's entry as people read it; any other title as it is."""
    said = title.removeprefix(f"{WORD}: ")
    if said == title:
        return title
    said = re.sub(r" do(?:es)? not answer(?=[:,;])| over [\d.]+ s(?=,)|, since [^;]*", "", said)
    looks, ends, at = said.partition(AGAIN)
    if ends:  # rather than what else answered, for which there is no room
        said = f"{looks.partition(';')[0]}; back at {at}"
    return line(f"{NAMED}{said}", TITLE_CHARS)


def is_titled(title: str) -> bool:
    """Whether an item's title is an outage's, as its entry or as people read it."""
    return title.startswith((f"{WORD}: ", NAMED))


def is_outage(entry: ParsedEntry) -> bool:
    """Whether an entry reports an outage, if its sender is trusted."""
    return bool(entry.fp) and entry.title.startswith(f"{WORD}: ")


def is_over(entry: ParsedEntry) -> bool:
    """Whether an entry reports the end of its fingerprint's outage, if its sender is trusted."""
    return bool(entry.fp) and entry.title.startswith(f"{OVER}: ")


def over_title(end: OutageEnd) -> str:
    """The title of the entry that ends an outage."""
    targets = ", ".join(end.targets).replace(" and ", ", ")
    return f"{OVER}: {targets}, since {end.since} until {end.until}, {lasted(end.seconds)}; {end.why}"


def lasted(seconds: float) -> str:
    """`40 s`, `12 min`, `3 h 5 min`."""
    minutes = int(seconds // 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
