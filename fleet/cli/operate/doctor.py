"""`fleet doctor`: check this machine by behaviour, with a remedy for each failure."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fleet.app.bootstrap import SPOOL, image
from fleet.app.journal import known_journal
from fleet.app.persona_sets import roster
from fleet.cli.console import Json, make_app, put, run, state, table
from fleet.cli.daemon_page import daemon_of
from fleet.cli.operate import doctor_target
from fleet.cli.operate.doctor_target import Row
from fleet.config import ROOT, load_fleet, load_platform
from fleet.disk_reserve import room
from fleet.errors import FleetError
from fleet.gate.dial import DIAL, read_dial
from fleet.jail.choice import left_over, open_jail, why_no_jail
from fleet.jail.locate import BROWSER, browser_rules
from fleet.jail.model import Image, Jail
from fleet.jail.toolcheck import try_browser, try_programs
from fleet.oracles.statistics import ranks
from fleet.runs.settlement.lost_runs import keys_without_runs
from fleet.store.location import shown, store_place
from fleet.text import counted
from sandbox.browser.devtools import installed

app = make_app()


@app.command()
def doctor(
    platform: Annotated[
        str | None, typer.Option(help="Profile to check; default the configured one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check jail, chain, pages, programs, keys, balances, journal, disk, clock, browser and personas."""
    rows = run(lambda: examine(platform))
    data = {
        "ok": all(good for _, good, _ in rows),
        "checks": [dict(zip(KEYS, row, strict=True)) for row in rows],
        "next": upcoming(rows),
    }
    put(data, as_json=as_json, text=lambda: _print(rows, str(data["next"])))
    if not data["ok"]:
        raise typer.Exit(4)


KEYS = ("check", "ok", "seen")
INSIDE = "jail: "
"""Begin of the names of what a jail's self-check tried: shown to a person only where it failed."""


def _print(rows: Sequence[Row], after: str) -> None:
    held = counted(sum(name.startswith(INSIDE) and good for name, good, _ in rows), "fence")
    shown = [row for row in rows if not (row[0].startswith(INSIDE) and row[1])]
    table(KEYS, ((name, "ok" if good else "NO", _seen(name, good, seen, held)) for name, good, seen in shown))
    print(f"next: {after}")


def _seen(name: str, good: bool, seen: str, held: str) -> str:
    return f"{seen}: {held} tried and held" if name == "jail" and good else seen


async def examine(platform: str | None) -> list[Row]:
    """Every check, ordered so that the first failure explains the later ones."""
    rows: list[Row] = []
    first: dict[str, str] = {}
    for name, check in CHECKS.items():
        try:
            rows += await check(platform)
        except FleetError as error:
            said = f"{error}; try: {error.remedy}" if error.remedy else str(error)
            before = first.setdefault(said, name)
            rows.append((name, False, said if before == name else f"not looked at: see {before}"))
    return rows


async def _state(_: str | None) -> list[Row]:
    folder = state()
    info = folder.stat()
    private = info.st_uid == os.geteuid() and not info.st_mode & 0o077
    dial = read_dial(folder / DIAL)
    return [
        (
            "state directory",
            private,
            f"{folder}, mode {info.st_mode & 0o777:o}" + ("" if private else ": chmod 700"),
        ),
        ("dial", not dial.fault, f"{dial.rung}{': ' + dial.why if dial.why else ''}"),
    ]


async def _personas(_: str | None) -> list[Row]:
    found, errors = roster()
    return [("personas", not errors, str(errors[0]) if errors else ", ".join(sorted(found)))]


async def _jail(platform: str | None) -> list[Row]:
    section = load_fleet().jail
    if why := why_no_jail(section):
        return [("jail", False, why)]
    try:
        shown = image(*load_platform(platform or load_fleet().platform, state()))
    except FleetError:
        shown = Image()
    jail = open_jail(section, shown, pool=0, spool=_spool())
    try:
        tier = await jail.probe()
    finally:
        await jail.aclose()
    head: Row = ("jail", tier.ok, f"{tier.backend}, {tier.tier}")
    rows = [head, *((f"{INSIDE}{name}", good, seen) for name, good, seen in tier.checks)]
    left = await left_over(section)
    return [*rows, ("jail: containers", True, left)] if left else rows


def _make() -> Callable[[Image], Jail]:
    return partial(open_jail, load_fleet().jail, pool=0, spool=_spool())


def _spool() -> Path:
    spool = state() / SPOOL
    spool.mkdir(mode=0o700, exist_ok=True)
    return spool


async def _programs(platform: str | None) -> list[Row]:
    """The compiler on the profile's sample, the loader on its module; no line for a platform without them."""
    profile, path = load_platform(platform or load_fleet().platform, state())
    tried = await try_programs(image(profile, path), profile.compiler.program, _make())
    return [(one.name, one.ok, ("could not look: " if one.ours else "") + one.seen) for one in tried]


async def _browser(platform: str | None) -> list[Row]:
    """Whether pages can be opened in a browser; without one, what needs it is not applicable."""
    program = installed()
    if not program:
        return [
            ("browser", True, f"none: pages are not opened in one (not applicable); to get it: {BROWSER}")
        ]
    rules = browser_rules(ROOT)
    judged = "axe-core" if rules else "no axe-core: accessibility is not judged; to get it: make setup"
    jail = _make()(Image(guest="sandbox.browser.check"))
    try:
        seen = await try_browser(jail)
    finally:
        await jail.aclose()
    return [("browser", not seen, f"{seen or 'it starts in a jail'}: {program}, {judged}")]


async def _store(_: str | None) -> list[Row]:
    place = store_place(load_fleet().store, state())
    kind = "SQLite" if isinstance(place, Path) else "PostgreSQL"
    journal = await known_journal(state())
    keys = sorted(folder.parent.name for folder in state().glob("runs/*/keys"))
    if journal is None:
        lost = f", but keys of {', '.join(keys)} exist: was it lost?" if keys else ""
        return [("store", not keys, f"{kind}, {shown(place)}: not created yet{lost}")]
    async with journal:
        faults = await journal.faults()
        seen = "; ".join(faults) + "; restore a backup" if faults else f"schema {await journal.get('schema')}"
        lost = ", ".join(await keys_without_runs(state(), journal))
        told = f"the journal does not know {lost}: was it lost? `fleet up` settles them" if lost else "none"
    return [("store", not faults, f"{kind}, {shown(place)}: {seen}"), ("keys without runs", not lost, told)]


async def _disk(_: str | None) -> list[Row]:
    good, seen = room(state())
    return [("disk", good, seen if good else f"{seen}: no run starts; free space, fleet runs prune")]


async def _measurements(_: str | None) -> list[Row]:
    """Without the extra the fleet still works: latency is not applicable."""
    why = ranks.missing()
    return [("measurements", True, f"not applicable: {why}" if why else "latency is judged by ranks")]


CHECKS: dict[str, Callable[[str | None], Awaitable[list[Row]]]] = {
    "jail": _jail,
    "platform": doctor_target.target,
    "pages": doctor_target.pages,
    "programs": _programs,
    "keys": doctor_target.keys,
    "balances": doctor_target.balances,
    "store": _store,
    "disk": _disk,
    "clock": doctor_target.clock,
    "browser": _browser,
    "state directory": _state,
    "personas": _personas,
    "measurements": _measurements,
}
"""What no run can do without comes first; a later check may fail for an earlier one's reason."""


def upcoming(rows: Sequence[Row]) -> str:
    """The command to run next."""
    bad = {name for name, good, _ in rows if not good}
    if bad:
        return "fleet doctor, once the first NO is put right"
    if daemon_of(state()):
        return "fleet status"
    known = any(name == "store" and "not created yet" not in seen for name, _, seen in rows)
    return "fleet up --dry-run, then fleet up" if known else "fleet run qa-smoke --dry-run, then without it"
