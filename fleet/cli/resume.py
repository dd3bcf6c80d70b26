"""`fleet resume`: a person removes the STOP file."""

from __future__ import annotations

import typer

from fleet.cli.shell import DryRun, Json, note, put, state
from fleet.gate.stop import resume as remove_stop
from fleet.gate.stop import stopped

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def resume(dry_run: DryRun = False, as_json: Json = False) -> None:
    """Remove the STOP file."""
    folder = state()
    if dry_run:
        note(f"would remove {folder / 'STOP'}" if stopped(folder) else "nothing is stopped")
        return
    removed = remove_stop(folder)
    text = "resumed" if removed else "nothing was stopped"
    put({"resumed": removed}, as_json=as_json, text=lambda: print(text))
