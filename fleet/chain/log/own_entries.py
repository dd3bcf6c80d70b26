"""The fleet's own entries on the log by fingerprint: what it has filed, also when its journal is lost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from fleet.chain.node.codec import Entry
from fleet.chain.ports import FeedbackPort
from fleet.findings.reader import read
from fleet.findings.records import read_record

PAGE = 200
OVERLAP = 32
"""Entries that are read again before the new ones; one alone may stand in its place by chance."""
RESOLVING = ("fixed", "verified-fixed")
"""Kinds of records that end what was reported before them; other records are not about the finding."""


@dataclass(frozen=True, slots=True)
class OwnEntry:
    """`resolves`: it ends what was reported before it, so a finding after it is news again.

    `at` is its time on the log, Unix seconds.
    """

    index: int
    resolves: bool
    at: int = 0


@dataclass(slots=True)
class OwnEntries:
    """Reads the log once, then only its new entries; a found entry is read again before it counts."""

    senders: frozenset[str]
    """Addresses of the fleet, lower case."""
    _upto: int = 0
    _tail: tuple[Entry, ...] = ()
    """The last entries that were read: one that differs now was replaced by a reorganisation."""
    _places: dict[str, int] = field(default_factory=dict)

    async def newest(self, log: FeedbackPort, names: Collection[str]) -> OwnEntry | None:
        """The newest entry of the fleet with one of these fingerprints, or None."""
        for _ in range(2):  # a second time from the start, when an entry has moved or the log was cleared
            await self._read_on(log)
            found = max((self._places[name] for name in names if name in self._places), default=None)
            if found is None:
                return None
            if entry := next(
                (one for one in await log.range(found, 1) if set(names) & set(self._names(one))), None
            ):
                resolves = read_record(read(entry.text)) is not None
                return OwnEntry(found, resolves=resolves, at=entry.timestamp)
            self._forget()
        return None

    async def _read_on(self, log: FeedbackPort) -> None:
        if self._tail and tuple(await log.range(self._upto - len(self._tail), len(self._tail))) != self._tail:
            self._forget()
        while entries := await log.range(self._upto, PAGE):
            for index, entry in enumerate(entries, self._upto):
                for name in self._names(entry):
                    self._places[name] = index
            self._upto += len(entries)
            self._tail = (*self._tail, *entries)[-OVERLAP:]

    def _forget(self) -> None:
        self._upto, self._tail, self._places = 0, (), {}

    def _names(self, entry: Entry) -> tuple[str, ...]:
        return names_of(entry.text) if entry.sender.lower() in self.senders else ()


def names_of(text: str) -> tuple[str, ...]:
    """The fingerprints, the former ones too, of an entry that reports or resolves a finding, else ()."""
    parsed = read(text)
    record = read_record(parsed)
    ours = parsed.fp and (record is None or record.kind in RESOLVING)
    return (parsed.fp, *parsed.former) if ours else ()
