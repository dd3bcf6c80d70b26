"""The log of one epoch, folded entry by entry: what is known of each item, and the records about it.

`add` takes what is new, in the order of the log; how it is cut into pieces changes nothing. Memory is
bounded: of each item a few reports keep their text, of strangers a number of entries is read (`PER_SENDER` of
one, `STRANGERS_READ` of all, `STRANGERS_ITEMS` items), the rest is counted. What is ours is always read.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from sys import intern

from fleet.errors import ChainError
from fleet.findings import closing
from fleet.findings.fingerprint import fingerprint
from fleet.findings.outage import WORD, is_over
from fleet.findings.reader import ReproState, former_of, read, skim, tail_of
from fleet.findings.records import SOURCE, ItemRecord, read_record
from fleet.findings.recurrence import FIXED
from fleet.store.rows import MirroredEntry, RawEntry
from fleet.triage.items.cluster import ReadReport, keys_of, proof_of
from fleet.triage.items.reports import ItemReports

PER_SENDER = 100
"""Entries read of one stranger in an epoch."""
STRANGERS_READ = 20_000
"""Entries read of all strangers in an epoch."""
STRANGERS_ITEMS = 10_000
"""Items that only strangers report."""
RECORDS = 100
"""Records kept of one item: the latest ones."""
TAILS = 50_000
"""Distinct texts below a header that are remembered, so that a repetition costs no reading."""
"""Source of triage's own entries: records and summaries, always read in full."""

_PLAIN = frozenset("abcdefghijklmnoqrstuwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789[({</#@$")
"""How a title begins that is not a record's, whatever cleaning takes away behind it: neither `p` nor `v`."""
_RECORDS = (f"{WORD}: ", f"{FIXED}: ", closing.TITLE)

_Tail = tuple[str, ReproState, bool]


@contextmanager
def no_collection() -> Iterator[None]:
    """What is built here is kept: looking for garbage again and again would cost a third of the time."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


class TriageIndex:
    """An incremental fold over one epoch. Trust is the sender's address, never what a text claims.

    `next_index` and `digest` (the mirror's, of the last entry) say how far it read; `last_at` is the time of
    the last entry. `unread` counts strangers' entries beyond the bounds,
    `summary` is the fingerprint of triage's last summary (None: there is none).
    """

    def __init__(self, trusted: frozenset[str]) -> None:
        self.trusted = frozenset(address.lower() for address in trusted)
        self.epoch, self.next_index, self.digest = -1, 0, ""
        self.entries = self.unread = self.last_at = 0
        self.summary: str | None = None
        self.records: dict[str, list[ItemRecord]] = {}
        self.recorded = 0
        """Records so far: as many, and they are the same."""
        self.ends: dict[str, int] = {}
        """Outages that the log says are over, and when (Unix seconds)."""
        self._items: dict[str, ItemReports] = {}
        self._changed: dict[ItemReports, None] = {}
        self._former: dict[str, str] = {}
        self._older: set[str] = set()
        self._tails: dict[tuple[str, str], _Tail] = {}
        self._read: dict[str, int] = {}
        self._theirs_read = self._their_items = 0

    def add(self, entries: Iterable[MirroredEntry]) -> None:
        """Folds in entries that follow those before; ChainError for one that does not."""
        ordered = sorted(entries, key=lambda one: (one.epoch, one.index))
        for one in ordered:
            self._add(one.epoch, one.index, one.sender, one.timestamp, one.text)

    def add_rows(self, epoch: int, rows: Iterable[RawEntry]) -> None:
        """The same from rows of the mirror in order: a million of them."""
        with no_collection():
            for index, sender, at, text in rows:
                self._add(epoch, index, sender, at, text)

    def _add(self, epoch: int, index: int, sender: str, at: int, text: str | bytes) -> None:
        if index < self.next_index and epoch <= self.epoch:
            raise ChainError(f"entry {index} of the log was folded already", remedy="fold anew")
        self.epoch, self.next_index = epoch, index + 1
        self.entries += 1
        self.last_at = at
        if sender not in self.trusted:
            sender = sender.lower()
        ours = sender in self.trusted
        if not ours and (self._theirs_read >= STRANGERS_READ or self._read.get(sender, 0) >= PER_SENDER):
            self.unread += 1
            return
        said, sender = (
            text if isinstance(text, str) else text.decode("utf-8", "surrogatepass"),
            intern(sender),
        )
        if ours:
            self._ours(epoch, index, sender, at, said)
        else:
            self._theirs(epoch, index, sender, at, said)

    def items(self) -> list[ItemReports]:
        """Every item, in order of first sight; a stranger is first only in what is not ours."""
        return sorted(dict.fromkeys(self._items.values()), key=lambda one: one.first.place)

    def item(self, name: str) -> ItemReports | None:
        """The item with this name."""
        return self._items.get(name)

    def changed(self) -> Iterator[ItemReports]:
        """The items that changed since the last call; some may be joined to others meanwhile."""
        changed, self._changed = self._changed, {}
        return iter(changed)

    def _ours(self, epoch: int, index: int, sender: str, at: int, text: str) -> None:
        fields = skim(text)
        if fields is None or fields[0] == SOURCE or fields[1] == "meta":
            self._read_ours(epoch, index, sender, at, text)
            return
        source, severity, surface, run, fp, was, hits, tries, ev, below = fields
        said, _, last = below.rpartition("\n")
        if last[:6] != "repro:" or said[:1] not in _PLAIN:
            last = below  # a title that may be a record's, or only white space
        known = self._tails.get((surface, last)) or self._remember(surface, last, below)
        own, state, plain = known
        if not plain and last is not below:
            own, state, plain = self._tails.get((surface, below)) or self._remember(surface, below, below)
        rate = (int(hits), int(tries)) if hits else None
        if not plain or (rate and rate[0] > rate[1]):
            self._read_ours(epoch, index, sender, at, text)
            return
        proof = proof_of(True, state, True, rate, ev)
        run = intern(run) if run else f"#{epoch}.{index}"
        name = intern(severity)
        report = ReadReport(epoch, index, at, sender, True, run, proof, name, text, intern(source))
        former = former_of(said.partition("\n")[2]) if was else ()
        self._file(report, (fp,) if was or state == "evidence" else (fp, own), was, former)

    def _remember(self, surface: str, last: str, below: str) -> _Tail:
        """Reads what stands below a header; of a repro with calls the last line alone is what is kept.

        The flag is False where the title has to be read too, or where only `read` understands the entry.
        """
        if len(self._tails) >= TAILS:
            self._tails.clear()
        known: _Tail = ("", "none", False)
        said = tail_of(below)
        if said is not None and (last is not below or not said[0].startswith(_RECORDS)):
            title, calls, state = said
            if last is below or state in ("calls", "evidence"):
                known = (fingerprint(surface, calls, title), state, True)
        self._tails[surface, last] = known
        return known

    def _read_ours(self, epoch: int, index: int, sender: str, at: int, text: str) -> None:
        """Any entry of ours, in full; triage's own records and summaries are reports of nothing."""
        entry = read(text)
        if entry.severity == "meta":
            self.summary = entry.fp
        elif closing.is_closing(entry) or closing.is_commitment(entry):
            pass  # it is in the run's own report, or comes with its own entry, and no defect of the platform
        elif is_over(entry):
            self.ends[entry.fp] = max(0, at)
            self._touch(entry.fp)
        elif (record := read_record(entry)) is not None:
            kept = self.records.setdefault(record.item, [])
            kept.append(record.placed(epoch, index))
            self.recorded += 1
            if len(kept) > RECORDS:
                del kept[0]
            self._touch(record.item)
        else:
            proof = proof_of(True, entry.repro_state, entry.grammar == "canonical", entry.rate, entry.ev)
            run = entry.run or f"#{epoch}.{index}"
            said = entry.severity, text, entry.source
            report = ReadReport(epoch, index, at, sender, True, run, proof, *said)
            self._file(report, keys_of(entry, True), entry.was, entry.former)

    def _touch(self, name: str) -> None:
        if (item := self._items.get(name)) is not None:
            self._changed[item] = None

    def _theirs(self, epoch: int, index: int, sender: str, at: int, text: str) -> None:
        self._theirs_read += 1
        self._read[sender] = self._read.get(sender, 0) + 1
        entry = read(text)
        (key,) = keys_of(entry, False)
        item = self._items.get(key)
        if item is None:
            if self._their_items >= STRANGERS_ITEMS:
                self.unread += 1
                return
            self._their_items += 1
            item = self._items[key] = ItemReports()
            item.keys.append(key)
        run = entry.run or f"#{epoch}.{index}"
        item.put_theirs(
            ReadReport(epoch, index, at, sender, False, run, "untrusted", entry.severity, text, "", entry)
        )
        self._changed[item] = None
        if key not in self._older:
            self._age(key)

    def _file(self, report: ReadReport, keys: tuple[str, ...], was: str, former: tuple[str, ...]) -> None:
        item, older = self._items.get(keys[0]), (was, *former) if was else ()
        known = bool(older) and all(name in self._former for name in older)
        if item is not None and known and len(keys) == 1 and keys[0] in item.names:
            item.put(report)  # one more report by the same name: nothing to join
            self._changed[item] = None
            return
        if item is None:
            item = ItemReports()
        for key in keys:
            other = self._items.get(key)
            if other is None:
                self._items[key] = item
                item.keys.append(key)
            elif other is not item:
                item = self._join(item, other) if item.keys else other
            if key not in item.names:
                item.names.append(key)
        item.put(report)
        self._changed[item] = None
        for name in older:
            if name not in self._former:
                self._former[name] = keys[0]
                if name in self._older:
                    self._join(self._items[name], self._items[keys[0]])
        for key in keys:
            if key not in self._older:
                self._age(key)

    def _age(self, key: str) -> None:
        """A name of an entry: the first newer entry with this former name is about the same."""
        self._older.add(key)
        if (name := self._former.get(key)) is not None:
            self._join(self._items[key], self._items[name])

    def _join(self, one: ItemReports, other: ItemReports) -> ItemReports:
        """Both become the one that was first; what kept their names points to it."""
        if one is other:
            return one
        if len(one.reports) < len(other.reports):
            one, other = other, one
        one.join(other)
        for key in other.keys:
            self._items[key] = one
        other.keys, other.reports, other.theirs = [], [], []
        self._changed[one] = None
        self._changed[other] = None
        return one
