"""`fleet runs replay`: the calls of an earlier run asked again, and where the answers differ."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from fleet.app.persona_sets import one, roster
from fleet.app.wiring import open_world
from fleet.cli.console import note, refuse_if_stopped, state, table
from fleet.cli.daemon_page import daemon_of
from fleet.cli.progress import Progress
from fleet.cli.run.remote import outcome, queue
from fleet.drivers.replay import excluded, recorded
from fleet.events.model import Header
from fleet.runs.call.sealed import TRAJECTORY
from fleet.runs.replay import again, compared
from fleet.runs.run import fire, recover
from fleet.text import clean, line, spoken


def planned(path: Path) -> dict[str, Any]:
    """Which calls would be asked again, and why the others would not."""
    was = recorded(path)
    without = excluded(was.calls)
    calls = [
        {
            "call": call.number,
            "probe": call.probe,
            "tool": call.tool,
            "args": call.args,
            "would run": without.get(call.number) or "yes",
        }
        for call in was.calls
    ]
    return {"replayed": was.header.run, "persona": was.header.persona, "calls": calls}


async def replay(path: Path, platform: str | None) -> dict[str, Any]:
    """One run under the earlier run's persona: its grant and budget, the current dial. Beside a daemon it is
    the daemon's."""
    folder = state()
    refuse_if_stopped(folder)
    was = recorded(path).header
    if daemon_of(folder):
        asked = queue(folder, {"replay": was.run, "platform": platform or ""}, f"fleet runs replay {was.run}")
        report = await outcome(folder, asked["run"])
        report["run"] = asked["run"]
    else:
        report = await _own(folder, path, was, platform)
    told = compared(path, folder / "runs" / report["run"] / TRAJECTORY)
    return {"replayed": was.run, **{key: report[key] for key in ("run", "outcome", "detail")}, **told}


async def _own(folder: Path, path: Path, was: Header, platform: str | None) -> dict[str, Any]:
    personas, _ = roster()
    persona, driver = again(path, one(was.persona))
    async with open_world(
        folder, personas=personas, platform=platform or was.platform, watch=(Progress(),)
    ) as world:
        for old in await recover(world):
            note(f"recovered run {old.run} of {old.persona}: {spoken(old.outcome)}, {old.detail}")
        return asdict(await fire(world, persona, trigger=f"replay:{was.run}", driver=driver))


def exit_code(data: dict[str, Any]) -> int:
    """1 when an answer differs, 75 when one is missing: a missing answer does not count as equal."""
    return 1 if data["different"] else 75 if data["unseen"] else 0


def show_plan(data: dict[str, Any]) -> None:
    """The plan as a table."""
    columns = ("call", "probe", "tool", "args", "would run")
    rows = ([line(str(row[key]), 80) for key in columns] for row in data["calls"])
    table(columns, rows, empty="no calls on record")


def show(data: dict[str, Any]) -> None:
    """The outcome, then every call, then every difference."""
    print(clean(f"run {data['run']}: {spoken(data['outcome'])} {data['detail']}"))
    for what, (before, after) in data["changed"].items():
        print(clean(f"{what}: {before} then, {after} now"))
    columns = ("call", "probe", "tool", "state", "reason")
    table(columns, ([row[key] for key in columns] for row in data["calls"]), empty="no calls on record")
    for row in data["calls"]:
        for found in row["differences"]:
            before, after = (line(repr(found[key]), 120) for key in ("before", "after"))
            print(clean(f"call {row['call']} {found['path']}: {before} -> {after}"))
