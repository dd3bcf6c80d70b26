"""`fleet log list`: the on-chain feedback log as it is, hostile entries included."""

from __future__ import annotations

from typing import Annotated, Any

import anyio
import typer

from fleet.chain.feedback import PAGE, FeedbackLog
from fleet.chain.rpc import Rpc
from fleet.cli.console import Json, make_app, put, run, state, table
from fleet.config import load_fleet, load_platform
from fleet.errors import Unreachable
from fleet.findings.reader import read
from fleet.text import clean

app = make_app(group=True)


@app.callback()
def _group() -> None:
    """Read the on-chain feedback log."""


@app.command("list")
def list_entries(
    platform: Annotated[
        str | None, typer.Option(help="Profile to read; default: the configured one.")
    ] = None,
    last: Annotated[int, typer.Option(min=1, max=100_000, help="Show the last N entries.")] = 50,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for the whole command.")] = 60.0,
    as_json: Json = False,
) -> None:
    """Show the newest entries, oldest first."""
    profile, _ = load_platform(platform or load_fleet().platform, state())

    async def fetch() -> list[dict[str, Any]]:
        async with Rpc(profile.chain.rpc) as rpc:
            await rpc.check_target(profile)
            log = FeedbackLog(rpc, profile.chain.diamond, profile.gas)
            try:
                with anyio.fail_after(timeout):
                    return await _tail(log, last)
            except TimeoutError:
                why = f"{rpc.url}: reading the last {last} entries took longer than {timeout:g} s"
                raise Unreachable(why, remedy="ask for fewer with --last, or wait with --timeout") from None

    rows = run(fetch)
    columns = ("index", "at", "sender", "grammar", "severity", "text")
    put(rows, as_json=as_json, text=lambda: table(columns, ([row[c] for c in columns] for row in rows)))


async def _tail(log: FeedbackLog, last: int) -> list[dict[str, Any]]:
    """At most as many entries as the log counted at first; each page brings at least one."""
    total = await log.count()
    index = max(0, total - last)
    rows: list[dict[str, Any]] = []
    while index < total:
        entries = await log.range(index, min(PAGE, total - index))
        if not entries:
            why = f"the log ends at entry {index}, short of its own count of {total}"
            raise Unreachable(why, remedy="try again: it may have been cleared meanwhile")
        for entry in entries:
            said = read(entry.text)
            rows.append(
                {
                    "index": index,
                    "at": entry.timestamp,
                    "sender": entry.sender,
                    "grammar": said.grammar,
                    "severity": said.severity,
                    "text": clean(entry.text, limit=2048),
                }
            )
            index += 1
    return rows
