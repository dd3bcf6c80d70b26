"""`fleet dial [RUNG]`: show or set the autonomy dial. Raising it needs a person and a reason."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fleet.cli.console import DryRun, Json, make_app, note, put, state, who
from fleet.clock import SystemClock
from fleet.errors import UsageError
from fleet.gate.dial import DIAL, MISSING, read_dial, set_by, write_dial
from fleet.gate.model import Rung
from fleet.text import clean

app = make_app()
ABSENT = f"{DIAL}: {MISSING}"
NEVER_SET = "never set, the default"


@app.command()
def dial(
    rung: Annotated[str | None, typer.Argument(help="New rung: observe, exercise or propose.")] = None,
    reason: Annotated[str, typer.Option(help="Reason for the change; required to raise the dial.")] = "",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Show or set the autonomy dial."""
    folder = state()
    if rung is not None:
        try:
            chosen = Rung(rung)
        except ValueError:
            remedy = f"choose one of {', '.join(Rung)}"
            raise UsageError(f"unknown rung {rung!r}", remedy=remedy) from None
        before = read_dial(folder / DIAL).rung
        if chosen.height > before.height and not reason.strip():
            raise UsageError(
                f"raising the dial from {before} to {chosen} needs a reason",
                remedy=f'fleet dial {chosen} --reason "…"',
            )
        if dry_run:
            note(f"would turn the dial from {before} to {chosen}")
        else:
            write_dial(folder, chosen, reason, who(), SystemClock())
    shown = show()
    by = f" (by {shown['who']} at {shown['when']})" if shown["who"] else ""
    why = f": {shown['why']}" if shown["why"] else ""
    put(shown, as_json=as_json, text=lambda: print(f"{shown['rung']}{by}{why}"))


def show() -> dict[str, Any]:
    """The dial as everything else reads it: `rung, trusted, fault, who, when, why`."""
    folder = state()
    reading, said = read_dial(folder / DIAL), set_by(folder)
    return {
        "rung": str(reading.rung),
        "trusted": reading.trusted,
        "fault": clean(reading.fault),
        "who": clean(said.who) if said else "",
        "when": clean(said.when) if said else "",
        "why": clean(said.why) if said else NEVER_SET if reading.why == ABSENT else clean(reading.why),
    }
