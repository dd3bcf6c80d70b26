"""All that is known of one item or finding: its page, runs, decisions and evidence.

List and mirror are enough when no run of this machine saw the item.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fleet.app import item_pages
from fleet.app.decided import decisions_of, words_of
from fleet.app.journal import known_journal
from fleet.clock import minute
from fleet.config import load_fleet
from fleet.errors import UsageError
from fleet.findings.evidence import path_of
from fleet.findings.reader import read
from fleet.findings.recurrence import Recurrence
from fleet.findings.repro import ReproError, write_repro
from fleet.store.rows import DecisionRow, FindingRow, fields_of
from fleet.text import clean
from fleet.triage.items.decisions import fold
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import WorklistDocument
from fleet.triage.outputs.item_page import ItemPage, item_page, life

LATEST = 10
"""Runs of the history that are shown; `--json` has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemView:
    """What is known of an item or a finding: `runs` saw it, newest last; `row` is the one that is shown.

    `planted` is the repro of a stranger, filled only when asked for. It was never run. `decisions` are those
    of the journal and of the log; `undone` are the names of those that do not stand. `files` are evidence
    that exists, `elsewhere` the daemon whose host holds it; `posted` is the row that has the entry.
    """

    item: WorklistItem | None = None
    row: FindingRow | None = None
    posted: FindingRow | None = None
    page: ItemPage = field(default_factory=ItemPage)
    decisions: tuple[DecisionRow, ...] = ()
    runs: tuple[FindingRow, ...] = ()
    files: tuple[str, ...] = ()
    bundle: Mapping[str, Any] | None = None
    elsewhere: str = ""
    figures: Recurrence = field(default_factory=Recurrence)
    planted: str = ""
    undone: frozenset[str] = frozenset()

    def happened(self, now: str) -> tuple[tuple[str, str], ...]:
        """Its life until `now` (ISO), in order: a time to the minute, which is said once, and words."""
        events = []
        for row in self.runs[-LATEST:]:
            proof = f" {row.confirmed}/{row.tries}" if row.tries else ""
            events.append((row.at, f"run {row.run_id}: {row.state}{proof}"))
        if self.figures.clean_at:
            how = f"and {self.figures.clean_why}" if self.figures.clean_why else "and did not see it"
            events.append((self.figures.clean_at, f"clean: run {self.figures.clean_run} ran it again {how}"))
        for made in self.decisions:
            end = f" until {minute(made.until)}" if made.until else ""
            what = f"{words_of(made)}{end}{' (undone)' if made.name in self.undone else ''}"
            where = f", log entry {made.entry}" if made.entry >= 0 else ""
            events.append((made.at, f"{what} by {made.who}{where}: {made.reason}"))
        return life(self.item, now, events) if self.item else tuple(events)

    def data(self) -> dict[str, Any]:
        """For `--json`."""
        made: dict[str, Any] = {"fingerprint": self.item.fingerprint} if self.item else {}
        if self.row and self.posted:
            made |= fields_of(self.row) | {
                "evidence_bundle": self.bundle,
                "evidence_on": self.elsewhere,
                "index": self.posted.index,
                "tx": self.posted.tx,
                "seen": self.figures.model_dump(mode="json"),
            }
        made |= {"page": asdict(self.page)}
        if self.item:
            keys = ("run", "persona", "state", "confirmed", "tries", "at")
            made |= {
                "item": asdict(self.item),
                "decisions": [
                    asdict(one) | {"stands": one.name not in self.undone} for one in self.decisions
                ],
                "history": [{key: fields_of(row)[key] for key in keys} for row in self.runs],
                "evidence_files": list(self.files),
                "untrusted_repro": self.planted,
            }
        return made


def find(document: WorklistDocument, fingerprint: str) -> WorklistItem | None:
    """The item with this fingerprint, or its beginning, among all names; UsageError if it is ambiguous."""
    begin = fingerprint.lower()
    if not begin:
        return None
    found = list(document.by_name.get(begin, ()))
    if not found:
        named = (items for name, items in document.by_name.items() if name.startswith(begin))
        found = list({one.fingerprint: one for items in named for one in items}.values())
    if len(found) > 1:
        names = ", ".join(sorted({one.fingerprint for one in found})[:8])
        what = f"{clean(fingerprint, 40)!r} begins several items: {names}"
        raise UsageError(what, remedy="give more digits")
    return next(iter(found), None)


async def viewed(state: Path, item: WorklistItem, *, untrusted: bool) -> ItemView:
    """Everything the journal adds to an item; without a journal only what the list says."""
    names, runs, planted = {item.fingerprint, *item.names}, [], ""
    decided: tuple[DecisionRow, ...] = ()
    platform = load_fleet().platform
    if (known := await known_journal(state)) is not None:
        async with known as journal:
            runs = await journal.findings_named(sorted(names))
            decided = await decisions_of(journal, platform, state)
            if untrusted and not item.trusted and item.entry >= 0:
                entries = await journal.entries(item.epoch)
                planted = next((_planted(one.text) for one in entries if one.index == item.entry), "")
    files = {path_of(state / "runs" / row.run_id / "evidence", row.evidence) for row in runs if row.evidence}
    return ItemView(
        item=item,
        page=item_pages.page_of(state, item, runs, item_pages.place_of(state, platform), planted),
        decisions=tuple(one for one in decided if {one.item, one.other} & names),
        undone=frozenset(one.name for one in decided) - {one.name for one in fold(decided).all},
        runs=tuple(runs),
        files=tuple(sorted(str(path) for path in files if path.is_file())),
        planted=planted,
    )


def found(state: Path, row: FindingRow, bundle: Mapping[str, Any] | None) -> ItemView:
    """A finding that is on no list."""
    place = item_pages.place_of(state, load_fleet().platform)
    pictures = tuple(item_pages.pictures(state, row, bundle))
    return ItemView(page=item_page(row.title, row.repro, place, row=row, bundle=bundle, pictures=pictures))


def _planted(text: str) -> str:
    try:
        return write_repro(read(text).repro)
    except ReproError:
        return ""
