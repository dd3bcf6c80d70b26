"""Which entries of the log describe the same defect. Pure: any order of entries gives the same clusters.

Two entries belong together when surface and normalised repro agree, or surface and title where there is
no repro: when their own computed fingerprint is the same. An `fp=` in a header is a second key, but only
from a trusted sender; a stranger's is ignored, so no one can join, rename or raise another's item.

An entry of ours with `was=` names its defect after what was observed (fingerprint version 2): then `fp=`
alone is its key, since one repro can show two defects. Its former name joins it with older entries, and only
the first of the newer entries with that name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from fleet.findings.fingerprint import fingerprint
from fleet.findings.outage import is_outage
from fleet.findings.reader import ParsedEntry, read
from fleet.findings.recurrence import is_fixed


class LoggedText(Protocol):
    """One entry of the mirror; `timestamp` in Unix seconds."""

    @property
    def epoch(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def sender(self) -> str: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ReadReport:
    """One entry, read and judged: `trusted` by its sender's address, `keys` say what it is about."""

    epoch: int
    index: int
    at: int
    sender: str
    trusted: bool
    entry: ParsedEntry
    keys: tuple[str, ...]

    @property
    def run(self) -> str:
        """The unit of recurrence: a run, or this entry if it names no run."""
        return self.entry.run or f"#{self.epoch}.{self.index}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Reports of one defect in log order. `resolved_at` (Unix seconds) is set when they came after a fix."""

    fingerprint: str
    keys: frozenset[str]
    reports: tuple[ReadReport, ...]
    resolved_at: int = 0


def read_log(entries: Iterable[LoggedText], trusted: frozenset[str]) -> list[ReadReport]:
    """Every entry as a report, in log order, ours of `sev=meta` included; nothing is omitted."""
    ours = frozenset(address.lower() for address in trusted)
    reports = [_report(entry, ours) for entry in entries]
    reports.sort(key=lambda report: (report.epoch, report.index))
    return reports


def _report(logged: LoggedText, ours: frozenset[str]) -> ReadReport:
    entry, sender = read(logged.text), logged.sender.lower()
    trusted = sender in ours
    own = fingerprint(entry.surface, entry.repro, entry.title)
    if not (trusted and entry.fp):
        keys: tuple[str, ...] = (own,)
    elif entry.was or is_outage(entry) or is_fixed(entry) or entry.repro_state == "evidence":
        # the observation is the key; each outage is its own item; a missing repro is not a key
        keys = (entry.fp,)
    else:
        keys = (entry.fp, own)
    return ReadReport(logged.epoch, logged.index, logged.timestamp, sender, trusted, entry, keys)


def is_summary(report: ReadReport) -> bool:
    """Triage's own summary. A stranger's `sev=meta` entry gets no special treatment."""
    return report.trusted and report.entry.severity == "meta"


def cluster(reports: Sequence[ReadReport]) -> list[Cluster]:
    """Clusters in order of first sight; triage's own summaries belong to none."""
    ordered = sorted((r for r in reports if not is_summary(r)), key=lambda r: (r.epoch, r.index))
    older = {key for one in ordered if not (one.trusted and one.entry.was) for key in one.keys}
    roots = _join([report.keys for report in ordered] + list(_renamed(ordered, older)))
    members: dict[str, list[ReadReport]] = {}
    for report in ordered:
        members.setdefault(_root(roots, report.keys[0]), []).append(report)
    return [_cluster(reports) for reports in members.values()]


def _renamed(ordered: Sequence[ReadReport], older: Collection[str]) -> Iterator[tuple[str, str]]:
    """Names of older entries, mapped to the current name of the first newer entry with that name."""
    joined: set[str] = set()
    for report in ordered:
        was = report.entry.was
        if report.trusted and was in older and was not in joined:
            joined.add(was)
            yield was, report.keys[0]


def _cluster(reports: list[ReadReport]) -> Cluster:
    lead = next((report for report in reports if report.trusted), reports[0])
    keys = frozenset(key for report in reports if report.trusted or report is lead for key in report.keys)
    return Cluster(lead.keys[0], keys, tuple(reports))


def _join(groups: Iterable[tuple[str, ...]]) -> dict[str, str]:
    """Union-find over keys: every key of a group ends under one root."""
    roots: dict[str, str] = {}
    for keys in groups:
        first = _root(roots, keys[0])
        for key in keys[1:]:
            other = _root(roots, key)
            if other != first:
                roots[other] = first
    return roots


def _root(roots: dict[str, str], key: str) -> str:
    while (parent := roots.get(key, key)) != key:
        roots[key] = roots.get(parent, parent)  # path halving: chains stay short for any log
        key = parent
    return key
