"""Messages are put together by index, whatever comes; readers are told, and never matter."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given

from fleet.clock import SystemClock
from fleet.errors import FleetError
from fleet.events.model import LIVE, Event, MessageSaid, TurnStarted
from fleet.events.stream import CAP, MOST_OPEN, Stream
from tests.events.samples import (
    FOOTER,
    HEADER,
    Kept,
    answers,
    asks,
    bare,
    denied,
    ends,
    flow,
    piece,
    runs,
    said,
    starts,
    stream,
    turn,
)


def test_pieces_are_told_at_once_and_recorded_once_whole() -> None:
    recorded, told = flow(starts(0, text="a"), piece(0, "b"), ends(0))
    assert recorded == [said(0, "ab")]
    assert told == [starts(0, text="a"), piece(0, "b"), said(0, "ab"), ends(0)]


def test_interleaved_messages_are_not_mixed() -> None:
    recorded, _ = flow(
        starts(0), starts(1, "reasoning"), piece(0, "a"), piece(1, "x"), piece(0, "b"), ends(1), ends(0)
    )
    assert recorded == [said(1, "x", "reasoning"), said(0, "ab")]


def test_a_second_start_of_an_index_closes_the_first_as_incomplete() -> None:
    recorded, told = flow(starts(0, text="old"), starts(0, text="new"), ends(0))
    assert recorded == [said(0, "old", whole=False), said(0, "new")]
    assert told.index(said(0, "old", whole=False)) < told.index(starts(0, text="new"))


def test_what_belongs_to_nothing_is_not_told_either() -> None:
    assert flow(piece(7, "x"), ends(7), starts(None), piece(None, "y"), ends(None)) == ([], [])


def test_the_arguments_of_a_tool_are_told_live_only() -> None:
    events: list[Event] = [starts(0, "tool_request"), piece(0, '{"a":'), ends(0)]
    assert flow(*events) == ([], events)


def test_a_second_end_is_passed_over() -> None:
    recorded, told = flow(starts(0, text="a"), ends(0), ends(0))
    assert (recorded, told.count(ends(0))) == ([said(0, "a")], 1)


def test_a_whole_message_takes_the_place_of_its_pieces() -> None:
    recorded, _ = flow(starts(0), piece(0, "hal"), said(0, "half"), ends(0))
    assert recorded == [said(0, "half")]


def test_the_same_whole_message_after_its_end_is_recorded_once() -> None:
    recorded, _ = flow(starts(0), piece(0, "half"), ends(0), said(0, "half"))
    assert recorded == [said(0, "half")]
    recorded, _ = flow(said(0, "hi"), TurnStarted(index=1), said(0, "hi"))
    assert [event.type for event in recorded].count("message.said") == 2


def test_a_whole_message_of_another_kind_cuts_the_open_one_off() -> None:
    recorded, _ = flow(starts(0, "reasoning", "hm"), said(0, "yes"))
    assert recorded == [said(0, "hm", "reasoning", whole=False), said(0, "yes")]


@pytest.mark.parametrize("end", [turn(0), TurnStarted(index=1), FOOTER], ids=lambda end: end.type)
def test_an_early_end_records_what_is_open_before_itself(end: Event) -> None:
    recorded, _ = flow(starts(1, text="b"), starts(0, "reasoning", "a"), starts(2, "tool_request"), end)
    assert recorded == [said(0, "a", "reasoning", whole=False), said(1, "b", whole=False), end]


def test_a_long_message_is_cut_with_a_mark() -> None:
    recorded, _ = flow(starts(0), piece(0, "x" * CAP), piece(0, "yyy"), ends(0))
    assert recorded == [said(0, "x" * CAP + "…[cut 3 characters]")]
    assert flow(said(None, "x" * (CAP + 2)))[0] == [said(None, "x" * CAP + "…[cut 2 characters]")]


def test_more_open_messages_than_anyone_needs_are_passed_over() -> None:
    recorded, _ = flow(*(starts(index, text="x") for index in range(MOST_OPEN + 5)), FOOTER)
    assert len(recorded) == MOST_OPEN + 1


def test_what_a_driver_says_is_masked_on_both_sides() -> None:
    sink, told = Kept(), list[Event]()
    line = Stream(
        "r1",
        clock=SystemClock(),
        sink=sink,
        readers=(told.append,),
        mask=lambda text: text.replace("sesame", "***"),
    )
    for event in (starts(0, text="sesame"), piece(0, " sesame"), ends(0)):
        line.emit(event)
    assert "sesame" not in str(told) + str(sink.events)


def test_no_reader_is_told_what_is_not_on_disk() -> None:
    class Full(Kept):
        def write(self, event: Event) -> None:
            raise FleetError("full")

    told: list[Event] = []
    with pytest.raises(FleetError):
        stream(Full(), told.append).emit(HEADER)
    assert told == []


def test_a_broken_reader_is_dropped_and_changes_nothing() -> None:
    seen: list[str] = []

    def broken(event: Event) -> None:
        seen.append(event.type)
        raise RuntimeError("reader")

    line = stream(Kept(), broken, lambda event: seen.append("ok"))
    line.emit(HEADER)
    line.emit(FOOTER)
    assert seen == ["header", "ok", "ok"]


@given(runs)
def test_whatever_comes_is_recorded_well_formed(events: list[Event]) -> None:
    recorded, told = flow(*events)
    assert [event for event in told if not isinstance(event, LIVE)] == recorded
    assert not any(isinstance(event, LIVE) for event in recorded)
    assert (recorded[0], recorded[-1]) == (HEADER, FOOTER)
    kept = [event for event in events if not isinstance(event, (*LIVE, MessageSaid))]
    assert [event for event in recorded if not isinstance(event, MessageSaid)] == kept


def test_every_event_is_stamped_with_its_run_and_time() -> None:
    sink = Kept()
    line = stream(sink, run="r9")
    for event in (HEADER, asks(1), answers(1), FOOTER):
        line.emit(event)
    assert {event.run for event in sink.events} == {"r9"}
    assert all(event.at.endswith("Z") for event in sink.events)
    assert bare(sink.events) == [HEADER, asks(1), answers(1), FOOTER]


def test_what_belongs_together_is_on_disk_before_any_of_it_is_told() -> None:
    at_once: list[int] = []

    class Grouped(Kept):
        def write_all(self, events: Iterable[Event]) -> None:
            group = list(events)
            assert told == [HEADER]
            at_once.append(len(group))
            self.events += group

    sink, told = Grouped(), list[Event]()
    line = stream(sink, lambda event: told.extend(bare([event])))
    line.emit(HEADER)

    def group() -> None:
        with line.together():
            line.emit(asks(1))
            line.emit(denied(2))
            assert told == bare(sink.events) == [HEADER]
            raise KeyError

    with pytest.raises(KeyError):
        group()
    assert (at_once, told) == ([2], [HEADER, asks(1), denied(2)])
    assert bare(sink.events) == told
    with line.together():
        pass
    line.emit(FOOTER)
    assert (at_once, told[-1]) == ([2], FOOTER)


def test_a_group_that_cannot_be_written_is_told_to_none() -> None:
    class Full(Kept):
        def write_all(self, events: Iterable[Event]) -> None:
            raise FleetError("full")

    told: list[Event] = []
    line = stream(Full(), told.append)
    with pytest.raises(FleetError), line.together():
        line.emit(HEADER)
    assert told == []
