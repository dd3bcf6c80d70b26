"""Which entries of the log describe the same defect: the keys of an entry, and what a cluster is. Pure.

Two entries belong together when surface and normalised repro agree, or surface and title where there is
no repro: when their own computed fingerprint is the same. An `fp=` in a header is a second key, but only
from a trusted sender; a stranger's is ignored, so no one can join, rename or raise another's item.

An entry of ours with `was=` names its defect after what was observed (fingerprint version 2): then `fp=`
alone is its key, since one repro can show two defects. Its former name joins it with older entries, and only
the first of the newer entries with that name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fleet.findings.fingerprint import fingerprint
from fleet.findings.outage import is_outage
from fleet.findings.proof import is_confirmed
from fleet.findings.reader import ParsedEntry, ReproState, read
from fleet.findings.recurrence import is_fixed
from fleet.triage.items.worklist import ProofState

TIERS: tuple[ProofState, ...] = ("confirmed", "flaky", "unverified", "needs-repro", "untrusted")
"""Best first: proof stands before weight."""


@dataclass(slots=True, order=False)
class ReadReport:
    """One entry, judged: `trusted` by its sender's address. `run` is the unit of recurrence.

    `text` is empty where the entry was read but is not kept: of many reports of an item only some are.
    """

    epoch: int
    index: int
    at: int
    sender: str
    trusted: bool
    run: str
    proof: ProofState
    severity: str
    text: str
    source: str = ""
    parsed: ParsedEntry | None = field(default=None, repr=False, compare=False)

    @property
    def place(self) -> tuple[int, int]:
        """Place in the log, over its epochs."""
        return self.epoch, self.index

    @property
    def entry(self) -> ParsedEntry:
        """The entry in full; of one whose text is not kept, what is."""
        if self.parsed is None:
            kept = bool(self.text)
            self.parsed = read(self.text) if kept else ParsedEntry("free", "", run=self.run)
        return self.parsed


@dataclass(frozen=True, slots=True)
class Cluster:
    """Reports of one defect in log order. `keys` are its names; `runs` counts those of all reports of ours,
    kept or not.

    `resolved_at` (Unix seconds) is set when the reports came after a fix: then their own runs count.
    """

    fingerprint: str
    keys: frozenset[str]
    reports: tuple[ReadReport, ...]
    resolved_at: int = 0
    runs: int = 0


def proof_of(
    trusted: bool, repro: ReproState, canonical: bool, rate: tuple[int, int] | None, ev: str
) -> ProofState:
    """How well one report is proven. Only a trusted sender's canonical entry with a repro can be proven."""
    if not trusted:
        return "untrusted"
    if not (repro == "calls" or (repro == "evidence" and ev)):
        return "needs-repro"
    if not canonical or rate is None or rate[0] == 0:
        return "unverified"
    return "confirmed" if is_confirmed(*rate) else "flaky"


def keys_of(entry: ParsedEntry, trusted: bool) -> tuple[str, ...]:
    """What an entry is about: one name, or two that mean the same."""
    if not (trusted and entry.fp):
        return (fingerprint(entry.surface, entry.repro, entry.title),)
    if entry.was or is_outage(entry) or is_fixed(entry) or entry.repro_state == "evidence":
        # the observation is the key; each outage is its own item; a missing repro is not a key
        return (entry.fp,)
    return (entry.fp, fingerprint(entry.surface, entry.repro, entry.title))


def recurrence(reports: Iterable[ReadReport]) -> int:
    """Distinct runs of trusted senders; 1 for what only strangers report, regardless of their number."""
    return len({(report.sender, report.run) for report in reports if report.trusted}) or 1
