"""What the acts of a run leave on pages of the platform: accounts, posts, uploads, changes.

Each act is an effect of the journal, recorded before it is made. What became of it is read from the run's own
records, the trajectory and the egress, so that it is the same after a kill. What an answer says was created
is deleted at the end of the run, if its own address offers that.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from fleet.broker.egress_read import read_egress, refused
from fleet.broker.egress_record import CUT
from fleet.drivers.explore.pages import TOOL
from fleet.drivers.session import RunOver
from fleet.events.model import ResourceReleased, ToolResponded
from fleet.events.trajectory import read
from fleet.runs.call.choices import SILENT, tidying
from fleet.runs.call.session import RunSession
from fleet.runs.context import FleetContext, RunContext
from fleet.store.rows import EffectRow, EffectState
from sandbox.spec import UNSAFE

GONE = frozenset({200, 202, 204, 404, 410})
"""Answers to DELETE after which a thing is not there."""
MOST = 50
"""Things of one run whose deletion is tried."""
_CREATED = 201
_KINDS = 12
"""Different requests of one act that are counted by name."""


LEFT: Mapping[EffectState, str] = {"open": "not known yet", "done": "may be there"}
"""States of an act on a page after which something may be there."""


async def settle_pages(world: FleetContext, run: str) -> None:
    """Resolve every act of a run that is not resolved, from the records of the run; asks nothing."""
    rows = await world.journal.effects(run, ["page"], ["open"])
    if not rows:
        return
    folder, calls = world.folder(run), {row.data["call"] for row in rows}
    answers = {
        event.call: event.result
        for event in read(folder / "trajectory.jsonl")
        if isinstance(event, ToolResponded) and event.call in calls
    }
    sent = [one for one in read_egress(folder) if one["verb"] in UNSAFE]
    for row in rows:
        state, found = fate(row, answers.get(row.data["call"]), sent)
        await world.journal.resolve(row.effect_id, state, found)


def fate(
    row: EffectRow, result: Mapping[str, Any] | None, sent: Sequence[Mapping[str, Any]]
) -> tuple[EffectState, dict[str, Any]]:
    """What became of an act: `done` if something may be left, `failed` if nothing can be, `released` if all
    was removed. `sent` are the requests of the run that change something."""
    call, method, url = row.data["call"], row.data["method"], row.data["url"]
    asked = [one for one in sent if one["call"] <= call <= one.get("last_call", one["call"])]
    if row.data["tool"] == TOOL:  # calls of one jail share their requests
        asked = [one for one in asked if (one["verb"], one["host"]) == (method, urlsplit(url).netloc)]
    taken = [one for one in asked if not refused(one["rule"]) and not 400 <= one["status"] < 500]
    counts = Counter(f"{one['verb']} {one.get('path', '')}" for one in taken if one["verb"] != "DELETE")
    found: dict[str, Any] = {"requests": dict(counts.most_common(_KINDS))}
    if result is None:
        if not taken:
            return "failed", {"why": "nothing was taken" if asked else "nothing was sent"}
        unknown = all(one["rule"] == CUT for one in taken)
        return "done", found | {
            "why": "it was sent, and its answer is not known" if unknown else "no answer kept"
        }
    if row.data["tool"] != TOOL:
        stays = [str(one) for one in result.get("remains", ())]
        if not counts:
            return "failed", {"why": "nothing was taken"}
        return ("done" if stays or not result["ok"] else "released"), found | {"things": stays}
    status = result.get("status", 0)
    if 400 <= status < 500 or not (status or taken):
        return "failed", {"why": f"it answers {status}" if status else "nothing was taken"}
    made = created(url, result) if status == _CREATED else ""
    return "done", {"why": f"it answers {status}" if status else "its answer is not known", "made": made}


def created(url: str, result: Mapping[str, Any]) -> str:
    """The URL of what an answer says was created: its Location, else its id below the URL that was asked.

    Only below that URL: what an act names above or beside it is not certainly of our making.
    """
    base = url.partition("?")[0].rstrip("/") + "/"
    named = urljoin(url, str(result.get("headers", {}).get("location", "")))
    if not named.startswith(base):
        found: Any = None
        with suppress(ValueError):
            found = json.loads(str(result.get("text", "")))
        ident = found.get("id") if isinstance(found, dict) else None
        named = base + quote(str(ident), safe="") if isinstance(ident, str | int) and ident != "" else ""
    return named if len(named) > len(base) and ".." not in named else ""


async def remove_made(context: RunContext, session: RunSession) -> None:
    """Delete what this run created, where the address of a thing says that it may be deleted (Allow)."""
    world, run = context.fleet, context.run
    await settle_pages(world, run)
    made = [row for row in await world.journal.effects(run, ["page"], ["done"]) if row.data.get("made")]
    if not made:
        return
    calls = {row.effect_id: (TOOL, {"url": row.data["made"], "method": "DELETE"}) for row in made}
    likely = [row for row in made if session.is_likely([calls[row.effect_id]])]
    session.decide(tidying(likely or made), [calls[row.effect_id] for row in likely or made])
    for row in made:
        if row not in likely:
            await _note(world, row, SILENT)
    with suppress(RunOver):  # a budget, the time or STOP ended it: what stays is listed
        for row in likely[:MOST]:
            url = row.data["made"]
            offered = await session.call(TOOL, {"url": url, "method": "OPTIONS"}, probe="tidy")
            allowed = str(offered.result.get("headers", {}).get("allow", ""))
            if offered.denied or "DELETE" not in allowed.upper():
                await _note(world, row, "its address does not offer to delete it")
                continue
            await _note(world, row, "its deletion was begun")
            answer = await session.call(TOOL, {"url": url, "method": "DELETE"}, probe="tidy")
            status = answer.result.get("status", 0)
            if status in GONE:
                await world.journal.resolve(row.effect_id, "released", {"why": "deleted"})
                context.stream.emit(ResourceReleased(kind="page", ref=row.ref))
            else:
                await _note(world, row, f"DELETE answers {status}" if status else "DELETE was not answered")


async def _note(world: FleetContext, row: EffectRow, why: str) -> None:
    await world.journal.resolve(row.effect_id, "done", {"why": why})


def left_there(effects: Sequence[EffectRow], *, everything: bool = False) -> list[dict[str, Any]]:
    """The acts on pages of which something may still be there, or all of them."""
    return [
        {
            "run": one.run_id,
            "at": one.at,
            "what": one.data["what"],
            "where": one.ref,
            "state": LEFT.get(one.state, "removed" if one.state == "released" else "nothing made"),
            "made": one.data.get("made", ""),
            "things": one.data.get("things", []),
            "requests": one.data.get("requests", {}),
            "why": one.data.get("why", ""),
        }
        for one in effects
        if everything or one.state in LEFT
    ]
