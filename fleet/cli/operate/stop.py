"""`fleet stop`: pause everything immediately. Sticky: only `fleet resume` ends it."""

from __future__ import annotations

from typing import Annotated

import typer

from fleet.app.halts import record_halt
from fleet.cli.console import DryRun, Json, make_app, note, put, run, state, who
from fleet.clock import SystemClock
from fleet.gate.stop import stop as write_stop
from fleet.gate.stop import stopped
from fleet.runs.call.halt import Halt
from fleet.text import clean

app = make_app()


@app.command()
def stop(
    reason: Annotated[str, typer.Option(help="Reason, recorded and shown by `status`.")] = "",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Pause everything immediately, until `resume`; what is in flight ends within seconds."""
    folder = state()
    before = stopped(folder)
    if dry_run:
        note(f"would write {folder / 'STOP'}")
        put({"stopped": before is not None}, as_json=as_json, text=lambda: None)
        return
    why = clean(write_stop(folder, who(), reason, SystemClock()).why)
    if before is None and (gap := run(lambda: record_halt(folder, Halt("stop", who(), reason)))):
        note(f"the journal does not have this stop: {gap}")
    put({"stopped": True, "why": why}, as_json=as_json, text=lambda: print(f"stopped: {why}"))
