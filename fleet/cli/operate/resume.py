"""`fleet resume`: a person removes the STOP file."""

from __future__ import annotations

from fleet.cli.console import DryRun, Json, make_app, note, put, state
from fleet.gate.stop import resume as remove_stop
from fleet.gate.stop import stopped

app = make_app()


@app.command()
def resume(dry_run: DryRun = False, as_json: Json = False) -> None:
    """Remove the STOP file."""
    folder = state()
    if dry_run:
        note(f"would remove {folder / 'STOP'}" if stopped(folder) else "the fleet is not stopped")
        put({"resumed": False}, as_json=as_json, text=lambda: None)
        return
    removed = remove_stop(folder)
    text = "resumed" if removed else "the fleet was not stopped"
    put({"resumed": removed}, as_json=as_json, text=lambda: print(text))
