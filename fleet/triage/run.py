"""One pass of triage: mirror the log, fold what is new, judge what changed, write the worklist."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import anyio
from anyio import to_thread

from fleet.clock import iso, iso_seconds
from fleet.errors import ConfigError
from fleet.findings.instances import MOST, Instance
from fleet.findings.repro import parse_repro
from fleet.oracles.place import met_at
from fleet.store.rows import DecisionRow, EpochRow, ItemRow, MirroredEntry, RawEntry
from fleet.triage.items.decisions import named
from fleet.triage.items.fold import Decided, TriageFold
from fleet.triage.items.index import no_collection
from fleet.triage.items.pass_inputs import PassInputs
from fleet.triage.items.unproven import UnprovenCandidate, beside
from fleet.triage.items.worklist import ProposalLink, WorklistItem, digest
from fleet.triage.log.mirror import LogMirror, MirrorState, follow
from fleet.triage.log.pages import LogReader
from fleet.triage.outputs.document import NO_AUDIT, AuditRate, LogPosition, WorklistHeader
from fleet.triage.outputs.files import save
from fleet.triage.suggest import Suggester, suggested, with_links
from fleet.triggers.model import FactStore

RESOLUTIONS = "triage.resolutions"
"""Fixes that persons noted before there were decisions; read once."""
DIGEST = "triage.digest"
AS_OF = "triage.as_of"
LEFT = "triage.unproven"
FILES = ("worklist.json", "worklist.md")


class TriageJournal(LogMirror, FactStore, Protocol):
    """The part of the journal that triage needs."""

    async def mirror_digest(self, epoch: int, index: int, /) -> str: ...
    def mirror_chunks(self, epoch: int, index: int = 0, /) -> AsyncIterator[Sequence[RawEntry]]: ...
    async def epochs(self) -> list[EpochRow]: ...
    async def epoch_before(self, epoch: int, /) -> int | None: ...
    async def decisions(self, platform: str, /) -> list[DecisionRow]: ...
    async def add_decision(self, decision: DecisionRow, /) -> bool: ...
    async def put_items(self, platform: str, items: Sequence[ItemRow], /) -> None: ...


@dataclass(slots=True)
class TriageMemory:
    """What a resident process keeps between passes: one fold, of one epoch of one log."""

    fold: TriageFold | None = None
    turn: anyio.Lock = field(default_factory=anyio.Lock)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageTask:
    """What a pass is about: the log's `name`, the `platform` whose decisions count, the addresses `trusted`,
    the `folder` of the files; and what only this fleet knows, `known` (its decisions are the journal's)."""

    name: str
    platform: str
    trusted: frozenset[str]
    folder: Path
    known: PassInputs
    left: Sequence[UnprovenCandidate] = ()
    proving: Sequence[UnprovenCandidate] = ()
    audit: AuditRate = NO_AUDIT
    suggester: Suggester | None = None
    proposals: Mapping[str, ProposalLink] = field(default_factory=dict)
    places: Mapping[str, Sequence[Instance]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TriageResult:
    """The open items, best first, `closed` ones, and whether any of them `changed` since the last pass.

    `meta_text` and `over` are what the log lacks, to be posted as they are, once. `unread` counts strangers'
    entries beyond the bounds, `posted` the entries that the pass posted.
    """

    items: tuple[WorklistItem, ...]
    changed: bool
    meta_text: str | None
    epoch: int
    entries: int
    over: tuple[str, ...] = ()
    closed: tuple[WorklistItem, ...] = ()
    unread: int = 0
    posted: int = 0


def decide(entries: Iterable[MirroredEntry], trusted: frozenset[str], inputs: PassInputs) -> Decided:
    """The worklist of a log from cold: what a fold that followed it all along says too."""
    fold = TriageFold(trusted)
    fold.add(entries)
    return fold.decide(inputs)


async def triage(
    log: LogReader | None, journal: TriageJournal, task: TriageTask, memory: TriageMemory | None = None
) -> TriageResult:
    """One pass; a repeated pass without news changes nothing and reports that.

    Trust is the sender's address in `trusted`, never the source that a text claims. The list covers the
    current epoch of the log; older ones stay in the mirror. Without a `log` the mirror is taken as it is.
    """
    memory = memory or TriageMemory()
    async with memory.turn:
        followed = await (follow(log, journal, name=task.name) if log else mirrored(journal, task.name))
        fold = await folded(journal, task.trusted, followed, memory.fold)
        memory.fold = fold
        await migrate(journal, task.platform)
        inputs = replace(
            task.known,
            decisions=tuple(await journal.decisions(task.platform)),
            since=await _since(journal, followed.epoch),
        )
        decided = await to_thread.run_sync(fold.decide, inputs)
        if pairs := fold.similar():
            found = await suggested(pairs, task.suggester, journal, task.platform)
            decided = replace(decided, items=tuple(with_links(item, found) for item in decided.items))
        made = (_proposed(_with_places(item, task.places), task.proposals) for item in decided.items)
        decided = replace(decided, items=tuple(made))
        index = fold.index
    open_ = tuple(one for one in decided.items if one.rank)
    ends = iso_seconds(index.last_at) if index.entries else ""
    changed = await _keep(journal, task, decided, LogPosition(followed.epoch, index.entries, ends))
    return TriageResult(
        open_,
        changed,
        decided.summary,
        followed.epoch,
        index.entries,
        decided.records,
        decided.items[len(open_) :],
        decided.unread,
    )


def _with_places(item: WorklistItem, places: Mapping[str, Sequence[Instance]]) -> WorklistItem:
    """The item with the places where it was met after its entry was posted, by one of its names."""
    names = {item.fingerprint, *item.names} if places and item.trusted else ()
    met = [one for name in names for one in places.get(name, ())]
    if not met:
        return item
    calls = parse_repro(item.repro) if item.repro else ()
    here = met_at(calls[-1].tool, calls[-1].args) if calls else ""
    known = {one.where: one for one in item.also}
    for one in met:  # the entry has counted the first of them already
        if one.where != here and (one.where not in known or one.times > known[one.where].times):
            known[one.where] = one
    return replace(item, also=tuple(known.values())[:MOST])


def _proposed(item: WorklistItem, proposals: Mapping[str, ProposalLink]) -> WorklistItem:
    """The item with the proposal of a fix that is known by one of its names."""
    names = (item.fingerprint, *item.names) if proposals else ()
    found = next((proposals[name] for name in names if name in proposals), None)
    return replace(item, proposal=found) if found else item


async def mirrored(journal: TriageJournal, name: str) -> MirrorState:
    """Where the mirror of a log stands; ConfigError when it was never followed."""
    if (at := await journal.mirror_of(name)) is None:
        raise ConfigError("no entry of this log is mirrored yet", remedy="fleet run qa-triage")
    return MirrorState(at[0], at[1], 0, 0, digest=at[2])


async def earlier(journal: TriageJournal, task: TriageTask) -> tuple[WorklistItem, ...]:
    """Items of earlier epochs of the log, the latest epoch first, as they stood; none of them is ranked."""
    found: list[WorklistItem] = []
    now = await mirrored(journal, task.name)
    decisions = tuple(await journal.decisions(task.platform))
    for row in sorted(await journal.epochs(), key=lambda one: one.epoch, reverse=True):
        if row.log == task.name and row.epoch < now.epoch and row.entries:
            fold = await folded(journal, task.trusted, MirrorState(row.epoch, row.entries, 0, 0), None)
            items = fold.decide(replace(task.known, decisions=decisions)).items
            found += [replace(item, rank=0) for item in items]
    return tuple(found)


async def folded(
    journal: TriageJournal, trusted: frozenset[str], at: MirrorState, fold: TriageFold | None
) -> TriageFold:
    """The fold of the mirror up to now; begun anew when the epoch is another one or its past changed."""
    index = fold.index if fold is not None else None
    if (
        fold is None
        or index is None
        or index.epoch != at.epoch
        or index.trusted != trusted
        or index.next_index > at.next_index
        or await journal.mirror_digest(at.epoch, index.next_index - 1) != index.digest
    ):
        fold = TriageFold(trusted)
        index = fold.index
    with no_collection():
        async for rows in journal.mirror_chunks(at.epoch, index.next_index):
            await to_thread.run_sync(index.add_rows, at.epoch, rows)
    index.digest = await journal.mirror_digest(at.epoch, index.next_index - 1)
    return fold


async def _since(journal: TriageJournal, epoch: int) -> str:
    """When this epoch began, if another one of its log came before it."""
    if await journal.epoch_before(epoch) is None:
        return ""
    return next((row.since for row in await journal.epochs() if row.epoch == epoch), "")


async def _keep(
    journal: TriageJournal,
    task: TriageTask,
    decided: Decided,
    as_of: LogPosition,
) -> bool:
    """Write files and rows if they are another list; whether they are."""
    now = digest(decided.items)
    changed = now != await journal.get(DIGEST)
    left = beside(task.left, decided.items, as_of.entries)
    proving = beside(task.proving, decided.items, as_of.entries)
    mark = " ".join(f"{one.fingerprint}@{one.run} {one.why}" for one in (*left, *proving))
    # the audit with those of its overturned items that are dismissed now
    found = {*task.audit.overturned_items}
    dismissed = (one for one in decided.items if one.state == "dismissed") if found else ()
    names = (one.fingerprint for one in dismissed if found & {one.fingerprint, *one.names})
    audit = replace(task.audit, overturned_items=tuple(names))
    sampled = f"{audit.drawn} {audit.overturned} {' '.join(audit.overturned_items)}".rstrip()
    place = f"{as_of.epoch} {as_of.entries} {as_of.at} {sampled}"
    moved = mark != (await journal.get(LEFT) or "") or place != await journal.get(AS_OF)
    if changed or moved or not all((task.folder / name).is_file() for name in FILES):
        header = WorklistHeader(
            platform=task.platform,
            as_of=as_of,
            strangers_left=decided.unread,
            audit=audit,
            proving=proving,
            unproven=left,
        )
        await to_thread.run_sync(save, task.folder, decided.items, header, now)
        await journal.put_items(task.platform, [item_row(item) for item in decided.items])
        await journal.put(LEFT, mark)
        await journal.put(AS_OF, place)
        await journal.put(DIGEST, now)
    return changed


def item_row(item: WorklistItem) -> ItemRow:
    """An item for re-runs; a stranger's repro is not in it."""
    return ItemRow(
        fingerprint=item.fingerprint,
        state=item.state,
        severity=item.severity,
        surface=item.surface,
        title=item.title,
        persona=item.source,
        repro=item.repro,
        names=item.names,
        since=item.since,
        trusted=item.trusted,
    )


async def migrate(journal: TriageJournal, platform: str) -> None:
    """Turn the fixes of an older journal into decisions, once; ConfigError when they are damaged: hiding by
    guess would lose findings."""
    text = await journal.get(RESOLUTIONS)
    if not text:
        return
    try:
        found = [
            DecisionRow(
                item=str(one["key"]),
                kind="fixed",
                reason=str(one.get("note") or "noted as fixed"),
                who="operator",
                at=iso(datetime.fromtimestamp(int(one["at"]), UTC)),
                platform=platform,
            )
            for one in json.loads(text)
        ]
        made = [named(one) for one in found]
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise ConfigError("the stored resolutions cannot be read", remedy="restore fleet.db") from None
    for one in made:
        await journal.add_decision(one)
    await journal.put(RESOLUTIONS, "")
