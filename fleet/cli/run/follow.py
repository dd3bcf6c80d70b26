"""A run as it happens: from its stream in this process, or from its file in another one."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
from anyio import to_thread

from fleet.events.live import Lagged, LiveReader
from fleet.events.model import Footer
from fleet.events.recorded import Recording, UnknownRecord
from fleet.events.timeline import Record, words
from fleet.text import clean


def as_line(record: Record) -> str:
    """One JSON line."""
    match record:
        case Lagged():
            return f'{{"type":"lagged","count":{record.count}}}'
        case UnknownRecord():
            return f'{{"type":"unknown","raw_type":{_json(record.raw_type)},"raw":{_json(record.raw)}}}'
    return record.model_dump_json()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, default=str)


def show(record: Record, *, as_json: bool, to_stdout: bool = False) -> None:
    """Print one record: JSON, or a line for people."""
    if as_json:
        print(as_line(record), flush=True)
    elif said := words(record):
        at = "" if isinstance(record, Lagged | UnknownRecord) else f"{record.run} {record.at[11:19]} "
        print(clean(f"  {at}{said}"), file=sys.stdout if to_stdout else sys.stderr, flush=True)


@asynccontextmanager
async def followed(*, as_json: bool) -> AsyncIterator[LiveReader]:
    """A reader of a world's streams; a thread prints what it receives while the block runs.

    A closed output ends the printing and nothing else.
    """
    live = LiveReader()

    async def run() -> None:
        try:
            async with aclosing(live.events()) as events:
                async for event in events:
                    await to_thread.run_sync(lambda: show(event, as_json=as_json))  # noqa: B023
        except OSError:
            live.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        try:
            yield live
        finally:
            live.close()


async def tail(path: Path, *, as_json: bool, still: anyio.Event) -> bool:
    """Show a file as it grows, until its footer or until its writer is gone; whether a footer came."""
    ended = False
    async with aclosing(Recording(path).follow(still)) as records:
        async for record in records:
            await to_thread.run_sync(lambda: show(record, as_json=as_json, to_stdout=True))  # noqa: B023
            ended = isinstance(record, Footer)
    return ended
