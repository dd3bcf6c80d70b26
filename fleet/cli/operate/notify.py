"""`fleet service notify test|sent|silence|silences|unsilence`: notifications, by hand."""

from __future__ import annotations

import json
import re
import secrets
from datetime import timedelta
from typing import Annotated

import anyio
import typer

from fleet.app.journal import from_journal, open_journal
from fleet.cli.console import DryRun, Json, make_app, put, run, state, table
from fleet.clock import SystemClock, iso, minute
from fleet.config import EVENTS, load_fleet
from fleet.errors import ConfigError, Unreachable, UsageError
from fleet.service.notify.receivers import ping as fetch
from fleet.service.notify.receivers import receivers_of
from fleet.service.notify.state import SILENCE, NoticeMessage
from fleet.service.notify.watch import REACHED
from fleet.service.notify.watch import silences as stored

app = make_app(group=True)
Event = Annotated[str, typer.Argument(help=f"One of {', '.join(EVENTS)}.")]
_FOR = re.compile(r"([1-9][0-9]{0,3})([mhd])", re.ASCII)
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


@app.callback()
def _group() -> None:
    """Test notifications; silence an event for a while."""


@app.command("test")
def send_test(dry_run: DryRun = False, as_json: Json = False) -> None:
    """Send one message to every receiver now, whatever the hour; exit 4 if one does not take it."""
    rows = run(lambda: _test(dry_run))
    lines = ([row["receiver"], row["result"]] for row in rows)
    put(rows, as_json=as_json, text=lambda: table(("receiver", "result"), lines))
    if bad := [row["receiver"] for row in rows if row["result"] not in ("delivered", "would be sent")]:
        raise Unreachable(f"not delivered to {', '.join(bad)}", remedy="see docs/operate.md, Notifications")


async def _test(dry_run: bool) -> list[dict[str, str]]:
    config = load_fleet()
    to = receivers_of(config, state())
    if not to.by_name and not to.ping:
        raise ConfigError(
            "no receiver is configured", remedy="set notify.webhook, or write URLs into keys/notify (0600)"
        )
    message = NoticeMessage(
        id=secrets.token_hex(16),
        title=f"QA fleet, {config.platform}: a test",
        body="This is a test of the fleet's notifications. Nothing happened.",
        at=iso(SystemClock().now()),
        events=(),
        left=tuple(to.by_name),
    )
    results: dict[str, str] = {}

    async def one(name: str) -> None:
        results[name] = "would be sent" if dry_run else await to.by_name[name](message) or "delivered"

    async with anyio.create_task_group() as tasks:
        for name in to.by_name:
            tasks.start_soon(one, name)
    if to.ping:
        results["ping"] = "would be sent" if dry_run else await fetch(to.ping, well=True) or "delivered"
    return [{"receiver": name, "result": results[name]} for name in sorted(results)]


@app.command()
def silence(
    event: Event,
    for_: Annotated[str, typer.Option("--for", help="How long: 30m, 2h, 7d.")],
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Drop the notices of an event until a time; what happens meanwhile is not said later."""
    match = _FOR.fullmatch(for_)
    if match is None:
        raise UsageError(f"{for_!r} is not a length of time", remedy="write --for 30m, 2h or 7d")
    until = iso(SystemClock().now() + int(match[1]) * _UNITS[match[2]])
    _keep(event, until, dry_run)
    put(
        {"event": event, "until": until, "written": not dry_run},
        as_json=as_json,
        text=lambda: print(f"{event} is silent until {minute(until)} UTC"),
    )


@app.command()
def unsilence(event: Event, dry_run: DryRun = False, as_json: Json = False) -> None:
    """End the silence of an event."""
    _keep(event, "", dry_run)
    put(
        {"event": event, "written": not dry_run},
        as_json=as_json,
        text=lambda: print(f"{event} is said again"),
    )


@app.command()
def sent(as_json: Json = False) -> None:
    """List which message reached which receiver, and when; the newest first."""

    none: dict[str, str] = {}
    facts = run(lambda: from_journal(state(), lambda journal: journal.facts(REACHED), none))
    rows = []
    for key, text in sorted(facts.items(), reverse=True):
        at, ident, receiver = key.removeprefix(REACHED).split(" ", 2)
        rows.append({"at": at, "notice": ident, "receiver": receiver, **json.loads(text)})
    heads = ("at", "receiver", "made", "title", "notice")
    cells = ([row[head] for head in heads] for row in rows)
    put(rows, as_json=as_json, text=lambda: table(heads, cells, empty="no message was sent"))


@app.command()
def silences(as_json: Json = False) -> None:
    """List the silenced events and the end of each silence."""
    none: dict[str, str] = {}
    found = run(lambda: from_journal(state(), stored, none))
    now = iso(SystemClock().now())
    rows = [{"event": event, "until": until} for event, until in found.items() if until > now]
    lines = ([row["event"], f"{minute(row['until'])} UTC"] for row in rows)
    put(rows, as_json=as_json, text=lambda: table(("event", "until"), lines, empty="no silences"))


def _keep(event: str, until: str, dry_run: bool) -> None:
    if event not in EVENTS:
        raise UsageError(f"{event!r} is not an event", remedy=f"choose one of {', '.join(EVENTS)}")

    async def keep() -> None:
        async with await open_journal(state()) as journal:
            await journal.put(SILENCE + event, until)

    if not dry_run:
        run(keep)
