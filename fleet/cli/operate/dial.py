"""`fleet dial [RUNG] [--for 8h]`: show or set the autonomy dial. Raising it needs a person and a reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from fleet.cli.console import DryRun, Json, make_app, note, put, run, state, who
from fleet.clock import SystemClock, iso, minute
from fleet.errors import UsageError
from fleet.gate.dial import DIAL, read_dial, shown, write_dial
from fleet.gate.model import Rung
from fleet.personas.duration import parse_duration

app = make_app()
LONGEST_S = 720 * 3_600.0


@app.command()
def dial(
    rung: Annotated[str | None, typer.Argument(help="New rung: observe, exercise or propose.")] = None,
    reason: Annotated[str, typer.Option(help="Reason for the change; required to raise the dial.")] = "",
    term: Annotated[
        str,
        typer.Option("--for", metavar="TERM", help="Read `observe` again after this: 90m, 8h, at most 720h."),
    ] = "",
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
        term_s = _term_s(term, chosen)
        before = read_dial(folder / DIAL)
        until = iso(datetime.now(UTC) + timedelta(seconds=term_s)) if term else ""
        longer = chosen is before.rung and bool(before.until) and (not until or until > before.until)
        if (chosen.height > before.rung.height or longer) and not reason.strip():
            change = "a longer term" if longer else f"raising the dial from {before.rung} to {chosen}"
            asked = f"{chosen} --for {term}" if term else str(chosen)
            raise UsageError(f"{change} needs a reason", remedy=f'fleet dial {asked} --reason "…"')
        if chosen.height > before.rung.height or longer:
            from fleet.app.authority import require_authority

            require_authority(folder, who(), chosen)
        if dry_run:
            end = f" until {minute(until)} UTC" if until else ""
            note(f"would turn the dial from {before.rung} to {chosen}{end}")
        else:
            write_dial(folder, chosen, reason, who(), SystemClock(), term_s)
            from fleet.app.halts import record_dial  # SQLAlchemy: only a move needs it
            from fleet.app.incidents import lowered_by

            after = lowered_by(folder, chosen) if chosen.height > before.rung.height else ""
            move = f"{before.rung} to {chosen}{f' until {until}' if until else ''}"
            move += f", after the incident of {after}" if after else ""
            if missing := run(lambda: record_dial(folder, move, who(), reason)):
                note(f"the journal does not have this move of the dial: {missing}")
    elif term:
        raise UsageError("--for needs a rung", remedy=f'fleet dial exercise --for {term} --reason "…"')
    now = shown(folder)
    by = f" (by {now['who']} at {minute(now['when'])} UTC)" if now["who"] else ""
    why = f": {now['why']}" if now["why"] else ""
    until = f" until {minute(now['until'])} UTC" if now["until"] else ""
    put(now, as_json=as_json, text=lambda: print(f"{now['rung']}{until}{by}{why}"))


def _term_s(text: str, rung: Rung) -> float:
    """Seconds of `--for`; 0 without one."""
    if not text:
        return 0.0
    if rung is Rung.OBSERVE:
        raise UsageError("observe needs no term: it is what a term ends in", remedy="fleet dial observe")
    try:
        term_s = parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--for: {error}", remedy="write 90m or 8h") from None
    if term_s > LONGEST_S:
        raise UsageError(f"--for: {text} is longer than 720h", remedy="renew it when it is over")
    return term_s
