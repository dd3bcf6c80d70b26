"""What the log says of one item, bounded: of many reports some are kept, of all of them their runs."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain

from fleet.severity import weight
from fleet.triage.items.cluster import Cluster, ReadReport
from fleet.triage.items.worklist import ProofState

ECHOES = 16
"""Strangers' reports kept of one item: the first ones."""
REPORTS = 32
"""Reports of ours kept of one item."""
OLDEST = 8
"""How many of these are the first ones; the others are the latest."""
TEXTS = 3
"""The latest reports of an item that keep their text, besides the `leads`."""

FEW = 32
"""Hashes of a `RunHashes` that are kept as a set."""


class RunHashes:
    """A set of 64-bit numbers that takes eight bytes for each, where a Python set takes about sixty."""

    __slots__ = ("_new", "_old")

    def __init__(self) -> None:
        self._new: set[int] = set()
        self._old = array("q")

    def add(self, one: int) -> None:
        old, new = self._old, self._new
        at = bisect_left(old, one)
        if at == len(old) or old[at] != one:
            new.add(one)
            if len(new) > FEW and 8 * len(new) > len(old):
                self._old = array("q", sorted((*old, *new)))
                new.clear()

    def __iter__(self) -> Iterator[int]:
        return chain(self._old, self._new)

    def __len__(self) -> int:
        return len(self._old) + len(self._new)


class ItemReports:
    """What the log says of one item. `names` are its fingerprints by trusted senders, the first is its own.

    `reports` are ours, `theirs` are strangers' (the first `ECHOES` of `others`), all in log order.
    """

    __slots__ = ("keys", "leads", "names", "others", "reports", "runs", "said", "theirs")

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.names: list[str] = []
        self.reports: list[ReadReport] = []
        self.theirs: list[ReadReport] = []
        self.leads: dict[ProofState, ReadReport] = {}
        """The gravest report of each proof, the first of these; of strangers' the first."""
        self.others = 0
        self.said: dict[tuple[ProofState, str], int] = {}
        """How many of `reports` say which severity, by their proof."""
        self.runs = RunHashes()
        """Hashes of sender and run of all reports of ours."""

    @property
    def fingerprint(self) -> str:
        return (self.names or self.keys)[0]

    @property
    def first(self) -> ReadReport:
        """The report that opened it: a stranger does not predate us."""
        return (self.reports or self.theirs)[0]

    def cluster(self) -> Cluster:
        """The item as a value; strangers' reports among ours in log order."""
        reports = self.reports
        if self.theirs:
            reports = sorted((*reports, *self.theirs), key=lambda one: one.place)
        names = frozenset(self.names or self.keys[:1])
        return Cluster(self.fingerprint, names, tuple(reports), runs=len(self.runs))

    def put(self, report: ReadReport) -> None:
        """One more report of ours, later than all others; bounds what is kept."""
        reports, leads = self.reports, self.leads
        self.runs.add(hash((report.sender, report.run)))
        said = report.proof, report.severity
        self.said[said] = self.said.get(said, 0) + 1
        before = leads.setdefault(report.proof, report)
        if weight(report.severity) > weight(before.severity):
            leads[report.proof] = report
            if before not in reports[1 - TEXTS :]:
                before.text, before.parsed = "", None
        reports.append(report)
        if len(reports) > TEXTS and leads[(old := reports[-TEXTS - 1]).proof] is not old:
            old.text, old.parsed = "", None  # only what is listed keeps its text
        if len(reports) > REPORTS:
            at = OLDEST
            while leads[(gone := reports[at]).proof] is gone:
                at += 1
            del reports[at]
            self.said[gone.proof, gone.severity] -= 1

    def put_theirs(self, report: ReadReport) -> None:
        """One more report of a stranger; the last one kept is always the latest."""
        self.others += 1
        if len(self.theirs) == ECHOES:
            self.theirs.pop()
        self.theirs.append(report)

    def join(self, other: ItemReports) -> None:
        """Takes over another item that turned out to be this one."""
        if other.reports and (not self.reports or other.first.place < self.first.place):
            self.names = [*other.names, *self.names]
        else:
            self.names += other.names
        self.names = list(dict.fromkeys(self.names))
        self.keys += other.keys
        for run in other.runs:
            self.runs.add(run)
        self.others += other.others
        reports = sorted((*self.reports, *other.reports), key=lambda one: one.place)
        self.reports, self.leads, self.said = [], {}, {}
        for report in reports:
            self.put(report)
        theirs = sorted((*self.theirs, *other.theirs), key=lambda one: one.place)
        self.theirs = theirs if len(theirs) <= ECHOES else [*theirs[: ECHOES - 1], theirs[-1]]
