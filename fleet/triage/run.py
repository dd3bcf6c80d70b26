"""One pass of triage: mirror the log, cluster, hide what is resolved, rank, write the worklist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from anyio import to_thread

from fleet.clock import Clock, iso
from fleet.findings.outage import OutageEnd
from fleet.findings.reader import read
from fleet.findings.recurrence import Recurrence
from fleet.store.rows import MirroredEntry
from fleet.triage import fixes, meta, outages
from fleet.triage.cluster import cluster, read_log
from fleet.triage.mirror import LogMirror, LogReader, follow
from fleet.triage.rank import rank
from fleet.triage.resolve import Resolution, apply, read_resolutions, write_resolutions
from fleet.triage.unproven import UnprovenCandidate
from fleet.triage.worklist import WorklistItem, digest, save

RESOLUTIONS = "triage.resolutions"
DIGEST = "triage.digest"
CHANGED_AT = "triage.changed_at"
LEFT = "triage.unproven"
FILES = ("worklist.json", "worklist.md")


class TriageJournal(LogMirror, Protocol):
    """The part of the journal that triage needs."""

    async def get(self, key: str, /) -> str | None: ...
    async def put(self, key: str, value: str, /) -> None: ...


@dataclass(frozen=True, slots=True)
class TriageResult:
    """The list now, and whether it `changed` since the last pass.

    `meta_text` is to be posted as it is, once; None when no summary is due.
    """

    items: tuple[WorklistItem, ...]
    changed: bool
    meta_text: str | None
    epoch: int
    entries: int
    over: tuple[str, ...] = ()
    """Ends of outages and resolve records that the log lacks; to be posted unchanged, once each."""


async def triage(
    log: LogReader,
    journal: TriageJournal,
    trusted: frozenset[str],
    weights: Mapping[str, float],
    state_dir: Path,
    clock: Clock,
    ended: Sequence[OutageEnd] = (),
    left: Sequence[UnprovenCandidate] = (),
    seen: Mapping[str, Recurrence] = MappingProxyType({}),
) -> TriageResult:
    """One pass; a repeated pass without news changes nothing and reports that.

    Trust is the sender's address in `trusted`, never the source that a text claims. The list covers the
    current epoch of the log; older ones stay in the mirror. `ended` are ended outages, `left` grave findings
    that are not proven, `seen` the figures of items by fingerprint: these come from outside the log.
    """
    followed = await follow(log, journal)
    entries = await journal.entries(followed.epoch)
    resolutions = read_resolutions(await journal.get(RESOLUTIONS))
    items, summary, fixed = await to_thread.run_sync(
        decide, entries, trusted, weights, resolutions, ended, seen
    )
    changed = digest(items) != await journal.get(DIGEST)
    mark = " ".join(f"{one.fingerprint}@{one.run}" for one in left)
    moved = mark != (await journal.get(LEFT) or "")
    if changed or moved or not all((state_dir / name).is_file() for name in FILES):
        at = iso(clock.now()) if changed else await journal.get(CHANGED_AT) or ""
        await to_thread.run_sync(save, state_dir, items, at, left)
        await journal.put(LEFT, mark)
        if changed:
            await journal.put(CHANGED_AT, at)
            await journal.put(DIGEST, digest(items))
    over = await to_thread.run_sync(outages.due, read_log(entries, trusted), ended)
    return TriageResult(items, changed, summary, followed.epoch, len(entries), (*over, *fixed))


def decide(
    entries: Sequence[MirroredEntry],
    trusted: frozenset[str],
    weights: Mapping[str, float],
    resolutions: Sequence[Resolution] = (),
    ended: Sequence[OutageEnd] = (),
    seen: Mapping[str, Recurrence] = MappingProxyType({}),
) -> tuple[tuple[WorklistItem, ...], str | None, tuple[str, ...]]:
    """The worklist, the summary that is due, and the resolve records that are; ConfigError for a bad weight.

    An item whose record is due is off the list already.
    """
    reports, fixed = fixes.recorded(read_log(entries, trusted))
    open_ = apply(cluster(outages.still(reports, ended)), [*resolutions, *fixed])
    texts = fixes.due(open_, seen)
    gone = {read(text).fp for text in texts}
    left = [one for one in open_ if one.fingerprint not in gone]
    items = rank(left, weights, fixes.counted(left, seen))
    return items, meta.summary(items) if meta.due(items, reports) else None, texts


async def resolve(journal: TriageJournal, key: str, clock: Clock, *, note: str = "") -> Resolution:
    """Records that the cluster with this fingerprint is fixed as of now, in this epoch of the log."""
    epoch, _ = await journal.mirror_cursor()
    made = Resolution(key=key, at=int(clock.now().timestamp()), epoch=epoch, note=note)
    known = read_resolutions(await journal.get(RESOLUTIONS))
    await journal.put(RESOLUTIONS, write_resolutions([*known, made]))
    return made
