"""`fleet up`: the resident service. Triggers fire personas until a signal ends it."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from fleet import disk_reserve
from fleet.app.bootstrap import GRACE_S, Bootstrap, Options, fenced
from fleet.cli.console import DryRun, Json, make_app, note, put, run, state, table
from fleet.cli.groups import at_once
from fleet.clock import iso
from fleet.config import load_fleet, load_platform
from fleet.config.files import persona_dirs
from fleet.errors import FleetError, Unreachable, UsageError
from fleet.events.daemon_words import soon
from fleet.gate.dial import DIAL, read_dial
from fleet.retry import START_UP
from fleet.service.logs import configure
from fleet.service.readiness import Notifier

app = make_app()
_LOG = logging.getLogger("fleet.service")
Resident = Callable[[Options, Bootstrap, Notifier, Callable[[], None]], Awaitable[bool]]


@app.command()
def up(
    platform: Annotated[
        str | None, typer.Option(help="Profile to run against; default: the configured one.")
    ] = None,
    personas: Annotated[
        Path | None,
        typer.Option(help="Only this folder of persona files; default: all that `personas list` shows."),
    ] = None,
    grace: Annotated[
        float, typer.Option(min=0, max=3600, help="Seconds that runs may continue after the first SIGTERM.")
    ] = GRACE_S,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Serve the pages on this port of 127.0.0.1 too."),
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Run every persona when it is due. SIGTERM or Ctrl-C drains, SIGHUP reloads the configuration.

    The first one gives runs in flight their grace, then exits 0; a second one, a second later, ends at once
    with 143 or 130, and the next start settles. Ctrl-C before the service is ready exits 130.
    """
    if personas and not personas.is_dir():
        raise UsageError(f"{personas}: not a folder", remedy="name a folder of persona files")
    folders = (personas.absolute(),) if personas else tuple(persona_dirs(state()).values())
    if dry_run:
        plan = planned(folders, platform)

        def text() -> None:
            print(f"platform  {plan['platform']}  dial {plan['dial']}")
            now = iso(datetime.now(UTC))
            columns = ("persona", "next", "triggers")
            rows = (
                [row["persona"], soon(now, row["next"]) if row["next"] else "-", row["triggers"]]
                for row in plan["personas"]
            )
            table(columns, rows)
            for reason in plan["refused"]:
                note(f"refused: {reason}")

        put(plan, as_json=as_json, text=text)
        return
    configure()
    if run(lambda: stay(Options(state(), folders, platform, grace, port))):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # what is ignored stays so in the next program
        os.execv(sys.executable, [sys.executable, "-m", "fleet.cli", *sys.argv[1:]])


def planned(folders: Sequence[Path], platform: str | None) -> dict[str, Any]:
    """What would run, when first, and why the rest would not; beside a daemon, what it would start next."""
    from fleet.app.forecast import forecast
    from fleet.app.persona_sets import roster

    config = load_fleet()
    profile, path = load_platform(platform or config.platform, state())
    found, errors = roster(*folders)
    first = run(lambda: forecast(state(), profile, found.values()))
    upcoming = {name: iso(at) for name, at in first.items()}
    rows = [
        {"persona": name, "triggers": one.persona.starts or "by hand only", "next": upcoming.get(name, "")}
        for name, one in sorted(found.items())
    ]
    return {
        "platform": profile.name,
        "profile": str(path),
        "dial": str(read_dial(state() / DIAL).rung),
        "personas": rows,
        "refused": [str(error) for error in errors],
    }


async def stay(options: Options) -> bool:
    """Start as soon as chain and disk allow it: a node that is down at boot does not end the start.

    True if the daemon ended to be started again, with a changed profile.
    """
    signal.signal(signal.SIGHUP, lambda *_: None)  # each attempt reads the configuration anew
    notifier, failures = Notifier(), 0
    while True:
        opened = anyio.Event()
        try:
            async with fenced(options.state, options.platform) as fence:
                # a run's libraries take a second to import: in a thread, during the jail's self-check
                resident = await anyio.to_thread.run_sync(_resident, bool(options.port))
                return await resident(options, fence, notifier, opened.set)
        except FleetError as error:
            waits = "" if opened.is_set() else _may_pass(error, options.state)
            if not waits:
                raise
            _LOG.warning("waiting for %s: %s", waits, error)
            notifier.say(f"EXTEND_TIMEOUT_USEC={int((START_UP.longest_s + 60) * 1e6)}")
            notifier.status(f"waiting for {waits}")
            with anyio.move_on_after(START_UP.pause(failures)):
                await (shown_waiting(options, waits) if options.port else anyio.sleep_forever())
            failures += 1


async def shown_waiting(options: Options, waits: str) -> None:
    """Show the pages while there is no daemon, with what it waits for, until cancelled."""
    from fleet.app.persona_sets import roster
    from fleet.service.listeners import loopback
    from fleet.web.site import WebPages, shown

    pages = WebPages(options.state, load_fleet().page_hosts, waits)
    async with shown(pages, roster(*options.folders)[0], loopback(options.port or 0)):
        await anyio.sleep_forever()


def _resident(pages: bool) -> Resident:
    """With `pages` it has those for a browser, which take 5 MB."""
    with at_once():
        from fleet.app.daemon import reside

        if not pages:
            return reside
        from fleet.web.site import WebPages

    async def resident(
        options: Options, fence: Bootstrap, notifier: Notifier, opened: Callable[[], None]
    ) -> bool:
        async with aclosing(WebPages(options.state, fence.config.page_hosts)) as shown:
            return await reside(options, fence, notifier, opened, shown)

    return resident


def _may_pass(error: FleetError, state: Path) -> str:
    """What a daemon that cannot start waits for, or ""; on a full disk it frees the ballast first."""
    if disk_reserve.relieve(state) or os.strerror(errno.ENOSPC) in str(error):
        return "room on the disk"
    return "the chain" if isinstance(error, Unreachable) and error.retryable else ""
