"""`fleet items log`: the feedback log as it is, hostile entries included, and whether the mirror agrees."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import typer

from fleet.app.log_check import epochs_of, lines_of, open_log, timely, verified
from fleet.chain.keys import address_of, load_key
from fleet.chain.log.feedback import PAGE
from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.ports import FeedbackPort
from fleet.cli.console import DryRun, Json, make_app, note, put, put_rows, run, state
from fleet.clock import iso_seconds, minute
from fleet.config import Platform, key_file, load_fleet, load_platform
from fleet.errors import Unreachable, UsageError
from fleet.findings.reader import read
from fleet.store.rows import LogRecord
from fleet.text import clean, counted

PlatformName = Annotated[
    str | None, typer.Option("--platform", help="Profile to read; default: the configured one.")
]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds for the whole command.")]
PROGRESS_S = 5.0
"""Between two lines of progress."""
COLUMNS = ("index", "at", "sender", "grammar", "severity", "text")

app = make_app(group=True)


@app.callback()
def _group() -> None:
    """Read the feedback log, check the mirror of it, and copy it to another."""


@app.command("list")
def list_entries(
    platform: PlatformName = None,
    last: Annotated[int, typer.Option(min=1, max=100_000, help="Show the last N entries.")] = 50,
    epoch: Annotated[
        int | None, typer.Option(min=0, help="Show this epoch of the mirror: what was there before a clear.")
    ] = None,
    timeout: Timeout = 60.0,
    as_json: Json = False,
) -> None:
    """Show the newest entries, oldest first."""
    profile, _ = load_platform(platform or load_fleet().platform, state())

    async def fetch() -> list[dict[str, Any]]:
        if epoch is not None:
            return await _mirrored(profile, epoch, last)
        async with open_log(profile, state()) as log:
            return await timely(
                lambda: _tail(log, last),
                timeout,
                f"reading the last {counted(last, 'entry', 'entries')}",
                log,
            )

    rows = run(fetch)
    shown = rows
    if sys.stdout.isatty():  # sender and time shortened; a pipe and --json have all of them
        shown = [
            row | {"sender": f"{row['sender'][:6]}…{row['sender'][-4:]}", "at": minute(row["at"])}
            for row in rows
        ]
    put_rows(rows if as_json else shown, COLUMNS, as_json=as_json, empty="the log is empty")


@app.command("verify")
def verify(platform: PlatformName = None, timeout: Timeout = 60.0, as_json: Json = False) -> None:
    """Check the mirror: its hash chain against itself, and samples of it against the log.

    Exit status 1 when something differs.
    """
    profile, _ = load_platform(platform or load_fleet().platform, state())
    found = run(lambda: verified(profile, state(), timeout))
    put(found, as_json=as_json, text=lambda: print("\n".join(lines_of(found))))
    if found["differs"]:
        raise typer.Exit(1)


@app.command("copy")
def copy_entries(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A log, as `log` of a profile names it.")],
    target: Annotated[
        str, typer.Argument(metavar="TO", help="file, file:NAME, chain, contract:0x…, erc8004:0x…")
    ],
    platform: PlatformName = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Copy the fleet's own entries from one log of a platform to another, each once and in their order.

    Again, it goes on where it ended. Entries of strangers are left out; times are those of the copy.
    """
    name = platform or load_fleet().platform
    found = run(lambda: _copied(name, source, target, dry_run=dry_run))

    def text() -> None:
        verb = "would copy" if dry_run else "copied"
        print(f"{verb} {counted(found['entries'], 'entry', 'entries')} from {source} to {target}")
        print(f"there already: {found['there']}; of others, left out: {found['foreign']}")

    put(found, as_json=as_json, text=text)


async def _copied(name: str, source: str, target: str, *, dry_run: bool) -> dict[str, Any]:
    from fleet.app.log_copy import copy_plan  # what signs, which the other commands here do without
    from fleet.app.publisher import open_publisher

    given, _ = load_platform(name, state())
    origin = given.with_log(source)
    if origin.log_name == given.with_log(target).log_name:
        raise UsageError(f"{source} and {target} are one log")
    async with (
        open_log(origin, state()) as log,
        open_publisher(state(), platform=name, log=target) as publisher,
    ):
        if not dry_run:
            await publisher.settle()
        wrote = address_of(load_key(key_file(load_fleet(), "identity", state()))) if origin.signs else ""
        ours = {*publisher.ours, wrote, *(() if origin.logs_on_chain else (ZERO_ADDRESS,))}
        plan = await copy_plan(log, publisher.log, ours=ours, author=publisher.signer.author.lower())
        since = time.monotonic()
        for done, text in enumerate(() if dry_run else plan.texts):
            if time.monotonic() - since > PROGRESS_S:
                since = time.monotonic()
                note(f"{done} of {len(plan.texts)} copied")
            await publisher.log.post(text, charge="none")
    return {
        "from": source,
        "to": target,
        "entries": len(plan.texts),
        "there": plan.there,
        "foreign": plan.foreign,
        "dry_run": dry_run,
    }


async def _mirrored(profile: Platform, epoch: int, last: int) -> list[dict[str, Any]]:
    from fleet.app.journal import known_journal  # SQLAlchemy, which the log itself does without

    journal = await known_journal(state())
    if journal is None:
        raise UsageError("nothing is mirrored here yet", remedy="fleet items")
    async with journal:
        held = {one.epoch: one.entries for one in epochs_of(await journal.epochs(), profile.log_name)}
        if epoch not in held:
            known = ", ".join(map(str, held)) or "none"
            raise UsageError(f"the mirror of this log has no epoch {epoch}; it has {known}")
        entries = await journal.mirror_since(epoch, max(0, held[epoch] - last))
    return [_shown(one.index, one) for one in entries]


async def _tail(log: FeedbackPort, last: int) -> list[dict[str, Any]]:
    """At most as many entries as the log counted at first; each page brings at least one."""
    total = await log.count()
    index = max(0, total - last)
    rows: list[dict[str, Any]] = []
    while index < total:
        entries = await log.range(index, min(PAGE, total - index))
        if not entries:
            why = f"the log ends at entry {index}, short of its own count of {total}"
            raise Unreachable(why, remedy="try again: it may have been cleared meanwhile")
        rows += [_shown(at, entry) for at, entry in enumerate(entries, index)]
        index += len(entries)
    return rows


def _shown(index: int, entry: LogRecord) -> dict[str, Any]:
    found = read(entry.text)
    return {
        "index": index,
        "at": iso_seconds(entry.timestamp),
        "sender": entry.sender,
        "grammar": found.grammar,
        "severity": found.severity,
        "text": clean(entry.text, limit=2048),
    }
