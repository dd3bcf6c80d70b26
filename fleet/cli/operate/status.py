"""`fleet status`: the morning page. What the fleet may do, what is new, what is broken, what it cost."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from shutil import get_terminal_size
from typing import Annotated, Any

import typer

from fleet.app.status import gather
from fleet.cli.console import Json, make_app, note, put, run, state
from fleet.cli.daemon_page import daemon_of, page
from fleet.cli.operate.status_page import page as lines_of
from fleet.errors import ConfigError
from fleet.triage.outputs.document import WorklistDocument
from fleet.triage.outputs.files import written
from fleet.triage.outputs.selection import DAY, moment

app = make_app()
EVERY_S = 2.0
"""Pause between two pages of `--watch`."""
PLAIN = 10_000
"""Columns and lines where the output is not a terminal."""
_HOME = "\x1b[H\x1b[2J"


@app.command()
def status(
    since: Annotated[
        str, typer.Option(metavar="WHEN", help="News since: 6h, 1d, 2w, a date or an ISO time.")
    ] = DAY,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again and again, until Ctrl-C.")] = False,
    as_json: Json = False,
) -> None:
    """Show on one screen what the fleet may do, what is new, what is broken and what it cost today.

    The fields of --json are in docs/reference/status.md; with --watch it is one document a line.
    """
    if not watch:
        _show(since, as_json=as_json)
        return
    with suppress(KeyboardInterrupt):
        begin = _HOME if sys.stdout.isatty() and not as_json else ""
        while True:
            _show(since, as_json=as_json, begin=begin)
            time.sleep(EVERY_S)


def _show(since: str, *, as_json: bool, begin: str = "") -> None:
    live = page(state(), "/readyz") if daemon_of(state()) else {}
    try:
        document = written(state()) or WorklistDocument()
    except ConfigError as error:
        note(f"{error}; {error.remedy}")
        document = WorklistDocument()
    data = run(lambda: gather(state(), moment(since, datetime.now(UTC)), live, document))
    put(data, as_json=as_json, text=lambda: _print(data, begin))
    sys.stdout.flush()


def _print(data: Mapping[str, Any], begin: str) -> None:
    terminal = sys.stdout.isatty()
    size = get_terminal_size() if terminal else os.terminal_size((PLAIN, PLAIN))
    coloured = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    lines = lines_of(data, width=size.columns, height=max(size.lines - 1, 1))
    shown = [typer.style(one.text, fg="red") if one.bad and coloured else one.text for one in lines]
    print(begin + "\n".join(shown))
