"""`fleet check posture`: what the watch of the contracts last saw and told, and what a person announces to
it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from fleet.app.journal import known_journal
from fleet.app.posture import posture_seen
from fleet.cli.console import Json, make_app, put, run, state, table
from fleet.clock import iso, minute
from fleet.config import load_fleet
from fleet.errors import ConfigError, UsageError
from fleet.personas.duration import parse_duration
from fleet.store.journal import Journal
from fleet.text import line
from fleet.triggers.chain.telling import EXPECTED, RING, SNAPSHOT, expected

app = make_app()
SHOWN = 20
WIDE = 200


@app.command()
def posture(
    announce: Annotated[
        str,
        typer.Option(
            metavar="PART",
            help="Announce a change: a part as the list has it, and its new value; without it, any.",
        ),
    ] = "",
    reason: Annotated[str, typer.Option(help="Why, for who reads the notice.")] = "",
    lasts: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long it is announced: 30m, 24h.")
    ] = "24h",
    after: Annotated[
        int, typer.Option(metavar="NUMBER", help="Show the posture after the change with this number.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Show the posture of the watched contracts, and the last changes; or announce one that is to come.

    It reads the journal alone. A change is announced by the profile, by a person, by an operation that was
    queued in a timelock, or by an event of the contract; else it is silent.
    """
    if announce and not reason:
        raise UsageError("--announce needs a reason", remedy="add --reason 'ticket 7'")
    try:
        seconds = parse_duration(lasts)
    except ValueError as error:
        raise UsageError(f"--for: {error}") from None
    name = load_fleet().platform

    async def read() -> dict[str, Any]:
        known = await known_journal(state())
        if known is None:
            raise ConfigError("there is no journal yet: nothing was watched", remedy="fleet up")
        async with known as journal:
            if announce:
                await _announce(journal, name, announce, reason, seconds)
            data = await posture_seen(journal, name)
            if after:
                then = await journal.get(f"{SNAPSHOT}{name}:{after % RING:03d}")
                if then is None or all(one["number"] != after for one in data["changes"]):
                    raise UsageError(f"there is no change {after}", remedy="fleet check posture --json")
                data |= {"parts": json.loads(then), "after": after}
            return data

    data = run(read)
    put(data, as_json=as_json, text=lambda: _print(data))


async def _announce(journal: Journal, platform: str, part: str, why: str, seconds: float) -> None:
    now = datetime.now(UTC)
    if len(part.split()) < 2:
        raise UsageError(
            f"{part!r} is not a part", remedy="write it as `0xCONTRACT PART [VALUE]`, such as `0x… owner`"
        )
    until = iso(now + timedelta(seconds=seconds))
    while True:
        before = await journal.get(EXPECTED + platform)
        rows = [one for one in await expected(journal, platform, now) if one["part"] != part.lower()]
        rows.append({"part": part.lower(), "why": line(why, WIDE), "until": until})
        if await journal.swap(EXPECTED + platform, before, json.dumps(rows)):
            return


def _print(data: dict[str, Any]) -> None:
    if data["block"] is None:
        print(f"{data['platform']}: nothing was watched yet")
        return
    print(f"{data['platform']} at block {data['block']}")
    table(("part", "value"), ([line(part, WIDE), line(value, WIDE)] for part, value in data["parts"].items()))
    print()
    rows = (
        [
            str(one["number"]),
            minute(one["at"]),
            str(one["block"]),
            "taken back by a reorganisation"
            if one["undoes"]
            else line(f"{one['judged']} {one['by']}".strip(), WIDE),
            line(one["part"], WIDE),
            line(f"{one['before'] or 'none'} → {one['after'] or 'none'}", WIDE),
        ]
        for one in data["changes"][:SHOWN]
    )
    table(("number", "at", "block", "how", "part", "change"), rows)
    for one in data["announced"]:
        what = f"{line(one['part'], WIDE)} ({line(one['why'], WIDE)})"
        print(f"announced until {minute(one['until'])} UTC: {what}")
