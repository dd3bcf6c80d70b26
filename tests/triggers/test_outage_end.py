"""An outage that ended fires once, when none is open any more."""

from __future__ import annotations

import pytest

from fleet.findings.outage import FACTS, Outage, OutageBook, OutageEnd
from fleet.triggers.outage_end import OutageEndWatch
from tests.doubles.triggers import FiringRecorder, MemoryFacts
from tests.triggers.conftest import FakeClock, Refusing, running, until

pytestmark = pytest.mark.anyio
AT = "2026-11-23T07:00:00Z"


def ended(*numbers: int) -> tuple[OutageEnd, ...]:
    return tuple(
        OutageEnd(fp=f"{n:012x}", targets=("site",), since=AT, until=AT, seconds=9.0) for n in numbers
    )


def opened(number: int) -> Outage:
    return Outage(
        fp=f"{number:012x}", targets=("site",), since=AT, run="r", persona="p", severity="high", title="t"
    )


def watch(facts: MemoryFacts, sink: FiringRecorder) -> OutageEndWatch:
    return OutageEndWatch("paper", facts, sink, lambda _: ("qa-a",), clock=FakeClock())


async def fires(facts: MemoryFacts, sink: FiringRecorder, one: OutageEndWatch, book: OutageBook) -> list[str]:
    before = len(sink.fired)
    await facts.put(f"{FACTS}paper", book.model_dump_json())
    await one.turn()
    await one.turn()
    return sink.keys[before:]


async def test_it_fires_once_and_not_for_what_ended_before_the_first_look() -> None:
    facts, sink = MemoryFacts(), FiringRecorder()
    one = watch(facts, sink)
    assert await fires(facts, sink, one, OutageBook(ended=ended(1))) == []
    assert await fires(facts, sink, one, OutageBook(open=opened(2), ended=ended(1))) == []
    assert await fires(facts, sink, one, OutageBook(ended=ended(1, 2))) == ["qa-a@outage-over:000000000002"]
    again = watch(facts, sink)  # a restart
    assert await fires(facts, sink, again, OutageBook(ended=ended(1, 2))) == []
    assert await fires(facts, sink, again, OutageBook(ended=ended(2, 3))) == ["qa-a@outage-over:000000000003"]


async def test_an_outage_that_goes_on_as_another_one_fires_at_its_last_end() -> None:
    facts, sink = MemoryFacts(), FiringRecorder()
    one = watch(facts, sink)
    await one.turn()
    assert await fires(facts, sink, one, OutageBook(open=opened(2), ended=ended(1))) == []
    assert await fires(facts, sink, one, OutageBook(ended=ended(1, 2))) == ["qa-a@outage-over:000000000002"]


async def test_a_refused_firing_is_tried_again() -> None:
    facts, sink = MemoryFacts(), FiringRecorder()
    await watch(facts, sink).turn()
    assert await fires(facts, sink, watch(facts, Refusing("qa-a")), OutageBook(ended=ended(1))) == []
    assert await fires(facts, sink, watch(facts, sink), OutageBook(ended=ended(1))) == [
        "qa-a@outage-over:000000000001"
    ]


async def test_the_end_of_a_run_wakes_it() -> None:
    facts, sink = MemoryFacts(), FiringRecorder()
    one = OutageEndWatch("paper", facts, sink, lambda _: ("qa-a",), clock=FakeClock(), every_s=3600)
    async with running(one.run):
        await until(lambda: facts)
        await facts.put(f"{FACTS}paper", OutageBook(ended=ended(1)).model_dump_json())
        one.wake()
        await until(lambda: sink.fired)
