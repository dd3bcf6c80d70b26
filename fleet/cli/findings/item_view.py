"""One item of the worklist for a person: its life, decisions, links, repro as shell, evidence, history.

Part of `fleet findings show`; list and mirror are enough when no run of this machine saw the item.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import Any

from fleet.app.decided import Board, words_of
from fleet.app.journal import known_journal
from fleet.cli.console import fields_of, note
from fleet.cli.findings.repro_shell import ShellPlace, shell
from fleet.clock import iso, span
from fleet.config import load_fleet, load_platform
from fleet.errors import ConfigError, FleetError, UsageError
from fleet.findings.evidence import path_of
from fleet.findings.kinds import kind_titled
from fleet.findings.reader import read
from fleet.findings.repro import ReproError, write_repro
from fleet.store.rows import DecisionRow, FindingRow
from fleet.text import clean, counted
from fleet.triage.items.decisions import fold
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import standing
from fleet.triage.outputs.files import written

LATEST = 10
"""Runs of the history that are printed; `--json` has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemView:
    """What is known of an item besides the list: `runs` saw it, newest last; `evidence` are files that exist.

    `planted` is the repro of a stranger, filled only when asked for. It was never run. `decisions` are those
    of the journal and of the log; `undone` are the names of those that do not stand.
    """

    item: WorklistItem
    decisions: tuple[DecisionRow, ...] = ()
    runs: tuple[FindingRow, ...] = ()
    evidence: tuple[str, ...] = ()
    shell: tuple[str, ...] = ()
    planted: str = ""
    undone: frozenset[str] = frozenset()

    def data(self) -> dict[str, Any]:
        """For `--json`."""
        keys = ("run", "persona", "state", "confirmed", "tries", "at")
        return {
            "item": asdict(self.item),
            "decisions": [asdict(one) | {"stands": one.name not in self.undone} for one in self.decisions],
            "history": [{key: fields_of(row)[key] for key in keys} for row in self.runs],
            "evidence_files": list(self.evidence),
            "shell": list(self.shell),
            "untrusted_repro": self.planted,
        }


def listed(state: Path, fingerprint: str) -> WorklistItem | None:
    """The item with this fingerprint, or its beginning, among all names; UsageError if it is ambiguous."""
    try:
        known = written(state)
    except ConfigError as error:
        note(f"{error}; {error.remedy}")
        return None
    begin = fingerprint.lower()
    if known is None or not begin:
        return None
    items = (*known.items, *known.closed)
    found = [one for one in items if any(name.startswith(begin) for name in (one.fingerprint, *one.names))]
    exact = [one for one in found if begin in (one.fingerprint, *one.names)]
    if len(exact or found) > 1:
        names = ", ".join(sorted({one.fingerprint for one in exact or found})[:8])
        what = f"{clean(fingerprint, 40)!r} begins several items: {names}"
        raise UsageError(what, remedy="give more digits")
    return next(iter(exact or found), None)


async def viewed(state: Path, item: WorklistItem, *, untrusted: bool) -> ItemView:
    """Everything the journal adds to an item; without a journal only what the list says."""
    names, runs, planted = {item.fingerprint, *item.names}, [], ""
    decided: tuple[DecisionRow, ...] = ()
    platform = load_fleet().platform
    if (known := await known_journal(state)) is not None:
        async with known as journal:
            runs = [row for row in await journal.findings() if row.fingerprint in names]
            decided = (await Board.read(journal, platform, state)).decisions
            if untrusted and not item.trusted and item.entry >= 0:
                entries = await journal.entries(item.epoch)
                planted = next((_planted(one.text) for one in entries if one.index == item.entry), "")
    files = {path_of(state / "runs" / row.run_id / "evidence", row.evidence) for row in runs if row.evidence}
    here = [row.run_id for row in runs if (state / "runs" / row.run_id / "trajectory.jsonl").is_file()]
    again = f"fleet runs replay {quote(here[-1])}" if here else ""
    if not again and item.trusted and item.source:
        again = f"fleet run {quote(clean(item.source, 60))}"
    return ItemView(
        item=item,
        decisions=tuple(one for one in decided if {one.item, one.other} & names),
        undone=frozenset(one.name for one in decided) - {one.name for one in fold(decided).all},
        runs=tuple(runs),
        evidence=tuple(sorted(str(path) for path in files if path.is_file())),
        shell=tuple(shell(item.repro or planted, _place(state, platform), again if item.repro else "")),
        planted=planted,
    )


def _planted(text: str) -> str:
    try:
        return write_repro(read(text).repro)
    except ReproError:
        return ""


def _place(state: Path, name: str) -> ShellPlace:
    """The platform's addresses; none where its profile cannot be read."""
    try:
        platform, _ = load_platform(name, state)
    except FleetError:
        return ShellPlace()
    from fleet.chain.node.digest import metadata_key

    keys = {role: "0x" + metadata_key(key).hex() for role, key in platform.metadata.names.items()}
    return ShellPlace.of(platform, keys)


def lines_of(view: ItemView, *, now: datetime, headed: bool = True) -> list[str]:
    """For a terminal; `headed` with title and repro, for an item that no run of this machine saw. Each stage
    of its life with how long it lasted, the last one until `now`."""
    item = view.item
    lines = [f"{item.severity}  {item.surface}  {item.title}"] if headed else []
    place = f"rank {item.rank}" if item.rank else "not on the open list"
    since = f" since {item.since}" if item.since else ""
    lines.append(f"item {item.fingerprint}  {standing(item)}{since}  {place}")
    if item.trusted and (kind := kind_titled(item.title)):
        lines += [f"{heading}: {text}" for heading, text in kind.sections]
        lines.append(f"References: {', '.join(kind.references)} (fleet findings kinds {kind.id})")
    lines += [f"ranked by: {item.why}"]
    days = f" on {counted(item.days, 'day')}" if item.days else ""
    lines.append(f"counted {item.count}{days}, first {item.first_seen}, last {item.last_seen}")
    lines += [f"now: {item.stuck}"] if item.stuck else []
    lines += ["stale: nothing has looked at it for long"] if item.stale else []
    lines += [f"until {item.until}"] if item.until else []
    lines += [f"reason: {item.reason}"] if item.reason else []
    ends = (*(one.at for one in item.stages[1:]), iso(now))
    lines += [
        f"life: {one.at}  {one.state} for {span(one.at, end)}{f'  by {one.by}' if one.by else ''}"
        for one, end in zip(item.stages, ends, strict=False)
    ]
    lines += [f"factor: {one.name} {one.value} x {one.factor:g}  by {one.by}" for one in item.factors]
    for decided in view.decisions:
        end = f" until {decided.until}" if decided.until else ""
        where = f", log entry {decided.entry}" if decided.entry >= 0 else ""
        what = f"{words_of(decided)}{end}{' (undone)' if decided.name in view.undone else ''}"
        lines.append(f"decision: {what} by {decided.who}, {decided.at}{where}: {decided.reason}")
    lines += [
        f"link: {one.kind} {one.other}{' (suggested)' if one.suggested else ''}  {one.why}  by {one.by}"
        for one in item.links
    ]
    if headed and item.entry >= 0:
        lines.append(f"log entry {item.entry}, epoch {item.epoch}, by {', '.join(item.senders)}")
    if view.planted:
        lines += [
            f"a stranger's repro, never run by the fleet: {view.planted}",
            "as shell, at your own risk:",
        ]
        lines += [f"  # {line}" for line in view.shell]
    elif item.repro:
        lines += [f"repro: {item.repro}"] if headed else []
        lines += ["as shell:", *(f"  {line}" for line in view.shell)]
    elif not item.trusted:
        lines.append("repro: a stranger's is withheld; --untrusted shows it")
    lines += [f"evidence: {path}" for path in view.evidence]
    if (left := len(view.runs) - LATEST) > 0:
        lines.append(f"{left} earlier runs saw it")
    lines += [
        f"run {row.run_id}  {row.at}  {row.state} {row.confirmed}/{row.tries}" for row in view.runs[-LATEST:]
    ]
    return [clean(line) for line in lines]
