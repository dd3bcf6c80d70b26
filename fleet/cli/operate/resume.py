"""`fleet resume`: a person removes the STOP file, and says why."""

from __future__ import annotations

from typing import Annotated

import typer

from fleet.app.authority import require_authority
from fleet.app.halts import record_halt
from fleet.app.incidents import lacking, open_case
from fleet.cli.console import DryRun, Json, make_app, note, put, run, state, who
from fleet.clock import SystemClock
from fleet.config import load_fleet
from fleet.errors import Refused
from fleet.gate.stop import resume as remove_stop
from fleet.gate.stop import stopped
from fleet.runs.call.halt import Halt
from fleet.text import line

app = make_app()


@app.command()
def resume(
    reason: Annotated[
        str, typer.Option(help="Reason, recorded; after a failed fence: what was checked.")
    ] = "",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Remove the STOP file, and record who let the fleet go on and why."""
    folder = state()
    found = stopped(folder)
    require_authority(folder, who())
    if found is not None and found.check and load_fleet().authority.signers:
        case = open_case(folder, found, SystemClock())
        if missing := lacking(folder, case):
            why = f"the case of this incident is not whole: {case} lacks {', '.join(missing)}"
            raise Refused(why, rule="incident", remedy="complete it, then fleet resume --reason")
    if dry_run:
        note(f"would remove {folder / 'STOP'}" if found else "the fleet is not stopped")
        put({"resumed": False}, as_json=as_json, text=lambda: None)
        return
    if found is not None and (reason or not found.check):  # else it is refused
        halt = Halt("resume", who(), reason, stopped=line(found.why, 400))
        if why := run(lambda: record_halt(folder, halt)):
            note(f"the journal does not have this resume: {why}")
    removed = remove_stop(folder, reason)
    text = "resumed" if removed else "the fleet was not stopped"
    put({"resumed": removed}, as_json=as_json, text=lambda: print(text))
