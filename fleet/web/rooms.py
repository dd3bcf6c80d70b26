"""What each page shows, as data for its template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlencode

from anyio import to_thread
from markupsafe import Markup

from fleet.app.decided import own_addresses
from fleet.app.item_view import find, viewed
from fleet.app.journal import from_journal, known_journal
from fleet.app.outages import days_down
from fleet.app.period_facts import coverage_facts
from fleet.app.run_records import asked_by, latest
from fleet.app.status_words import COSTS, cost, details, health
from fleet.broker.egress_read import refused
from fleet.clock import iso, iso_seconds
from fleet.config import load_fleet, load_platform
from fleet.config.parts import PARTS, not_configured
from fleet.errors import FleetError, UsageError
from fleet.events import timeline
from fleet.events.model import GateDenied, Phase, ToolRequested, ToolResponded
from fleet.events.recorded import Recording, UnknownRecord
from fleet.findings.kinds import Kind, kind_titled, kinds
from fleet.findings.outage import FACTS, OutageBook, read_book
from fleet.findings.reader import read
from fleet.personas.duration import parse_duration
from fleet.personas.model import Persona
from fleet.runs.activity import DAEMON, SHOWN, STATUSES, Activity, ActivityFilter
from fleet.runs.call.sealed import TRAJECTORY
from fleet.runs.desk.coverage import NOT_PROBES, coverage
from fleet.runs.replay import compared
from fleet.service.notify.shown import shown_notices
from fleet.service.notify.state import ShownNotice
from fleet.severity import WEIGHTS, Severity
from fleet.store.journal import Journal
from fleet.store.rows import MirroredEntry, RunRow, SampleRow, fields_of
from fleet.store.tables.units import FLEET, amount
from fleet.triage.items.decisions import fold
from fleet.triage.items.rank import SURFACES
from fleet.triage.items.unproven import WAITS
from fleet.triage.items.worklist import ProposalLink, WorklistItem
from fleet.triage.outputs import period
from fleet.triage.outputs.digest import GROUPS
from fleet.triage.outputs.document import WorklistDocument, anew, sentence
from fleet.triage.outputs.selection import STATES, Selection, moment
from fleet.triggers.model import asked_for
from fleet.web.live import LATEST
from fleet.web.plots import SpanBars, plots, scale
from fleet.web.sources import Sources

RUNS, ITEMS, RECORDS, ENTRIES = 30, 100, 500, 100
"""Rows of one page."""
WANTED = ("q", "type", "host", "status", "severity", "since", "until")
"""Filters of the activity."""
OWN_WORDS = "In the words of a probe"
"""Heading of the items that have no kind."""
GROUP_WORDS = {"new": "new", "fixed": "fixed", "regressed": "back", "still": "still open"}

DAY_H = 24.0
"""Hours of the strip of next starts."""
COVERED = timedelta(days=30)
"""What is covered: by runs of this time."""

Data = dict[str, Any]


async def now_page(sources: Sources) -> Data:
    """The first page: how it stands, what runs, what is next, what is new."""
    data, document = await sources.status(), await sources.document()
    parts = _parts(sources, data["platform"])
    waits = sources.waits
    words = f"the daemon waits for {waits}." if waits else health(data)
    return {
        "data": data,
        "state": _state(data, waits),
        "sentence": words[:1].upper() + words[1:],
        "wrong": data["wrong"] if waits else details(data),
        "named": [name for name, _, missing in parts if not missing],
        "unnamed": [name for name, _, missing in parts if missing],
        "running": sorted(sources.live.runs.items(), key=lambda one: one[1].began),
        "severities": [(name, many) for name in WEIGHTS if (many := document.severities.get(name))],
        "news": [(GROUP_WORDS[name], data["digest"][name]) for name in GROUPS if name != "still"],
        "held": [one for one in data["proving"] if one["why"] == WAITS],
        "costs": [cost(data["today"][FLEET], unit) for unit in COSTS],
        "yesterday": [amount(unit, count) for unit, count in data["yesterday"].items()],
        "lines": list(sources.live.lines)[: -LATEST - 1 : -1],
        "list_words": sentence(document.as_of),
    }


def _state(data: Mapping[str, Any], waits: str) -> tuple[str, str]:
    """The health in a word, and its colour."""
    if data["stop"]:
        return "Stopped", Severity.CRITICAL
    if waits:
        return "Waiting", Severity.MEDIUM
    if data["schedule"]["closed"]:
        return "Closed", Severity.MEDIUM
    if data["wrong"]:
        return "Not well", Severity.HIGH
    return ("Well", "good") if data["daemon"] else ("No daemon", Severity.MEDIUM)


async def worklist_page(sources: Sources, query: Mapping[str, list[str]]) -> Data:
    """The list with the filters of the address; UsageError for a value that does not exist."""
    document = await sources.document()
    first = {name: values[-1] for name, values in query.items()}
    since = first.get("since", "")
    wanted = Selection(
        state=first.get("state", "open"),
        new=first.get("new") == "1",
        since=moment(since or "1d", datetime.now(UTC)) if since or first.get("new") == "1" else "",
        severities=tuple(one for one in query.get("severity", ()) if one),
        surfaces=tuple(one for one in query.get("surface", ()) if one),
        text=first.get("q", "")[:200],
    )
    items = await to_thread.run_sync(wanted.of, (*document.items, *document.closed))
    at = _number(first.get("from", ""))
    shown = items[at : at + ITEMS]
    return {
        "document": document,
        "list_words": sentence(document.as_of),
        "wanted": wanted,
        "since": since,
        "by_kind": first.get("group") == "kind",
        "groups": _groups(shown) if first.get("group") == "kind" else [("", shown)],
        "total": len(items),
        "first": at,
        "more": at + ITEMS if at + ITEMS < len(items) else 0,
        "severities": list(WEIGHTS),
        "surfaces": sorted({*SURFACES, *document.own_surfaces}),
        "states": list(STATES),
        "query": urlencode([(k, v) for k, values in query.items() for v in values if k != "from" and v]),
    }


def _groups(items: Iterable[WorklistItem]) -> list[tuple[str, list[WorklistItem]]]:
    """The items by kind, in the order of their gravest one."""
    groups: dict[str, list[WorklistItem]] = {}
    for item in items:
        kind = kind_titled(item.title) if item.trusted else None
        groups.setdefault(kind.name if kind else OWN_WORDS, []).append(item)
    return list(groups.items())


async def item_page(sources: Sources, fingerprint: str) -> Data:
    """One item with everything that is known of it; UsageError for an unknown one."""
    document = await sources.document()
    if (item := find(document, fingerprint)) is None:
        raise UsageError(f"no item {fingerprint[:40]!r} on the list", remedy="look for it in the worklist")
    view = await viewed(sources.state, item, untrusted=False)
    pictures = tuple(replace(one, data=Markup(one.data)) for one in view.page.pictures)  # base64
    standing = [one for one in view.decisions if one.name not in view.undone and one.kind != "undo"]
    hidden = fold(view.decisions).hiding((item.fingerprint, *item.names), iso(datetime.now(UTC)))
    return {
        "item": item,
        "page": replace(view.page, pictures=pictures),
        "life": view.happened(iso(datetime.now(UTC))),
        "decisions": view.decisions[::-1],
        "undone": view.undone,
        "standing": standing,
        "hidden_by": hidden,
        "severities": list(WEIGHTS),
        "parts": [one for one in item.names if one != item.fingerprint],
        "patch": await to_thread.run_sync(_patch, sources.state, item.proposal),
    }


def _patch(state: Path, proposal: ProposalLink | None) -> str:
    """The patch of an item's proposal; "" without one on this machine."""
    if proposal is None:
        return ""
    from fleet.app.proposals import patch_of  # all that a fix needs

    return patch_of(state / "runs" / proposal.proposal)


async def runs_page(sources: Sources) -> Data:
    """The latest runs."""
    rows = await latest(sources.state, RUNS)
    return {"runs": rows, "live": sources.live.runs}


async def run_page(sources: Sources, run: str, begin: str) -> Data:
    """One run as a timeline; UsageError for an unknown one."""
    if (known := await known_journal(sources.state)) is None:
        raise UsageError("no journal yet", remedy="the first run makes it")
    async with known as journal:
        row = await journal.run(run)
        found = [fields_of(one) for one in await journal.findings(run)]
        spent = await journal.spent(run)
    document, names = await sources.document(), {one["fingerprint"] for one in found}
    folder, at = sources.state / "runs" / row.run_id, _number(begin)
    kind, earlier = asked_for(row.key)
    records, asked = await to_thread.run_sync(partial(_timeline, sources.state, row.run_id, at))
    groups = coverage(folder, row.run_id, row.outcome)
    return {
        "row": row,
        "findings": found,
        "listed": names & document.by_name.keys(),
        "spent": [amount(unit, count) for unit, count in spent.items()],
        "records": records[:RECORDS],
        "first": at,
        "more": at + RECORDS if len(records) > RECORDS else 0,
        "asked": asked,
        "is_live": row.run_id in sources.live.runs,
        "repeats": earlier if kind == "replay" else "",
        "compared": await to_thread.run_sync(_compared, sources.state, earlier, row)
        if kind == "replay"
        else {},
        "coverage": [(name, rows) for name, rows in groups.items() if rows and name not in NOT_PROBES],
        "left": groups["left"],
    }


def _compared(state: Path, earlier: str, row: RunRow) -> Data:
    """What differs from the run that was asked again; {} until this one is over, or without their records."""
    if row.state != "ended":
        return {}
    before, after = (state / "runs" / name / TRAJECTORY for name in (earlier, row.run_id))
    try:
        return compared(before, after)
    except UsageError:
        return {}


def _timeline(state: Path, run: str, begin: int) -> tuple[list[Data], Data]:
    """Records from one on, one more than a page has, each with the gate's verdict, what its jail asked for,
    and the spans that ended with it; and the sums of all requests."""
    asked: Data = {"requests": 0, "refused": {}, "out_of_scope": 0, "hosts": {}, "rows": []}
    if (state / "runs" / run).is_dir():
        asked = asked_by(state, run, only_refused=False)
    by_call: dict[int, list[str]] = {}
    bars = SpanBars()
    for one in asked["rows"]:
        rule, status = one["rule"], one.get("status", "")
        verdict = f"refused by {rule}" if refused(rule) else rule or status
        path = one["path"] if "path" in one else f" {one.get('what', '')}"
        where = f"{one.get('verb', '')} {one.get('host', '')}{path}"
        by_call.setdefault(one.get("call", 0), []).append(f"{where}: {verdict}")
    records: list[Data] = []
    for number, record in enumerate(Recording(state / "runs" / run / TRAJECTORY)):
        took = [] if isinstance(record, UnknownRecord) else bars.after(record)
        if number < begin or not (words := timeline.words(record)):
            continue
        if len(records) > RECORDS:
            break
        at = "" if isinstance(record, UnknownRecord) else record.at
        gate, egress = "", []
        if isinstance(record, GateDenied):
            gate = f"refused: {record.rule}"
        elif isinstance(record, ToolRequested):
            gate = "permitted"
        elif isinstance(record, ToolResponded):
            egress = by_call.get(record.call, [])
        kind = "unknown" if isinstance(record, UnknownRecord) else record.type
        records.append({"at": at, "words": words, "gate": gate, "egress": egress, "kind": kind, "took": took})
    scale(took for one in records for took in one["took"])
    return records, asked


async def activity_page(sources: Sources, query: Mapping[str, list[str]]) -> Data:
    """What was done, newest first: all that happens, or what the filters of the address want; UsageError."""
    first = {name: query[name][-1][:200] for name in WANTED if query.get(name)}
    return {
        "acts": await acts(sources, query, SHOWN),
        "wanted": dict.fromkeys(WANTED, "") | first,
        "statuses": STATUSES,
        "severities": list(WEIGHTS),
        "types": [*get_args(Phase), DAEMON],
        "query": urlencode({name: word for name, word in first.items() if word}),
    }


async def acts(sources: Sources, query: Mapping[str, list[str]], limit: int | None) -> list[Activity]:
    """The acts that an address wants, newest first; UsageError for a value that does not exist."""
    first = {name: query[name][-1][:200] for name in WANTED if query.get(name)}
    now = datetime.now(UTC)
    since, until = (
        moment(first[one], now, option=one) if first.get(one) else "" for one in ("since", "until")
    )
    chosen = {name: first.get(name, "") for name in ("type", "host", "status", "severity")}
    wanted = ActivityFilter(since=since, until=until, text=first.get("q", ""), **chosen)

    async def queued(journal: Journal) -> list[RunRow]:
        return await journal.runs(RUNS)

    none: list[RunRow] = []
    waiting = await from_journal(sources.state, queued, none)
    if limit and wanted == ActivityFilter():
        return await to_thread.run_sync(sources.activity.latest, waiting)
    return await to_thread.run_sync(sources.activity.search, wanted, limit, waiting)


async def open_notices(sources: Sources) -> list[ShownNotice]:
    """What a person has not dismissed yet, newest first."""
    return [one for one in await _notices(sources) if not one.dismissed]


async def notices_page(sources: Sources) -> Data:
    """Every notice that is known, and who dismissed it when."""
    return {"all_notices": await _notices(sources)}


async def _notices(sources: Sources) -> list[ShownNotice]:
    async def known(journal: Journal) -> list[ShownNotice]:
        return await shown_notices(journal)

    none: list[ShownNotice] = []
    return await from_journal(sources.state, known, none)


async def personas_page(sources: Sources) -> Data:
    """Every persona: why and when it starts, how its last run ended, what it spent today."""
    data = await sources.status()
    following = {one["persona"]: one["at"] for one in data["next"]}
    platform = data["platform"]

    async def ended(journal: Journal) -> list[RunRow]:
        return await journal.last_ended(platform)

    now = datetime.fromisoformat(data["at"])
    day = []
    for name, at in sorted(following.items(), key=lambda one: one[1]):
        wait = (datetime.fromisoformat(at) - now).total_seconds() / 3_600
        starts = _starts(sources.personas[name].persona) if name in sources.personas else [0.0]
        hours = [wait + hour for hour in starts if 0 <= wait + hour <= DAY_H]
        day.append({"persona": name, "at": at, "hours": hours})
    none: list[RunRow] = []
    last = {row.persona: row for row in await from_journal(sources.state, ended, none)}
    rows = [
        {
            "name": name,
            "persona": one.persona,
            "next": following.get(name, ""),
            "waiting": data["waiting"].get(name, 0),
            "last": last.get(name),
            "spent": [cost(today, unit) for unit in COSTS if today[unit]["spent"] or unit == "calls"]
            if (today := data["today"].get(name))
            else [],
        }
        for name, one in sorted(sources.personas.items())
    ]
    return {
        "personas": rows,
        "day": day,
        "refused": data["personas"]["refused"],
        "now": data["at"],
    }


async def platform_page(sources: Sources) -> Data:
    """What the platform has, what was asked of it, what was shown, and what never was asked and why."""
    data, document = await sources.status(), await sources.document()
    parts = _parts(sources, data["platform"])

    async def ended(journal: Journal) -> list[RunRow]:
        return await journal.last_ended(data["platform"])

    async def seen(journal: Journal) -> tuple[OutageBook, str, dict[str, list[SampleRow]]]:
        name = data["platform"]
        return (
            read_book(await journal.get(FACTS + name)),
            await journal.first_run(name),
            await journal.past(name),
        )

    none: list[RunRow] = []
    unmeasured: dict[str, list[SampleRow]] = {}
    book, first, past = await from_journal(sources.state, seen, (OutageBook(), "", unmeasured))
    days = days_down(book, first, datetime.now(UTC))
    rows = []
    for row in sorted(await from_journal(sources.state, ended, none), key=lambda one: one.persona):
        groups = await to_thread.run_sync(
            coverage, sources.state / "runs" / row.run_id, row.run_id, row.outcome
        )
        if any(groups.values()):
            rows.append({"row": row, "groups": groups})
    tools = {name: one.persona.tools for name, one in sources.personas.items()}
    since = iso(datetime.now(UTC) - COVERED)
    facts = await coverage_facts(sources.state, data["platform"], since, document, tools)
    by_status: dict[str, list[Data]] = {name: [] for name in ("shown", "healthy", "partial", "not asked")}
    for one in await to_thread.run_sync(list, period.coverage(facts, document.own_kinds[0])):
        by_status[one["status"]].append(one)
    open_ = document.own_severities
    grave = sum(open_.get(name, 0) for name in period.GRAVE)
    told = {"data": data, "parts": parts, "coverage": rows, "kinds": _by_kind(document), "days": days}
    told |= {"by_status": by_status, "posture": period.posture(sum(open_.values()), grave)}
    return told | {"plots": plots(past), "covered_days": COVERED.days}


def _parts(sources: Sources, platform: str) -> list[tuple[str, str, str]]:
    """Each part of a platform, what it brings, and why it is not looked at; "" for one that is."""
    try:
        profile, _ = load_platform(platform, sources.state)
    except FleetError as error:
        return [("profile", "the platform", str(error))]
    missing = not_configured(profile)
    return [(name, part.brings, missing.get(name, "")) for name, part in PARTS.items()]


def _starts(persona: Persona) -> list[float]:
    """When a persona starts within a day, in hours after its next start: what has no period counts once."""
    every = next((one.every for one in persona.triggers if one.every), "")
    period = parse_duration(every) / 3_600 if every else DAY_H
    return [at * period for at in range(int(DAY_H / period) + 1)]


def _by_kind(document: WorklistDocument) -> list[tuple[Kind, int, int]]:
    """The kinds that were shown, with their open and their closed items."""
    open_, closed = document.own_kinds
    shown = ((one, open_.get(name, 0), closed.get(name, 0)) for name, one in kinds().items())
    return [row for row in shown if row[1] or row[2]]


async def log_page(sources: Sources) -> Data:
    """The newest entries of the mirror, newest first, and whether an address of the fleet wrote them."""

    async def mirrored(journal: Journal) -> list[MirroredEntry]:
        epoch, entries = await journal.mirror_cursor()
        return await journal.mirror_since(epoch, max(0, entries - ENTRIES))

    none: list[MirroredEntry] = []
    found = await from_journal(sources.state, mirrored, none)
    ours = own_addresses(load_fleet(), sources.state)
    entries = [
        {
            "index": one.index,
            "at": iso_seconds(one.timestamp),
            "sender": one.sender,
            "trusted": one.sender.lower() in ours,
            "read": read(one.text),
            "text": one.text,
        }
        for one in reversed(found)
    ]
    return {"entries": entries, "anew": anew(found[-1].epoch) if found else "", "verified": sources.verified}


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
