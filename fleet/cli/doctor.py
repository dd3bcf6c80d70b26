"""`fleet doctor`: check this machine by behaviour, with a remedy for each failure."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fleet.app.bootstrap import SPOOL, image
from fleet.app.journal import known_journal
from fleet.app.persona_sets import roster
from fleet.chain.keys import load_key
from fleet.chain.rpc import Rpc
from fleet.cli.console import Json, make_app, put, run, state, table
from fleet.config import ROOT, key_file, load_fleet, load_platform
from fleet.errors import FleetError
from fleet.gate.dial import DIAL, read_dial
from fleet.jail.browsercheck import try_browser
from fleet.jail.choice import left_over, open_jail, why_no_jail
from fleet.jail.locate import BROWSER, browser_rules
from fleet.jail.model import Image, Jail
from fleet.jail.toolcheck import try_programs
from fleet.oracles.statistics import ranks
from fleet.runs.settlement.lost_runs import keys_without_runs
from fleet.store.location import shown, store_place
from sandbox.browser import installed

app = make_app()

Row = tuple[str, bool, str]


@app.command()
def doctor(
    platform: Annotated[
        str | None, typer.Option(help="Profile to check; default the configured one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check this machine: jail, compiler, target, keys, personas, state directory, journal, dial."""
    rows = run(lambda: examine(platform))
    data = {
        "ok": all(good for _, good, _ in rows),
        "checks": [dict(zip(KEYS, row, strict=True)) for row in rows],
    }
    put(data, as_json=as_json, text=lambda: table(KEYS, ((n, "ok" if g else "NO", s) for n, g, s in rows)))
    if not data["ok"]:
        raise typer.Exit(4)


KEYS = ("check", "ok", "seen")


async def examine(platform: str | None) -> list[Row]:
    """Every check, ordered so that the first failure explains the later ones."""
    rows: list[Row] = []
    for name, check in CHECKS.items():
        try:
            rows += await check(platform)
        except FleetError as error:
            rows.append((name, False, f"{error}; try: {error.remedy}" if error.remedy else str(error)))
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
        ("dial", True, f"{dial.rung}{': ' + dial.why if dial.why else ''}"),
    ]


async def _personas(_: str | None) -> list[Row]:
    found, errors = roster()
    return [("personas", not errors, str(errors[0]) if errors else ", ".join(sorted(found)))]


async def _target(platform: str | None) -> list[Row]:
    profile, path = load_platform(platform or load_fleet().platform, state())
    async with Rpc(profile.chain.rpc) as rpc:
        await rpc.check_target(profile)
    return [("platform", True, f"{profile.name}: chain {profile.chain.id} at {profile.chain.rpc} ({path})")]


async def _keys(_: str | None) -> list[Row]:
    config = load_fleet()
    load_key(key_file(config, "identity", state()))
    load_key(key_file(config, "sponsor", state()))
    return [("keys", True, "identity and sponsor are readable, and only by this user")]


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
    rows = [head, *((f"jail: {name}", good, seen) for name, good, seen in tier.checks)]
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
    jail = _make()(Image(guest="sandbox.browsercheck"))
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


async def _measurements(_: str | None) -> list[Row]:
    """Without the extra the fleet still works: latency is not applicable."""
    why = ranks.missing()
    return [("measurements", True, f"not applicable: {why}" if why else "latency is judged by ranks")]


CHECKS: dict[str, Callable[[str | None], Awaitable[list[Row]]]] = {
    "state directory": _state,
    "store": _store,
    "personas": _personas,
    "jail": _jail,
    "programs": _programs,
    "browser": _browser,
    "platform": _target,
    "keys": _keys,
    "measurements": _measurements,
}
