"""`fleet status`: what the fleet may do and what it did last."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fleet.app.journal import known_journal
from fleet.app.lock import holder
from fleet.cli.console import Json, make_app, put, run, state, table
from fleet.cli.dial import show as show_dial
from fleet.cli.outages import line_of, open_outages
from fleet.config import ROOT, FleetConfig, load_fleet
from fleet.disk_reserve import laid
from fleet.gate.budget import Unit, day_limits, left_today
from fleet.gate.stop import stopped
from fleet.personas.load import load_all
from fleet.store.location import shown, store_place
from fleet.store.tables.units import FLEET, number, word
from fleet.text import clean
from sandbox.tools import TOOLS

app = make_app()
FOLDER = ROOT / "personas"


@app.command()
def status(as_json: Json = False) -> None:
    """Show what the fleet may do and what it did last."""
    data = run(gather)
    put(data, as_json=as_json, text=lambda: _print(data))


async def gather() -> dict[str, Any]:
    """Dial, STOP, the latest runs and the findings by state."""
    folder, config = state(), load_fleet()
    pause = stopped(folder)
    data: dict[str, Any] = {
        "dial": show_dial(),
        "stop": clean(pause.why) if pause else "",
        "platform": config.platform,
        "journal": shown(store_place(config.store, folder)),
        "state": str(folder),
        "daemon": holder(folder),
        "degraded": "",
        "waiting": {},
        "left_today": {},
        "runs": [],
        "skips": [],
        "findings": {},
        "outages": [],
    }
    if data["daemon"] and not laid(folder):
        data["degraded"] = "the disk is full: no new run starts"
    if (known := await known_journal(folder)) is not None:
        async with known as journal:
            data["waiting"] = await journal.waiting(data["platform"])
            data["left_today"] = await left_today(journal, _days(config))
            data["skips"] = [asdict(row) for row in await journal.skips(limit=5)]
            data["outages"] = await open_outages(journal)
            data["runs"] = [asdict(row) for row in await journal.runs(limit=10)]
            for row in await journal.findings():
                data["findings"][row.state] = data["findings"].get(row.state, 0) + 1
    return data


def _days(config: FleetConfig) -> dict[str, dict[Unit, int]]:
    """What is left of today's budget: "" for the fleet, then every persona with a daily limit."""
    good, _ = load_all(FOLDER, tools=TOOLS, bad_args=lambda *_: None, bad_expectation=lambda _: None)
    days = {one.persona.name: day_limits(one.persona.budget.day) for one in good if one.persona.budget}
    return {FLEET: day_limits(config.budget)} | {name: limits for name, limits in days.items() if limits}


def _print(data: dict[str, Any]) -> None:
    dial = data["dial"]
    by = f" by {dial['who']} at {dial['when']}" if dial["who"] else ""
    print(f"dial      {dial['rung']}{by}  {dial['why']}".rstrip())
    print(f"stop      {data['stop'] or 'no'}")
    print(f"platform  {data['platform']}")
    print(f"journal   {data['journal']}")
    print(f"daemon    {'pid ' + str(data['daemon']) if data['daemon'] else 'not running'}")
    if data["degraded"]:
        print(f"degraded  {data['degraded']}")
    for outage in data["outages"]:
        print(f"outage    {line_of(outage)}")
    if data["waiting"]:
        print("waiting   " + ", ".join(f"{count} {name}" for name, count in sorted(data["waiting"].items())))
    for owner, units in data["left_today"].items():
        left = ", ".join(f"{number(unit, count)} {word(unit)}" for unit, count in units.items())
        print(f"today     {owner or 'the fleet'} has {left or 'no limit'} left")
    counts = ", ".join(f"{count} {state}" for state, count in sorted(data["findings"].items()))
    print(f"findings  {counts or 'none'}")
    columns = ("run_id", "persona", "state", "outcome", "started", "detail")
    table(columns, ([row[c] for c in columns] for row in data["runs"]), empty="no runs yet")
    if data["skips"]:
        print()
        table(("skipped", "at", "reason"), ([row["key"], row["at"], row["reason"]] for row in data["skips"]))
