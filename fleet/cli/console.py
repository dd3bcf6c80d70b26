"""What every command shares: where output goes and how it looks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import anyio
import typer

from fleet.cli.groups import SummaryGroup
from fleet.errors import Refused
from fleet.files import login, state_dir
from fleet.gate.stop import stopped
from fleet.text import clean, csv_cell

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, without doing it.")]

Value = TypeVar("Value")
FEWEST = 6
"""Digits of a fingerprint that a terminal shows at least: every command takes the first ones."""
LONGEST = 200
"""Characters of a cell."""
_LEAST = 8
"""Columns that a cell which is cut to fit keeps."""


def make_app(
    *,
    group: bool = False,
    lazy: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    default: str = "",
    default_takes: bool = False,
) -> typer.Typer:
    """One command, or a group of them; help is plain text on a terminal and in a pipe alike.

    `lazy` are parts by name, `default` is what options alone, or with `default_takes` any word, are for.
    """
    kept = {"lazy": lazy, "default": default, "default_takes": default_takes}
    return typer.Typer(
        cls=type("Group", (SummaryGroup,), kept),
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        no_args_is_help=group and (default_takes or not default),
    )


def state() -> Path:
    """The state directory, created on first use with mode 0700."""
    path = state_dir()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def run(main: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
    """Run an async command on asyncio. SIGTERM ends it as Ctrl-C does: it tidies up; the code is 143."""
    told: list[int] = []

    def interrupt(number: int, _: object) -> None:
        told.append(number)
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a script's shell started it in the background
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    if threading.current_thread() is not threading.main_thread():  # only the main one may set a handler
        return anyio.run(main)
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        return anyio.run(main)
    except KeyboardInterrupt:
        if told:
            raise SystemExit(128 + signal.SIGTERM) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def put(data: object, *, as_json: bool, text: Callable[[], None]) -> None:
    """Data on stdout: one JSON document when asked for, else what `text` prints."""
    if as_json:
        print(json.dumps(data, ensure_ascii=True, default=str))
    else:
        text()


def refuse_if_stopped(folder: Path) -> None:
    """Refused while a person has paused everything."""
    if pause := stopped(folder):
        raise Refused(f"everything is paused: {clean(pause.why)}", rule="stop", remedy="fleet resume")


def put_rows(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool, empty: str = "nothing"
) -> None:
    """Rows on stdout: one JSON document when asked for, else a table of these columns."""
    put(
        rows,
        as_json=as_json,
        text=lambda: table(columns, ([row[c] for c in columns] for row in rows), empty=empty),
    )


def note(message: str) -> None:
    """Print a message for a person on stderr, cleaned."""
    print(clean(message), file=sys.stderr, flush=True)


def few_digits(names: Iterable[str]) -> int:
    """How many first digits tell these fingerprints apart: what a terminal shows of them."""
    different = {*names}
    return next(few for few in range(FEWEST, 65) if len({name[:few] for name in different}) == len(different))


def columns() -> int:
    """The columns of a terminal; 80 for what is none."""
    return shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 80


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    empty: str = "nothing",
    one_line: str = "",
    longest: int = LONGEST,
) -> None:
    """A table on a terminal, tab-separated lines in a pipe. Cells are cleaned; markup is never interpreted.

    With `one_line` each row is one line of the terminal: the column of that name is cut to fit.

    A cell has at most `longest` characters. Piped output may end in a spreadsheet, so there a cell that
    would be a formula gets a `'` prefix.
    """
    piped = not sys.stdout.isatty()
    cells = [
        [
            (csv_cell if piped and not isinstance(cell, int | float) else clean)(str(cell), longest)
            for cell in row
        ]
        for row in rows
    ]
    if not cells:
        note(empty)
        return
    if piped:
        for row in [list(headers), *cells]:
            print("\t".join(row))
        return
    from rich.cells import cell_len
    from rich.console import Console  # 50 ms that a service and a pipe do not need
    from rich.table import Table
    from rich.text import Text

    console = Console()
    grid = Table(box=None, pad_edge=False, header_style="bold")
    widths = [
        max(cell_len(header), *(cell_len(row[at]) for row in cells)) for at, header in enumerate(headers)
    ]
    for header, width in zip(headers, widths, strict=True):
        if not one_line:
            grid.add_column(header, overflow="fold")
        elif header == one_line:
            left = console.width - (sum(widths) - width) - 2 * (len(widths) - 1)
            grid.add_column(header, overflow="ellipsis", no_wrap=True, width=max(_LEAST, min(width, left)))
        else:
            grid.add_column(header, overflow="ellipsis", no_wrap=True, width=width)
    for row in cells:
        grid.add_row(*(Text(cell) for cell in row))
    console.print(grid)


def who() -> str:
    """The operator, as `status` names them."""
    return f"{login(os.getuid())}@{socket.gethostname()}"
