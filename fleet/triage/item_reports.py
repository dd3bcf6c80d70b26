"""What the log says of one item, bounded: of many reports some are kept, of all of them their runs."""

from __future__ import annotations

from fleet.findings.reader import Severity
from fleet.triage.cluster import Cluster, ReadReport
from fleet.triage.worklist import ProofState

ECHOES = 16
"""Strangers' reports kept of one item: the first ones."""
REPORTS = 32
"""Reports of ours kept of one item."""
OLDEST = 8
"""How many of these are the first ones; the others are the latest."""
TEXTS = 3
"""The latest reports of an item that keep their text, besides the first of each proof."""


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
        self.leads: list[ReadReport] = []
        self.others = 0
        self.said: dict[tuple[ProofState, Severity], int] = {}
        """How many of `reports` say which severity, by their proof."""
        self.runs: set[int] = set()
        """`seen_by` of all reports of ours: a number is a quarter of the words."""

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
        reports = self.reports
        self.runs.add(report.seen_by)
        said = report.proof, report.severity
        self.said[said] = self.said.get(said, 0) + 1
        for lead in self.leads:
            if lead.proof == report.proof:
                break
        else:
            self.leads.append(report)
        reports.append(report)
        if len(reports) > TEXTS and not self._leads(old := reports[-TEXTS - 1]):
            old.drop()
        if len(reports) > REPORTS:
            at = OLDEST
            while self._leads(reports[at]):
                at += 1
            gone = reports.pop(at)
            self.said[gone.proof, gone.severity] -= 1

    def _leads(self, report: ReadReport) -> bool:
        for lead in self.leads:  # noqa: SIM110 - twice as fast: it is asked for each entry of a log
            if lead is report:
                return True
        return False

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
        self.runs |= other.runs
        self.others += other.others
        reports = sorted((*self.reports, *other.reports), key=lambda one: one.place)
        self.reports, self.leads, self.said = [], [], {}
        for report in reports:
            self.put(report)
        theirs = sorted((*self.theirs, *other.theirs), key=lambda one: one.place)
        self.theirs = theirs if len(theirs) <= ECHOES else [*theirs[: ECHOES - 1], theirs[-1]]
