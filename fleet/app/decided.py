"""Decisions of a person about items: found by their first digits, recorded, listed. Publishing is apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from fleet.app.journal import known_journal, open_journal
from fleet.chain.keys import address_of, load_key
from fleet.clock import SystemClock, iso
from fleet.config import FleetConfig, key_file, load_fleet, load_platform
from fleet.errors import FleetError, UsageError
from fleet.findings.reader import read
from fleet.findings.records import SOURCE, ItemRecord, read_record
from fleet.findings.redact import Redactor
from fleet.runs.call.decision_file import Decision, DecisionFile
from fleet.store.journal import Journal
from fleet.store.rows import HOLD, QUEUED, DecisionRow, FindingRow
from fleet.text import clean
from fleet.triage.items.decisions import fold, known, named
from fleet.triage.outputs.selection import moment

_FOR = re.compile(r"([1-9][0-9]{0,3})([hdw])", re.ASCII)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
SEVERAL = 8
"""Items that an ambiguous beginning names at most."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a decision is about: an item of the last triage, or else a finding of a run.

    `names` are all its fingerprints, `chosen` is the one that was asked for.
    """

    item: str
    chosen: str
    names: tuple[str, ...]
    surface: str
    title: str
    finding: FindingRow | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """The items and findings of one platform, and every decision about them."""

    platform: str
    subjects: tuple[Subject, ...]
    decisions: tuple[DecisionRow, ...]

    @classmethod
    async def read(cls, journal: Journal, platform: str, state: Path) -> Board:
        rows = await journal.items(platform)
        home = {name: row.fingerprint for row in rows for name in row.names} | {
            row.fingerprint: row.fingerprint for row in rows
        }
        names: dict[str, set[str]] = {}
        for name, item in home.items():
            names.setdefault(item, set()).add(name)
        rows_of_runs = [
            one for one in await journal.findings() if one.data.get("platform", platform) == platform
        ]
        latest = {one.fingerprint: one for one in rows_of_runs}
        by_item = {row.fingerprint: row for row in rows}
        subjects = []
        for name in sorted(home.keys() | latest.keys()):
            item, found = home.get(name, name), latest.get(name)
            row = by_item.get(item) or found
            assert row is not None  # the name is of one of them
            aliases = tuple(sorted(names.get(item, {name})))
            on_list = None if item in by_item else found
            subjects.append(Subject(item, name, aliases, row.surface, row.title, on_list))
        return cls(platform, tuple(subjects), await decisions_of(journal, platform, state))

    def subject(self, digits: str) -> Subject:
        """The item or finding whose fingerprint begins so; UsageError for none, and for several."""
        found = [one for one in self.subjects if digits and one.chosen.startswith(digits.lower())]
        exact = [one for one in found if one.chosen == digits.lower()]
        items = sorted({one.item for one in exact or found})
        if not items:
            what = f"no item or finding {clean(digits, 40)!r} on this machine"
            raise UsageError(what, remedy="fleet items --state all, or fleet items findings")
        if len(items) > 1:
            what = f"{digits!r} begins several: {', '.join(items[:SEVERAL])}"
            raise UsageError(what, remedy="give more digits")
        return (exact or found)[0]

    def about(self, subject: Subject) -> list[DecisionRow]:
        """The decisions about an item in their order, undone ones included."""
        return [one for one in self.decisions if one.item in subject.names or one.other in subject.names]

    def latest(self, subject: Subject, decision: str = "") -> DecisionRow:
        """The standing decision to undo: the latest one, or the one whose name begins so."""
        stand = {one.name for one in fold(self.decisions).all}
        own = [one for one in self.about(subject) if one.name in stand]
        found = [one for one in own if one.name.startswith(decision) and (decision or one.kind != "undo")]
        if not found:
            what = f"decision {decision!r} about" if decision else "decision about"
            remedy = f"fleet items decisions {subject.item}"
            raise UsageError(f"no {what} {subject.item} stands", remedy=remedy)
        if decision and len(found) > 1:
            names = ", ".join(one.name for one in found)
            raise UsageError(f"{decision!r} begins several decisions: {names}", remedy="give more digits")
        return found[-1]

    def unfinished(self, subject: Subject, wanted: DecisionRow) -> DecisionRow | None:
        """The latest decision about an item, if it is this one and waits for its entry on the log."""
        last = next(reversed(self.about(subject)), None)
        if last is None or last.entry != QUEUED:
            return None
        return last if _same(last) == _same(wanted) else None

    def made(self, wanted: DecisionRow) -> DecisionRow:
        """The decision with its time and its name: later than every decision about the same items."""
        last = max((one.at for one in self.decisions), default="")
        now = SystemClock().now()
        if last and iso(now) <= last:
            now = datetime.fromisoformat(last) + timedelta(seconds=1)
        return named(replace(wanted, at=iso(now), reason=Redactor().text(wanted.reason)))


async def read_board(state: Path, platform: str | None = None) -> Board:
    """The board of a profile, or of the configured one. UsageError without a journal."""
    if (journal := await known_journal(state)) is None:
        raise UsageError("no item or finding on this machine", remedy="fleet items findings")
    configured = load_fleet().platform
    try:
        name = load_platform(platform or configured, state)[0].name
    except UsageError:
        if platform:
            raise
        name = configured  # it need not be described here as long as nothing is posted
    async with journal:
        return await Board.read(journal, name, state)


def decision_of(board: Board, subject: Subject, wanted: DecisionRow) -> tuple[DecisionRow, bool]:
    """The decision to record, and whether it is a new one; UsageError for one that makes no sense."""
    if subject.finding is not None and subject.finding.state == "dropped":
        raise UsageError(
            f"finding {subject.item} is dropped: it needs no decision", remedy="fleet items findings"
        )
    if wanted.kind == "release" and subject.finding is not None and not subject.finding.data.get(HOLD):
        raise UsageError(f"finding {subject.item} is not held", remedy="fleet items findings")
    item = subject.chosen if wanted.kind == "split" else subject.item
    other = board.subject(wanted.other).item if wanted.other else ""
    if other == item:
        raise UsageError(f"{item} is the item itself", remedy="name another item")
    full = replace(wanted, item=item, other=other, undoes="", platform=board.platform)
    if (begun := board.unfinished(subject, board.made(full))) is not None:
        return begun, False
    if wanted.kind == "undo":
        target = board.latest(subject, wanted.undoes.lower())
        full = replace(full, item=target.item, undoes=target.name)
    return board.made(full), True


def end_of(duration: str, end: str) -> str:
    """The end of what begins now (ISO), from `--for` or `--until`; "" for what has none. UsageError."""
    now = SystemClock().now()
    if duration and end:
        raise UsageError("--for and --until: choose one", remedy="write --for 30d, or --until 2027-01-31")
    if end:
        at = moment(end, now, option="--until")
        if at <= iso(now):
            raise UsageError(f"--until: {at} is over", remedy="write a time to come, such as 2027-01-31")
        return at
    if duration in ("", "ever"):
        return ""
    if (match := _FOR.fullmatch(duration)) is None:
        raise UsageError(f"{duration!r} is not a duration", remedy="write 12h, 30d, 2w or ever")
    return iso(now + int(match[1]) * _UNITS[match[2]])


async def record(state: Path, made: DecisionRow, title: str) -> None:
    """Keep a decision in the journal, then in DECISIONS.md."""
    async with await open_journal(state) as journal:
        await journal.add_decision(made)
    write_down(state, made, title)


def _same(one: DecisionRow) -> tuple[str, ...]:
    return one.kind, one.reason, one.severity, one.other, one.link


async def decisions_of(journal: Journal, platform: str, state: Path) -> tuple[DecisionRow, ...]:
    """Every decision about a platform, of the journal and of the log."""
    return known(await journal.decisions(platform), await _published(journal, state))


async def _published(journal: Journal, state: Path) -> Sequence[ItemRecord]:
    """The records of our own addresses that the mirror holds."""
    entries = await journal.record_entries(SOURCE)
    if not entries:
        return ()
    ours = own_addresses(load_fleet(), state)
    found = [(one, read_record(read(one.text))) for one in entries if one.sender.lower() in ours]
    return [record.placed(one.epoch, one.index) for one, record in found if record is not None]


def own_addresses(config: FleetConfig, state: Path) -> frozenset[str]:
    """Whose entries count as the fleet's own, in lower case: the trusted ones, and that of its key if there
    is one."""
    ours = {str(one).lower() for one in config.trusted}
    with suppress(FleetError):
        ours.add(address_of(load_key(key_file(config, "identity", state))).lower())
    return frozenset(ours)


def words_of(one: DecisionRow) -> str:
    """What was decided, in words, without its end."""
    return " ".join(filter(None, (one.kind, one.severity, one.link, one.other, one.undoes)))


def write_down(state: Path, one: DecisionRow, title: str) -> None:
    """Record a decision in DECISIONS.md, once; FleetError when it cannot be written."""
    file = DecisionFile(state, SystemClock())
    words = words_of(one)
    until = f" until {one.until}" if one.until else ""
    mark = f"decision {one.name}: "
    if file.path.exists() and mark in file.path.read_text("utf-8", "replace"):
        return
    record = Decision(
        title=f"item {one.item}: {words}",
        fork=title,
        decision=f"{mark}{words}{until}, by {one.who} at {one.at}",
        why=one.reason,
        reversal=f"fleet items undo {one.item} --decision {one.name} --reason ...",
        charter="a person's word",
    )
    if not file.record(record, run="", turn=0):
        raise FleetError("the decision took effect but could not be recorded", remedy=f"look at {state}")
