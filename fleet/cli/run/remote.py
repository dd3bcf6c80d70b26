"""`fleet run --queue`: a run by the resident daemon."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from fleet.app.journal import open_journal
from fleet.cli.console import note
from fleet.cli.daemon_client import ask
from fleet.cli.daemon_page import daemon_of
from fleet.cli.progress import Progress
from fleet.errors import TryAgain
from fleet.events.recorded import Recording, UnknownRecord
from fleet.gate.stop import stopped
from fleet.runs.desk.coverage import coverage

LOOK_S = 0.5


def queue(state: Path, wish: Mapping[str, str], otherwise: str) -> dict[str, Any]:
    """Queue a run ahead of waiting ones (`Ingress.ask` has the words of a wish); TryAgain when no daemon is
    running, with what to do `otherwise`, UsageError if it refuses.

    The daemon validates the name: its folder of personas need not be this checkout's.
    """
    if not daemon_of(state):
        raise TryAgain(f"no daemon is running in {state}", remedy=f"fleet up; or {otherwise}")
    # the daemon accepts an ident once, so a repeated request starts no second run
    said = ask(state, "/runs", json.dumps({"ident": secrets.token_hex(8), **wish}).encode()).check()
    return {"outcome": "", "queued": True, **said.body["runs"][0]}


async def outcome(state: Path, run: str) -> dict[str, Any]:
    """Wait for the end of a run and print its progress; returns the same data as a local run.

    TryAgain when the daemon stops meanwhile: the next one takes the run over.
    """
    recording, tell, told = Recording(state / "runs" / run / "trajectory.jsonl"), Progress(), False
    async with await open_journal(state) as journal:
        while True:
            daemon = daemon_of(state)  # read before the row: its last action may be to end this run
            row = await journal.run(run)
            for record in await to_thread.run_sync(recording.new):
                if not isinstance(record, UnknownRecord):
                    tell(record)
            if row.state == "ended":
                break
            if not daemon:
                remedy = f"fleet up; then fleet runs show {run}"
                raise TryAgain(f"the daemon is gone; run {run} is {row.state}", remedy=remedy)
            if not told and row.state == "queued" and stopped(state):
                note(f"  run {run} waits because everything is paused; fleet resume")
                told = True
            await anyio.sleep(LOOK_S)
        findings = [asdict(finding) for finding in await journal.findings(run)]
        calls = (await journal.spent(run)).get("calls", 0)
    took = datetime.fromisoformat(row.ended) - datetime.fromisoformat(row.started or row.ended)
    return {
        "run": run,
        "persona": row.persona,
        "outcome": row.outcome,
        "detail": row.detail,
        "findings": findings,
        "calls": calls,
        "seconds": round(took.total_seconds(), 3),
        "settled": True,
        "coverage": coverage(state / "runs" / run, run, row.outcome),
    }
