"""`fleet runs replay`: the calls of an earlier run asked again, and where the answers differ."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fleet.app.persona_sets import one, roster
from fleet.app.wiring import open_world
from fleet.cli.console import note, refuse_if_stopped, state, table
from fleet.cli.progress import Progress
from fleet.drivers.compare import compare
from fleet.drivers.replay import Replay, excluded, recorded, repeatable
from fleet.personas.model import PolicySection
from fleet.runs.driver_choice import DriverChoice
from fleet.runs.run import fire, recover
from fleet.text import clean, line

AROUND = ("persona_sha256", "platform", "chain_id", "rung", "jail", "build")
"""What may have changed around the calls."""


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
    """One run under the earlier run's persona: its grant and budget, the current dial."""
    folder = state()
    refuse_if_stopped(folder)
    was = recorded(path)
    persona = one(was.header.persona)  # the same grant and budget, no probes, one turn per call
    policy = PolicySection(max_turns_per_run=len(repeatable(was.calls)) + 1)
    plan = persona.persona.model_copy(update={"probe": (), "policy": policy})
    persona = replace(persona, persona=plan)
    personas, _ = roster()
    target = platform or was.header.platform
    async with open_world(folder, personas=personas, platform=target, watch=(Progress(),)) as world:
        for old in await recover(world):
            note(f"recovered run {old.run} of {old.persona}: {old.outcome}, {old.detail}")
        driver = DriverChoice(name="replay", drive=Replay(was), patience=len(was.calls) + 1)
        report = await fire(world, persona, trigger=f"replay:{was.header.run}", driver=driver)
        now = recorded(world.folder(report.run) / "trajectory.jsonl")
    compared = [asdict(row) for row in compare(was, now)]
    return {
        "replayed": was.header.run,
        "run": report.run,
        "outcome": report.outcome,
        "detail": report.detail,
        "changed": {
            key: (old, new)
            for key in AROUND
            if (old := getattr(was.header, key)) != (new := getattr(now.header, key))
        },
        "calls": compared,
        "different": sum(row["state"] == "different" for row in compared),
        "unseen": sum(row["state"] in ("no answer", "refused") for row in compared),
    }


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
    print(clean(f"run {data['run']}: {data['outcome']} {data['detail']}"))
    for what, (before, after) in data["changed"].items():
        print(clean(f"{what}: {before} then, {after} now"))
    columns = ("call", "probe", "tool", "state", "reason")
    table(columns, ([row[key] for key in columns] for row in data["calls"]), empty="no calls on record")
    for row in data["calls"]:
        for found in row["differences"]:
            before, after = (line(repr(found[key]), 120) for key in ("before", "after"))
            print(clean(f"call {row['call']} {found['path']}: {before} -> {after}"))
