"""What `fleet status` and the pages of a daemon show of a fleet at one moment, as data."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any

from fleet.app.journal import known_journal
from fleet.app.lock import holder
from fleet.app.outages import open_outages
from fleet.app.posture import posture_seen
from fleet.app.status_words import COSTS, wrong
from fleet.clock import iso, minute
from fleet.config import FleetConfig, load_fleet, load_platform
from fleet.config.files import persona_dirs
from fleet.disk_reserve import laid, read_only
from fleet.errors import FleetError
from fleet.events.daemon_events import DaemonLost
from fleet.gate import dial
from fleet.gate.budget import Unit, day_limits
from fleet.gate.stop import stopped
from fleet.jail.battery.record import outdated, read_record
from fleet.runs.call.questions import is_open, question_rows, questions
from fleet.runs.desk.exit_codes import LEFT, MODEL_ENDED, UNDECIDED, UNEXPLORED
from fleet.service.lost_daemon import events_newest_first, in_words, lost_daemon
from fleet.service.snapshot import UNKNOWN, JournalSnapshot, PersonaSummary
from fleet.store.journal import Journal
from fleet.store.location import shown, store_place
from fleet.store.rows import MISSING, fields_of
from fleet.store.tables.units import FLEET
from fleet.text import clean
from fleet.triage.items.unproven import BACK, beside, proving, unproven
from fleet.triage.outputs.digest import GROUPS, STRANGERS, daily_digest
from fleet.triage.outputs.document import WorklistDocument, WorklistHeader

WELL = frozenset(
    {
        "done",
        "cancelled",
        "stopped",
        "window_closed",
        "awaiting_human",
        "refused",
        "iteration_budget",
        "budget_exhausted",
        "budget_exceeded",
        "max_continuations",
    }
)
"""Outcomes after which nothing is broken: the work was done, a person ended it, or a limit did."""
LAST_RUN = {"undecided": UNDECIDED, "unexplored": UNEXPLORED, "left": LEFT, "models": MODEL_ENDED}
"""Fields that the last run of each persona fills, and the prefix of their keys in the journal."""
ON_THEIR_WAY = {"proving": proving, "unproven": unproven}
"""Fields for what was seen and is not on the list, and what fills them."""
QUESTION = ("ident", "run", "persona", "trigger", "what", "level", "asked", "until")
"""What a status says of a question."""
NO_JOURNAL: Mapping[str, Any] = {
    "reachable": asdict(UNKNOWN),
    "waiting": {},
    "left_today": {},
    "today": {FLEET: {unit: {"spent": 0, "limit": None} for unit in COSTS}},
    "yesterday": {},
    "findings": {},
    "outcomes": {},
    **{
        key: []
        for key in (
            "running",
            "runs",
            "skips",
            "outages",
            "missing",
            "failing",
            "lost",
            "questions",
            "posture",
            *ON_THEIR_WAY,
            *LAST_RUN,
        )
    },
}
"""The same fields without a journal."""


async def gather(
    folder: Path,
    since: str,
    live: Mapping[str, Any],
    document: WorklistDocument,
    left_out: Collection[str] = (),
) -> dict[str, Any]:
    """The content of the page; `since` (ISO) is where its news begin. Shape: docs/reference/status.md.

    `live` is the daemon's /readyz; {} where none runs. `document` is the list as it
    is written; groups of its digest that are `left_out` are not there.
    """
    config = load_fleet()
    pause = stopped(folder)
    daemon = holder(folder)
    personas, refused = _personas(folder, live)
    data: dict[str, Any] = {
        "at": iso(datetime.now(UTC)),
        "since": since,
        "dial": dial.shown(folder),
        "schedule": _schedule(config.platform, folder),
        "stop": clean(pause.why) if pause else "",
        "stopped_since": pause.since if pause else "",
        "fence": _fence(config, folder),
        "ended_after_s": _ended_after_s(folder, pause.since) if pause else None,
        "page": str(live.get("page", "")),
        "platform": config.platform,
        "journal": shown(store_place(config.store, folder)),
        "state": str(folder),
        "daemon": daemon,
        "daemon_since": _started(folder, daemon),
        "draining": clean(str(live.get("draining", "")), 60),
        "degraded": _degraded(folder, live) if daemon else "",
        "personas": {"loaded": len(personas), "refused": refused, "failing": []},
        "next": [
            {"persona": name, "at": at}
            for at, name in sorted((at, name) for name, at in live.get("next", {}).items())
        ],
        "log": {"entries": None, "read": 0, "behind": False},
        "worklist": asdict(document.as_of),
        "digest": _digest(document, since, left_out),
    }
    data |= NO_JOURNAL
    if (known := await known_journal(folder)) is not None:

        async def read(journal: Journal) -> dict[str, Any]:
            limits = day_limits(config.budget)
            snapshot = await JournalSnapshot.read(journal, config.platform, personas, limits)
            found = await _of_journal(journal, snapshot, since, {one.name for one in personas})
            changes = (await posture_seen(journal, config.platform))["changes"]
            found["posture"] = [one for one in changes if one["at"] >= since]
            return found | await _on_their_way(journal, config.platform, document)

        async with known as journal:
            data |= await journal.at_once(read)
            data["lost"] = await _lost(folder, journal, daemon, since)
    data["personas"]["failing"] = data.pop("failing")
    if live:
        data["log"] = _log(live, data["runs"])
    data["wrong"] = [clean(why, 300) for why in wrong(data)]
    return data


def _ended_after_s(folder: Path, since: str) -> float | None:
    """Seconds from STOP until everything in flight had ended; None while it has not, or nothing was."""
    after = takewhile(lambda event: event["at"] >= since, events_newest_first(folder))
    return next((event["seconds"] for event in after if event["type"] == "flights.ended"), None)


async def _of_journal(
    journal: Journal, snapshot: JournalSnapshot, since: str, names: Collection[str]
) -> dict[str, Any]:
    """The fields of NO_JOURNAL; `names` are the personas in use."""
    now = datetime.now(UTC)
    before = (await journal.spent_today(iso(now - timedelta(days=1))[:10]))[FLEET]
    asked = question_rows([one for one in await questions(journal) if is_open(one, now)], now)
    return {
        "reachable": asdict(snapshot.reachable),
        "waiting": snapshot.waiting,
        "left_today": snapshot.left,
        "today": _costs(await journal.spent_today(), snapshot.limits),
        "yesterday": {unit: before[unit] for unit in COSTS if before.get(unit)},
        "running": [
            {"run": row.run_id, "persona": row.persona, "state": row.state, "since": row.started}
            for row in await journal.open_runs()
        ],
        "runs": [fields_of(row) for row in await journal.runs(limit=10)],
        "outcomes": await journal.outcomes(since),
        "skips": [asdict(row) for row in await journal.skips(limit=5)],
        "findings": (await journal.states_of())[""],
        "outages": await open_outages(journal),
        "missing": await missing_entries(journal),
        "questions": [{key: one[key] for key in QUESTION} for one in asked],
        "failing": [
            {
                "persona": row.persona,
                "run": row.run_id,
                "outcome": row.outcome,
                "ended": row.ended,
                "detail": row.detail,
            }
            for row in snapshot.last
            if row.outcome not in WELL and (row.persona in names or row.ended >= since)
        ],
        **{
            field: [one for one in await of_last_runs(journal, prefix) if one["persona"] in names]
            for field, prefix in LAST_RUN.items()
        },
    }


async def _on_their_way(
    journal: Journal, platform: str, document: WorklistDocument
) -> dict[str, list[dict[str, Any]]]:
    """The fields of ON_THEIR_WAY: what the list as it is written does not have."""
    now, items, entries = datetime.now(UTC), document.items, document.as_of.entries
    rows, decisions = await journal.on_their_way(iso(now - BACK)), await journal.decisions(platform)
    return {
        field: [asdict(one) for one in beside(of(rows, decisions, now), items, entries)]
        for field, of in ON_THEIR_WAY.items()
    }


async def missing_entries(journal: Journal) -> list[dict[str, Any]]:
    """Posted entries that the chain has dropped and that are not back, by platform."""
    facts = await journal.facts(MISSING)
    return [
        {"platform": key.removeprefix(MISSING), **json.loads(text)} for key, text in facts.items() if text
    ]


async def of_last_runs(journal: Journal, prefix: str) -> list[dict[str, str]]:
    """What the last run of each persona kept under a prefix, by platform and persona."""
    found = []
    for key, value in (await journal.facts(prefix)).items():
        platform, _, persona = key.removeprefix(prefix).rpartition(":")
        found += [{"platform": platform, "persona": persona, **row} for row in json.loads(value)]
    return found


def _costs(
    spent: Mapping[str, Mapping[str, int]], days: Mapping[str, Mapping[Unit, int]]
) -> dict[str, dict[str, dict[str, int | None]]]:
    """By owner ("" is the fleet) and unit: what was spent today, and the day's limit if there is one."""
    return {
        owner: {
            unit: {"spent": spent.get(owner, {}).get(unit, 0), "limit": days.get(owner, {}).get(unit)}
            for unit in COSTS
        }
        for owner in sorted(spent.keys() | days.keys())
    }


async def _lost(folder: Path, journal: Journal, daemon: int, since: str) -> list[dict[str, Any]]:
    """Daemons that ended without a stop: those found since then, and one that was not started again."""
    now = await lost_daemon(folder, journal, running=daemon)
    found = takewhile(lambda event: event["at"] >= since, events_newest_first(folder))
    told = [DaemonLost.model_validate(event) for event in found if event["type"] == "daemon.lost"]
    rows = ([now] if now and now not in told else []) + told
    back = {one.at: f"; back since {minute(one.at)} UTC" if one.at else "" for one in rows}
    return [one.model_dump(exclude={"type"}) | {"why": in_words(one) + back[one.at]} for one in rows]


def _started(folder: Path, daemon: int) -> str:
    """When the daemon that runs came up; "" without one, or when its record is gone."""
    found = (one for one in events_newest_first(folder) if one["type"] == "daemon.started") if daemon else ()
    newest = next(iter(found), {})
    return str(newest["at"]) if newest.get("pid") == daemon else ""


def _fence(config: FleetConfig, folder: Path) -> str:
    """Why the record of the escape battery does not count, "" while it does or where none was made."""
    if (record := read_record(folder)) is None:
        return ""
    return outdated(record, config.jail, datetime.now(UTC)) or ("" if record.holds else record.words())


def _schedule(platform: str, folder: Path) -> dict[str, str]:
    """Why the platform may not be tested now, and when that changes; no profile, no schedule."""
    try:
        schedule = load_platform(platform, folder)[0].schedule
    except FleetError:
        return {"closed": "", "changes": ""}
    now = datetime.now(UTC)
    return {"closed": schedule.closed(now), "changes": schedule.changes(now)}


def _degraded(folder: Path, live: Mapping[str, Any]) -> str:
    """Why a daemon starts no run: by its own word, else by the disk as seen from here."""
    why = clean(str(live.get("degraded", "")), 200)
    why = why or (
        "the disk is read-only" if read_only(folder) else "" if laid(folder) else "the disk is full"
    )
    return f"{why}: no new run starts" if why else ""


def _personas(folder: Path, live: Mapping[str, Any]) -> tuple[list[PersonaSummary], list[dict[str, str]]]:
    """The personas in use, and what is refused: by the daemon's own word if it runs, else by the files.

    Expectations in the files are not judged, for the time; `personas check` does it.
    """
    if live:
        loaded = [PersonaSummary(**one) for one in live.get("loaded", ())]
        refused = live.get("refused", {}).items()
    else:
        from fleet.personas.load import load_all
        from sandbox.tools import TOOLS  # these two are a quarter of the command's time

        places = persona_dirs(folder).values()
        good, errors = load_all(*places, tools=TOOLS, bad_args=lambda *_: None, bad_expectation=lambda *_: ())
        loaded = [PersonaSummary.of(one.persona) for one in good]
        refused = [(Path(one.file).stem, str(one)) for one in errors]
    return loaded, [{"persona": clean(name), "reason": clean(str(why), 300)} for name, why in refused]


def _digest(document: WorklistDocument, since: str, left_out: Collection[str]) -> dict[str, Any]:
    items = document.changed(since) if "still" in left_out else (*document.items, *document.closed)
    made = daily_digest(items, WorklistHeader(as_of=document.as_of), since, left_out)
    groups = [group for group in (*GROUPS, STRANGERS) if group not in left_out]
    return {group: [asdict(one) for one in getattr(made, group)] for group in groups}


def _log(live: Mapping[str, Any], runs: Collection[Mapping[str, Any]]) -> dict[str, Any]:
    """How far triage is behind the log; not `behind` while a run of it is on its way."""
    log = live.get("log", {})
    entries, read = log.get("entries"), log.get("read", 0)
    at_it = any(row["persona"] == "qa-triage" and row["state"] != "ended" for row in runs)
    return {"entries": entries, "read": read, "behind": entries is None or (entries > read and not at_it)}
