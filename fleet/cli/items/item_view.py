"""One item or finding as lines of a terminal: part of `fleet items show`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import Any

from fleet.app.item_view import LATEST, ItemView, find
from fleet.cli.console import note
from fleet.clock import iso, minute
from fleet.errors import ConfigError
from fleet.findings.sighting import lead
from fleet.runs.proof.grades import graded
from fleet.text import clean, counted
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import anew, standing
from fleet.triage.outputs.files import written
from fleet.triage.outputs.item_page import ItemPage, also_seen, waits

LEAST = 40
"""Columns that a page is set in at least."""


def listed(state: Path, fingerprint: str) -> WorklistItem | None:
    """The item of the written list with this fingerprint, or its beginning; UsageError if it is ambiguous."""
    try:
        document = written(state)
    except ConfigError as error:
        note(f"{error}; {error.remedy}")
        return None
    return find(document, fingerprint) if document else None


class _Sheet:
    """Lines of a page that fit a width."""

    def __init__(self, width: int) -> None:
        self.lines: list[str] = []
        self.width = max(width, LEAST)

    def say(self, text: str, indent: str = "") -> None:
        """One paragraph; its later lines are indented."""
        shown = clean(text)
        self.lines += wrap(
            shown, self.width, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False
        ) or [indent.rstrip()]

    def code(self, text: str) -> None:
        """Lines that are cut, not broken."""
        for one in text.splitlines():
            self.lines.append(clean(f"  {one}", self.width))


def lines_of(view: ItemView, *, now: datetime, width: int = 80, whole: bool = False) -> list[str]:
    """For a terminal: the page, then the item's life until `now`; `whole` with all of the evidence."""
    sheet = _Sheet(width)
    _heading(view, sheet)
    _page(view.page, also_seen(view.item) if view.item else (), sheet)
    _reproduced(view, sheet)
    for head, text in (
        ("How it is usually fixed", view.page.fix),
        ("How it was proven", " ".join(view.page.proof)),
        ("References", "; ".join(name for name, _ in view.page.references)),
    ):
        if text:
            sheet.say(f"{head}: {text}")
    _evidence(view, sheet, whole=whole)
    if view.item:
        _life(view, view.item, now, sheet)
        _ranking(view.item, sheet)
    return sheet.lines


def _heading(view: ItemView, sheet: _Sheet) -> None:
    item, row = view.item, view.row
    severity = item.severity if item else row.severity if row else ""
    surface, title = (item.surface, item.title) if item else (row.surface, row.title) if row else ("", "")
    sheet.say(f"{severity}  {surface}  {row.title if row else title}")
    if item:
        place = f"rank {item.rank}" if item.rank else "not on the open list"
        sheet.say(f"item {item.fingerprint}  {standing(item)}  {place}")
    if row:
        proof = f"{row.state} {row.confirmed}/{row.tries}" if row.tries else row.state
        sheet.say(f"found by {row.persona} in run {row.run_id}, {proof}")
        if row.state == "unverified" and "claim" in row.data:
            sheet.say(f"its driver's words: {row.data['claim'].get('title', '')}")
            sheet.say(f"a driver's claim: fleet items adopt {row.fingerprint}, or dismiss {row.fingerprint}")
    if view.posted and view.posted.index >= 0:
        transaction = f", transaction {view.posted.tx}" if view.posted.tx else ""
        sheet.say(f"log entry {view.posted.index}{transaction}")
    elif row:
        sheet.say(f"not on the log: {graded(row).why}")
    elif item and item.entry >= 0:
        sheet.say(f"log entry {item.entry} by {', '.join(item.senders)}{anew(item.epoch)}")


def _page(page: ItemPage, also: Sequence[str], sheet: _Sheet) -> None:
    if page.wrong:
        sheet.say(f"What is wrong: {page.wrong}")
    if len(page.where) == 1:
        sheet.say(f"Where: {page.where[0]}")
    elif page.where:
        sheet.say("Where:")
        for one in page.where:
            sheet.say(one, "  ")
    if also:
        sheet.say("Also seen at:")
        for one in also:
            sheet.say(one, "  ")
    if page.expected:
        sheet.say(f"Expected: {page.expected}")
    if page.observed and (page.wrong or page.fields):
        sheet.say(f"Observed: {page.observed}")
    _sides(page, sheet)
    if page.why:
        sheet.say(f"Why it matters: {page.why}")


def _sides(page: ItemPage, sheet: _Sheet) -> None:
    """The fields that decide: expected and observed side by side, and what it is compared with."""
    heads = ("field", "expected", "observed", "compared with")
    rows = [(one.name, one.expected, one.observed, one.compared) for one in page.fields]
    used = [at for at in range(4) if any(row[at] for row in rows)]
    sides = [heads, *rows]
    share = (sheet.width - 2 - 18) // max(len(used) - 1, 1) - 2
    widths = {at: min(max(len(row[at]) for row in sides), share if at else 18) for at in used}
    for row in sides:
        cells = [wrap(clean(row[at]), widths[at]) or [""] for at in used]
        for parts in zip_longest(*cells, fillvalue=""):
            shown = (part.ljust(widths[at]) for at, part in zip(used, parts, strict=True))
            sheet.lines.append(f"  {'  '.join(shown)}".rstrip())


def _reproduced(view: ItemView, sheet: _Sheet) -> None:
    item, page = view.item, view.page
    if view.planted:
        sheet.say(f"A stranger's repro, never run by the fleet: {view.planted}")
        sheet.say("As a script, at your own risk:")
        sheet.code("\n".join(f"# {line}" for line in page.script.splitlines()))
    elif page.script:
        name = item.fingerprint if item else view.row.fingerprint if view.row else ""
        sheet.say(f"How to reproduce: fleet items show {name} --script | bash")
        sheet.code("\n".join(line for line in page.script.splitlines() if line[:1] != "#"))
    elif item and not item.trusted:
        sheet.say("Repro: a stranger's is withheld; --untrusted shows it")


def _evidence(view: ItemView, sheet: _Sheet, *, whole: bool) -> None:
    row = view.row
    for one in view.page.pictures:
        sheet.say(f"Picture: {one.name} (fleet items --html shows it)")
    if row and row.evidence and view.elsewhere:
        sheet.say(f"Evidence sha256:{row.evidence} is on the host of the daemon {view.elsewhere}")
    elif row and row.evidence and view.bundle is None:
        sheet.say(f"Evidence sha256:{row.evidence} was removed with its run's folder")
        sheet.say("(keep.days, keep.megabytes)", "  ")
    for path in sorted(view.files, key=lambda path: row is not None and row.evidence in path)[-1:]:
        sheet.say(f"Evidence: {path}")
    if len(view.files) > 1:
        sheet.say(f"and {counted(len(view.files) - 1, 'earlier file')}: --json", "  ")
    steps: Sequence[Mapping[str, Any]] = view.bundle["steps"] if view.bundle else ()
    if steps and not whole:
        sheet.say("Whole request and answer: --evidence")
    for step in steps if whole else ():
        sheet.say(lead(step["tool"], step["args"]), "  ")
        for name, value in step["result"].items():
            if value not in ("", None, [], {}):
                shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                sheet.say(f"{name}: {clean(shown, 1_000)}", "    ")


def _life(view: ItemView, item: WorklistItem, now: datetime, sheet: _Sheet) -> None:
    """What happened to the item, in order; then what it waits for."""
    days = f" on {counted(item.days, 'day')}" if item.days else ""
    again = f", confirmed again by {counted(view.figures.again, 'run')}" if view.figures.again else ""
    sheet.say(f"Life (UTC): reported by {counted(item.count, 'run')}{days}{again}")
    if (left := len(view.runs) - LATEST) > 0:
        sheet.say(f"{left} earlier runs saw it", "  ")
    for at, what in view.happened(iso(now)):
        sheet.say(f"{at.ljust(16)}  {what}", "  ")
    for words in (
        f"now: {waits(item)}" if item.stuck else "",
        "stale: nothing has looked at it for long" if item.stale else "",
        f"until {minute(item.until)}" if item.until else "",
        f"reason: {item.reason}" if item.reason else "",
    ):
        if words:
            sheet.say(words, "  ")


def _ranking(item: WorklistItem, sheet: _Sheet) -> None:
    sheet.say(f"Ranked by: {item.why}")
    for one in item.factors:
        sheet.say(f"{one.name} {one.value} x {one.factor:g} by {one.by}", "  ")
    if made := item.proposal:
        sheet.say(f"Proposal: {' '.join(filter(None, (made.state, made.proposal, made.ref, made.why)))}")
    for link in item.links:
        suggested = " (suggested)" if link.suggested else ""
        sheet.say(f"Link: {link.kind} {link.other}{suggested}: {link.why}, by {link.by}")
