"""`fleet report`: what a period came to, for people who do not run the fleet."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from fleet.app.period_facts import period_facts
from fleet.cli.console import Json, make_app, put, run, state
from fleet.clock import SystemClock
from fleet.config import load_fleet
from fleet.text import clean
from fleet.triage.outputs.period import FEWEST_CYCLES, period, period_html, period_text
from fleet.triage.outputs.selection import moment

app = make_app()


@app.command()
def report(
    since: Annotated[
        str, typer.Option(metavar="WHEN", help="Begin of the period: 30d, 2w, a date or an ISO time.")
    ] = "30d",
    platform: Annotated[
        str | None, typer.Option(help="Profile to report on; default the configured one.")
    ] = None,
    cycles: Annotated[
        int, typer.Option(min=FEWEST_CYCLES, max=1_000, metavar="N", help="Runs of which the trend is shown.")
    ] = FEWEST_CYCLES,
    html: Annotated[bool, typer.Option("--html", help="Print one static page.")] = False,
    as_json: Json = False,
) -> None:
    """Report on a period: posture and trend, coverage by kind and CWE, runs, interruptions, false positives.

    It is made from the journal and the worklist; nothing is asked of the platform.
    """
    begin = moment(since, datetime.now(UTC))
    name = platform or load_fleet().platform
    data = period(run(lambda: period_facts(state(), name, begin, SystemClock(), cycles)))
    if html:
        sys.stdout.buffer.write(period_html(data))
        return

    def text() -> None:
        for line in period_text(data):
            print(clean(line, 400))

    put(data, as_json=as_json, text=text)
