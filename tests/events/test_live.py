"""Yielding: bounded, ended, closed; and nothing of it ever reaches the run."""

from __future__ import annotations

from contextlib import aclosing

import anyio
import anyio.lowlevel
import pytest

from fleet.events.live import Hub, Lagged, LiveReader
from fleet.events.model import Event, MessageDelta
from tests.events.samples import (
    FOOTER,
    HEADER,
    Kept,
    answers,
    asks,
    ends,
    piece,
    starts,
    stream,
)

pytestmark = pytest.mark.anyio


async def everything(live: LiveReader) -> list[Event | Lagged]:
    async with aclosing(live.events()) as events:
        return [event async for event in events]


def kinds(events: list[Event | Lagged]) -> list[str]:
    return [f"lagged {one.count}" if isinstance(one, Lagged) else one.type for one in events]


async def test_a_caller_gets_a_run_as_it_happens_until_its_footer() -> None:
    live = LiveReader("r1")
    line, other = stream(Kept(), live), stream(Kept(), live, run="r2")
    got: list[str] = []

    async def follow() -> None:
        got.extend(kinds(await everything(live)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        for event in (HEADER, asks(1), answers(1)):
            line.emit(event)
            other.emit(event)
            await anyio.lowlevel.checkpoint()
        other.emit(FOOTER)
        line.emit(FOOTER)
    assert got == ["header", "tool.requested", "tool.responded", "footer"]


async def test_a_slow_caller_loses_events_visibly_and_never_the_footer() -> None:
    live = LiveReader("r1", room=2)
    line = stream(Kept(), live)
    for event in (HEADER, asks(1), answers(1), asks(2), FOOTER):
        line.emit(event)
    assert kinds(await everything(live)) == ["header", "tool.requested", "lagged 2", "footer"]
    assert live.lagged == 2


async def test_a_gap_stands_where_it_was() -> None:
    live = LiveReader("r1", room=1)
    line = stream(Kept(), live)
    line.emit(HEADER)
    line.emit(asks(1))
    events = live.events()
    assert kinds([await anext(events), await anext(events)]) == ["header", "lagged 1"]
    line.emit(FOOTER)
    assert kinds([await anext(events)]) == ["footer"]


async def test_leaving_early_stops_taking() -> None:
    live = LiveReader("r1")
    line = stream(Kept(), live)
    line.emit(HEADER)
    async with aclosing(live.events()) as events:
        assert (await anext(events)) is not None
    line.emit(answers(1))
    assert live.closed
    assert await everything(live) == []


async def test_without_a_run_it_takes_every_run_until_it_is_closed() -> None:
    live = LiveReader()
    for run in ("r1", "r2"):
        line = stream(Kept(), live, run=run)
        line.emit(HEADER)
        line.emit(FOOTER)
    live.close()
    assert [event.run for event in await everything(live) if not isinstance(event, Lagged)] == [
        "r1",
        "r1",
        "r2",
        "r2",
    ]


async def test_a_hub_serves_callers_of_runs_at_work_only() -> None:
    hub = Hub()
    line = stream(Kept(), hub)
    assert hub.follow("r1") is None
    line.emit(HEADER)
    first, second = hub.follow("r1"), hub.follow("r1")
    assert first is not None
    assert second is not None
    line.emit(asks(1))
    second.close()
    line.emit(FOOTER)
    assert kinds(await everything(first)) == ["tool.requested", "footer"]
    assert kinds(await everything(second)) == ["tool.requested"]
    assert hub.follow("r1") is None


async def test_a_hub_that_closes_ends_its_callers() -> None:
    hub = Hub()
    stream(Kept(), hub).emit(HEADER)
    caller = hub.follow("r1")
    assert caller is not None
    hub.close()
    assert await everything(caller) == []


async def test_pieces_pass_a_live_caller_in_order() -> None:
    live = LiveReader("r1")
    line = stream(Kept(), live)
    for event in (HEADER, starts(0), piece(0, "a"), piece(0, "b"), ends(0), FOOTER):
        line.emit(event)
    texts = [event.text for event in await everything(live) if isinstance(event, MessageDelta)]
    assert texts == ["a", "b"]
