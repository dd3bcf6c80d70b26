"""Yielding and sending: bounded, ended, closed; and nothing of it ever reaches the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from fleet.errors import FleetError
from fleet.events.live import Hub, Lagged, LiveReader
from fleet.events.model import Event, Footer, MessageDelta, TurnStarted, TurnUsage
from fleet.events.send import AutoSend, RunSummary, total
from fleet.events.spans import CloseSpan, Signal
from tests.events.samples import (
    FOOTER,
    HEADER,
    Kept,
    answers,
    asks,
    ends,
    piece,
    said,
    starts,
    stream,
    turn,
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


async def test_leaving_early_closes_open_spans_and_stops_taking() -> None:
    told: list[Signal] = []
    live = LiveReader("r1", tracer=told.append)
    line = stream(Kept(), live)
    line.emit(HEADER)
    line.emit(asks(1))
    async with aclosing(live.events()) as events:
        assert (await anext(events)) is not None
    line.emit(answers(1))
    closes = [(signal.key, signal.is_complete) for signal in told if isinstance(signal, CloseSpan)]
    assert closes == [("tool:1", False), ("run", False)]
    assert live.closed


async def test_a_tracer_is_told_of_what_a_slow_caller_lost() -> None:
    told: list[Signal] = []
    live = LiveReader("r1", tracer=told.append, room=1)
    line = stream(Kept(), live)
    for event in (HEADER, asks(1), answers(1), FOOTER):
        line.emit(event)
    assert [signal.key for signal in told] == ["run", "tool:1", "tool:1", "run"]


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


class Page:
    """A channel that writes down what it is asked to do."""

    def __init__(self, broken: Callable[[str], bool] = lambda what: False) -> None:
        self.said: list[str] = []
        self.broken = broken

    def open(self, kind: str, identity: str) -> _Part:
        self.note(f"open {kind} {identity}")
        return _Part(self, f"{kind} {identity}")

    def note(self, what: str) -> None:
        self.said.append(what)
        if self.broken(what):
            raise RuntimeError(what)


class _Part:
    def __init__(self, page: Page, name: str) -> None:
        self.page, self.name = page, name

    def add(self, text: str) -> None:
        self.page.note(f"add {self.name} {text}")

    def close(self, payload: Mapping[str, Any], *, is_complete: bool) -> None:
        self.page.note(f"close {self.name}{'' if is_complete else ' early'}")


def sent(*events: Event, page: Page | None = None) -> tuple[AutoSend, list[str]]:
    page = page or Page()
    out = AutoSend(page)
    line = stream(Kept(), out)
    for event in events:
        line.emit(event)
    return out, page.said


def test_interleaved_messages_have_a_context_each() -> None:
    _, said_ = sent(
        starts(0, text="a"), starts(1, "reasoning"), piece(1, "x"), piece(0, "b"), ends(0), ends(1)
    )
    assert said_ == [
        "open text 0",
        "add text 0 a",
        "open reasoning 1",
        "add reasoning 1 x",
        "add text 0 b",
        "close text 0",
        "close reasoning 1",
    ]


def test_teardown_closes_every_context_even_if_closing_one_raises() -> None:
    page = Page(broken=lambda what: what == "close text 0 early")
    out, said_ = sent(HEADER, starts(0), starts(1), page=page)
    out.aclose()
    assert said_[2:] == ["close text 0 early", "close text 1 early"]
    assert out.failed == 1


@pytest.mark.parametrize("what", ["open", "add", "close"])
def test_a_channel_that_raises_loses_that_delivery_and_nothing_else(what: str) -> None:
    page = Page(broken=lambda said_: said_.startswith(f"{what} text"))
    out, said_ = sent(HEADER, starts(0, text="a"), ends(0), asks(1), answers(1), FOOTER, page=page)
    assert out.failed == 1
    assert said_[-4:] == [
        "open tool_request 1",
        "close tool_request 1",
        "open tool_response 1",
        "close tool_response 1",
    ]
    assert out.result().final_text == "a"


@pytest.mark.parametrize(
    ("events", "final"),
    [
        ((starts(0, text="on the start"), ends(0)), "on the start"),
        ((starts(0), starts(1), piece(0, "a"), piece(1, "b"), piece(0, "c"), ends(1), ends(0)), "ac"),
        ((starts(0), piece(0, "first"), ends(0), said(1, "second"), said(2, "hm", "reasoning")), "second"),
        ((starts(0), piece(0, "cut o")), "cut o"),
        ((), ""),
    ],
)
def test_the_final_text_is_the_last_that_was_said(events: tuple[Event, ...], final: str) -> None:
    out, _ = sent(HEADER, *events, FOOTER)
    assert out.result().final_text == final


def test_usage_can_be_read_when_the_run_is_over_and_not_before() -> None:
    one, two = (
        TurnUsage(model="m", input_tokens=3, cost_usd="0.10"),
        TurnUsage(input_tokens=4, cost_usd="0.2"),
    )
    out, _ = sent(HEADER, TurnStarted(index=0), turn(0, one), turn(1, two))
    with pytest.raises(FleetError, match="not over"):
        out.result()
    out(FOOTER)
    assert out.result() == RunSummary("", TurnUsage(model="m", input_tokens=7, cost_usd="0.30"))


def test_the_footers_usage_wins_and_what_nobody_reported_stays_unknown() -> None:
    told = TurnUsage(input_tokens=9)
    out, _ = sent(HEADER, turn(0, TurnUsage(input_tokens=3)), Footer(outcome="done", usage=told))
    assert out.result().usage == told
    assert sent(HEADER, turn(0), FOOTER)[0].result().usage is None
    assert total([TurnUsage(input_tokens=1, output_tokens=2), TurnUsage(input_tokens=1)]) == TurnUsage(
        input_tokens=2
    )


async def test_pieces_pass_a_live_caller_in_order() -> None:
    live = LiveReader("r1")
    line = stream(Kept(), live)
    for event in (HEADER, starts(0), piece(0, "a"), piece(0, "b"), ends(0), FOOTER):
        line.emit(event)
    texts = [event.text for event in await everything(live) if isinstance(event, MessageDelta)]
    assert texts == ["a", "b"]
